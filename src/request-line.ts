// The log line of a request, put together by hand: it is written for every request, and JSON.stringify of an object
// would cost several times as much. Never a header value, a body or a query.
import type { Exchange } from './exchange.ts';

const PREFIX = '"level":"info","event":"request","pid":';
let lastMillisecond = 0;
let lastTime = '';

export function requestLine(exchange: Exchange, status: number, bytes: number, duration: number): string {
  return `{"time":"${isoTime()}",${PREFIX}${process.pid},"method":"${exchange.verb}","path":${quote(exchange.resolved?.path.raw ?? '')},"page":${quote(exchange.page)},"operation":"${exchange.operation}","status":${status},"duration_ms":${milliseconds(duration)},"bytes":${bytes},"request_id":"${exchange.requestId}"}\n`;
}

/** Three digits behind the point, without toFixed(), which costs more than the rest of the line. */
function milliseconds(duration: number): string {
  const micros = Math.round(duration * 1000);
  const whole = Math.floor(micros / 1000);
  return `${whole}.${THOUSANDTHS[micros - whole * 1000]}`;
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));

function isoTime(): string {
  const now = Date.now();
  if (now !== lastMillisecond) {
    lastMillisecond = now;
    lastTime = new Date(now).toISOString();
  }
  return lastTime;
}

/** A text without a quote or a backslash is its own JSON; a path has been checked to be visible ASCII. */
function quote(text: string): string {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return JSON.stringify(text);
  }
  return `"${text}"`;
}

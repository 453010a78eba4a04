// The log line of a request, put together by hand: it is written for every request, and JSON.stringify of an object
// would cost several times as much. Never a header value, a body or a query.
import type { Exchange } from './exchange.ts';

export function requestLine(exchange: Exchange, status: number, bytes: number, duration: number): string {
  return `${lineStart()}${lineMiddle(exchange, status)}${milliseconds(duration)},"bytes":${bytes},"request_id":"${exchange.requestId}"}\n`;
}

/** All that one request has in common with the next one of its kind, for which it is kept. */
export interface LineMiddle {
  readonly verb: string;
  readonly page: string;
  readonly operation: string;
  readonly status: number;
  readonly text: string;
}

function lineMiddle({ resolved, verb, page, operation }: Exchange, status: number): string {
  const kept = resolved?.lineMiddle;
  if (kept?.status === status && kept.operation === operation && kept.verb === verb && kept.page === page) return kept.text;
  const text = `,"method":"${verb}","path":${quote(resolved?.path.raw ?? '')},"page":${quote(page)},"operation":"${operation}","status":${status},"duration_ms":`;
  if (resolved !== undefined) resolved.lineMiddle = { verb, page, operation, status, text };
  return text;
}

/** Three digits behind the point, without toFixed(), which costs more than the rest of the line. */
function milliseconds(duration: number): string {
  const micros = Math.round(duration * 1000);
  const whole = Math.floor(micros / 1000);
  return `${whole}.${THOUSANDTHS[micros - whole * 1000]}`;
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));

let lastMillisecond = 0;
let lastStart = '';

/** The same for all lines of one millisecond. */
function lineStart(): string {
  const now = Date.now();
  if (now !== lastMillisecond) {
    lastMillisecond = now;
    lastStart = `{"time":"${new Date(now).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
  }
  return lastStart;
}

/** A text without a quote or a backslash is its own JSON; a path has been checked to be visible ASCII. */
function quote(text: string): string {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return JSON.stringify(text);
  }
  return `"${text}"`;
}

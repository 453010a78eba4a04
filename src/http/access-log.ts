// The log line of each request. A request leaves its few facts in arrays and goes; the lines are put together later, many at
// a time, when the code and the texts for them are in the processor's caches: one by one they cost several times as much.
// Never a header value, a body or a query.

import type { DeferringSink } from '../base/log.ts';
import type { Exchange } from './exchange.ts';

export interface RequestLines {
  /** @param endedAt `performance.now()` */
  add(exchange: Exchange, status: number, bytes: number, endedAt: number): void;
}

/** As many as fill one write. */
const CAPACITY = 320;

export function createRequestLines(sink: DeferringSink): RequestLines {
  const middles: string[] = Array(CAPACITY).fill('');
  const requestIds: string[] = Array(CAPACITY).fill('');
  const starts = new Float64Array(CAPACITY);
  const ends = new Float64Array(CAPACITY);
  const sizes = new Float64Array(CAPACITY);
  let count = 0;

  function compose(write: (line: string) => void): void {
    const wallClock = Date.now() - performance.now();
    for (let i = 0; i < count; i++) {
      const end = ends[i] as number;
      const duration = milliseconds(end - (starts[i] as number));
      write(`${lineStart(wallClock + end)}${middles[i]}${duration},"bytes":${sizes[i]},"request_id":"${requestIds[i]}"}\n`);
    }
    count = 0;
  }

  return {
    add(exchange, status, bytes, endedAt) {
      middles[count] = lineMiddle(exchange, status);
      requestIds[count] = exchange.requestId;
      starts[count] = exchange.startedAt;
      ends[count] = endedAt;
      sizes[count] = bytes;
      count++;
      if (count === 1) sink.defer(compose);
      else if (count === CAPACITY) sink.flush();
    },
  };
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

/** The same for all lines of one millisecond. @param time Unix milliseconds, with a fraction */
function lineStart(time: number): string {
  const millisecond = Math.floor(time);
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastStart = `{"time":"${new Date(millisecond).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
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

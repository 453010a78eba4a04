// The log line of each request, written when the last byte of its answer is out. A line never holds a header value, a
// body or a query.
import { quote, quoteName } from '../base/json-text.ts';
import type { LineSink } from '../base/log.ts';
import { servingPage } from '../base/page-name.ts';
import type { Exchange } from './exchange.ts';

/** @param endedAt `performance.now()` at the end of the answer */
export type AccessLog = (exchange: Exchange, status: number, bytes: number, endedAt: number) => void;

/** Maximum characters of a user's id in a line. */
const MAX_USER_LENGTH = 200;

export function createAccessLog(sink: LineSink): AccessLog {
  return (exchange, status, bytes, endedAt) => {
    const { resolved, verb, operation, credential, userId, requestId, tool, trace } = exchange;
    const path = quote(resolved?.path.raw ?? '');
    const key = credential === '' ? '' : `,"credential":${quote(credential)}`;
    const who = userId === undefined ? key : `${key},"user":${quote(userId.slice(0, MAX_USER_LENGTH))}`;
    const ids =
      trace === undefined ? '' : `,"trace_id":${quote(`${trace.traceId}`)},"span_id":${quote(`${trace.spanId}`)}`;
    const caller = tool === undefined ? who : `${who},"tool":"${tool.name}"`;
    sink.write(
      `${lineStart()},"method":"${verb}","path":${path},"page":${quoteName(servingPage(exchange))},"operation":${quoteName(operation)},"status":${status},"duration_ms":${milliseconds(endedAt - exchange.startedAt)},"bytes":${bytes}${caller},"request_id":"${requestId}"${ids}}\n`,
    );
  };
}

/** Writes milliseconds with three decimals. `toFixed()` would cost more than the rest of the line. */
function milliseconds(duration: number): string {
  const micros = Math.round(duration * 1000);
  const integer = Math.floor(micros / 1000);
  return `${integer}.${THOUSANDTHS[micros - integer * 1000]}`;
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));

let lastMillisecond = 0;
let lastStart = '';

/** Returns the beginning of a line, which all lines of one millisecond share. */
function lineStart(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastStart = `{"time":"${new Date(millisecond).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
  }
  return lastStart;
}

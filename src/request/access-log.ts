// Writes the log line of a request when its answer is sent, or when its client has left. Except for the ids of the
// request and its trace, a line contains no header value, no body and no query.

import { servingPage } from '../base/group-name.ts';
import { quote, quoteName, withoutLoneSurrogates } from '../base/json-text.ts';
import type { LineSink } from '../base/log.ts';
import type { Exchange } from './exchange.ts';

/** @param bytes the size of the sent body @param endedAt `performance.now()` at the end of the answer */
export type AccessLog = (exchange: Exchange, status: number, bytes: number, endedAt: number) => void;

const MAX_USER_LENGTH = 200;

export function createAccessLog(sink: LineSink): AccessLog {
  return (exchange, status, bytes, endedAt) => {
    const { resolvedPath, verb, operation, requestId, toolCall, trace } = exchange;
    const { credentialId, userId } = exchange.caller;
    const path = quote(resolvedPath?.path.raw ?? '');
    const credentialField = credentialId === '' ? '' : `,"credential":${quote(credentialId)}`;
    const callerFields =
      userId === undefined
        ? credentialField
        : `${credentialField},"user":${withoutLoneSurrogates(quote(userId.slice(0, MAX_USER_LENGTH)))}`;
    const traceFields =
      trace === undefined ? '' : `,"trace_id":${quote(`${trace.traceId}`)},"span_id":${quote(`${trace.spanId}`)}`;
    const callerAndTool = toolCall === undefined ? callerFields : `${callerFields},"tool":"${toolCall.name}"`;
    // Fields without quote() have no character that JSON would escape.
    sink.write(
      `${lineStart()},"method":"${verb}","path":${path},"page":${quoteName(servingPage(exchange))},"operation":${quoteName(operation)},"status":${status},"duration_ms":${formatMilliseconds(endedAt - exchange.startedAt)},"bytes":${bytes}${callerAndTool},"request_id":"${requestId}"${traceFields}}\n`,
    );
  };
}

/** Formats milliseconds with three decimals. `toFixed()` would cost more than the rest of the line. */
function formatMilliseconds(duration: number): string {
  const microseconds = Math.round(duration * 1000);
  const wholeMilliseconds = Math.floor(microseconds / 1000);
  return `${wholeMilliseconds}.${THOUSANDTHS[microseconds - wholeMilliseconds * 1000]}`;
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));

let lastMillisecond = 0;
let lastLineStart = '';

/** Returns the beginning of a line. All lines of one millisecond share one text. */
function lineStart(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastLineStart = `{"time":"${new Date(millisecond).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
  }
  return lastLineStart;
}

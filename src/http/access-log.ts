// The log line of each request, written when the last byte of its answer is out. A line never holds a header value, a
// body or a query.
import type { LineSink } from '../base/log.ts';
import { servingPage } from '../base/page-name.ts';
import type { Exchange } from './exchange.ts';

export interface AccessLog {
  /** @param endedAt `performance.now()` */
  write(exchange: Exchange, status: number, bytes: number, endedAt: number): void;
}

/** Maximum characters of a user's id in a line. */
const MAX_USER_LENGTH = 200;

export function createAccessLog(sink: LineSink): AccessLog {
  return {
    write(exchange, status, bytes, endedAt) {
      const { resolved, verb, operation, credential, userId, requestId, tool } = exchange;
      const path = quote(resolved?.path.raw ?? '');
      const key = credential === '' ? '' : `,"credential":${quote(credential)}`;
      const who = userId === undefined ? key : `${key},"user":${quote(userId.slice(0, MAX_USER_LENGTH))}`;
      const caller = tool === undefined ? who : `${who},"tool":"${tool.name}"`;
      sink.write(
        `${lineStart()},"method":"${verb}","path":${path},"page":${quoteName(servingPage(exchange))},"operation":${quoteName(operation)},"status":${status},"duration_ms":${milliseconds(endedAt - exchange.startedAt)},"bytes":${bytes}${caller},"request_id":"${requestId}"}\n`,
      );
    },
  };
}

/** Three decimals. `toFixed()` would cost more than the rest of the line. */
function milliseconds(duration: number): string {
  const micros = Math.round(duration * 1000);
  const integer = Math.floor(micros / 1000);
  return `${integer}.${THOUSANDTHS[micros - integer * 1000]}`;
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));

let lastMillisecond = 0;
let lastStart = '';

/** The beginning of a line, which all lines of one millisecond share. */
function lineStart(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastStart = `{"time":"${new Date(millisecond).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
  }
  return lastStart;
}

/** A character that JSON escapes, or that a terminal could obey. */
const UNUSUAL = /[^ !#-[\]-~]/;

function quote(text: string): string {
  return UNUSUAL.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const quotedNames = new Map<string, string>();

/**
 * Quotes the name of a group or an operation, each only once: a check of the name in each line costs a hundredth of a
 * request. The controllers bound the number of names.
 */
function quoteName(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) {
    quoted = quote(name);
    quotedNames.set(name, quoted);
  }
  return quoted;
}

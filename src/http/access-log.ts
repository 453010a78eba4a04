// The log line of each request, written when the last byte of its answer is out. Never a header value, a body or a
// query.
import type { LineSink } from '../base/log.ts';
import { servingPage } from '../base/page-name.ts';
import type { Exchange } from './exchange.ts';

export interface AccessLog {
  /** @param endedAt `performance.now()` */
  write(exchange: Exchange, status: number, bytes: number, endedAt: number): void;
}

/** Characters of the id of a user in a line. */
const LONGEST_USER = 200;

export function createAccessLog(sink: LineSink): AccessLog {
  return {
    write(exchange, status, bytes, endedAt) {
      const { resolved, verb, operation, credential, user, requestId } = exchange;
      const path = quote(resolved?.path.raw ?? '');
      const key = credential === '' ? '' : `,"credential":${quote(credential)}`;
      const who = user === undefined ? key : `${key},"user":${quote(String(user.id).slice(0, LONGEST_USER))}`;
      sink.write(
        `${lineStart()},"method":"${verb}","path":${path},"page":${quoteName(servingPage(exchange))},"operation":${quoteName(operation)},"status":${status},"duration_ms":${milliseconds(endedAt - exchange.startedAt)},"bytes":${bytes}${who},"request_id":"${requestId}"}\n`,
      );
    },
  };
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
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastStart = `{"time":"${new Date(millisecond).toISOString()}","level":"info","event":"request","pid":${process.pid}`;
  }
  return lastStart;
}

/** What JSON writes in another way, or a terminal could obey. */
const UNUSUAL = /[^ !#-[\]-~]/;

function quote(text: string): string {
  return UNUSUAL.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const names = new Map<string, string>();

/**
 * Of a group or an operation. There are no more of them than controllers have; to look at each for each line is a
 * hundredth of a request.
 */
function quoteName(name: string): string {
  let known = names.get(name);
  if (known === undefined) {
    known = quote(name);
    names.set(name, known);
  }
  return known;
}

// The one shape of every error on every port, and a whole refusal as text for a connection that sent no request. This
// file knows no port; each has its own headers.
import { STATUS_CODES } from './builtins.ts';
import type { HttpError } from './errors.ts';
import { unixTime } from './time.ts';

/** The body of a refusal, put together by hand: a request id is its own JSON. */
export function envelope(error: HttpError, requestId: string, detail?: object): string {
  const errors = error.details === undefined ? '' : `,"errors":${encodeDetails(error.details)}`;
  const end = detail === undefined ? '' : `,"detail":${JSON.stringify(detail)}`;
  return `${envelopeStart(error)}${unixTime()},"request_id":"${requestId}"${errors}${end}}`;
}

/** `[]` for details without a JSON form: a controller may give any, and the refusal is sent all the same. */
function encodeDetails(details: unknown): string {
  try {
    return Array.isArray(details) ? JSON.stringify(details) : '[]';
  } catch {
    return '[]';
  }
}

let lastRefusal: HttpError | undefined;
let lastStart = '';

/**
 * The start of an envelope. The last one is kept if its refusal is a frozen one of the catalogue: such refusals come in
 * floods.
 */
function envelopeStart(error: HttpError): string {
  if (error === lastRefusal) return lastStart;
  const start = `{"status":"error","error_code":${JSON.stringify(error.code)},"message":${JSON.stringify(error.message)},"timestamp":`;
  if (Object.isFrozen(error)) {
    lastRefusal = error;
    lastStart = start;
  }
  return start;
}

/**
 * A whole answer as text, for a connection on which Node's parser gave up.
 *
 * @param headers those of the port, names and values in turn
 */
export function rawRefusal(error: HttpError, requestId: string, headers: readonly string[]): string {
  const { status } = error;
  const body = envelope(error, requestId);
  const date = new Date().toUTCString();
  const all = [
    'Date',
    date,
    ...headers,
    'X-Request-Id',
    requestId,
    'Content-Length',
    Buffer.byteLength(body),
    'Connection',
    'close',
  ];
  let lines = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i < all.length; i += 2) lines += `${all[i]}: ${all[i + 1]}\r\n`;
  return `${lines}\r\n${body}`;
}

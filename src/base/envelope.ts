// Builds the JSON body of every error on every port:
// `{"status":"error","error_code":"RATE_LIMITED","message":"…","timestamp":1780000000,"request_id":"4f2a9c0d1e7b-2s"}`
import { STATUS_CODES } from './builtins.ts';
import type { HttpError } from './errors.ts';
import { attempt } from './failure.ts';
import { unixTime } from './time.ts';

export const JSON_TYPE = 'application/json; charset=UTF-8';

/**
 * Returns the JSON body of an error. A request id has no character that JSON escapes, so the id is inserted as it is.
 *
 * @param causeFacts describes the cause for developers. Becomes the field `detail`, which is absent when undefined.
 */
export function envelope(error: HttpError, requestId: string, causeFacts?: object): string {
  const errorsField = error.details === undefined ? '' : `,"errors":${encodeDetails(error.details)}`;
  const detailField = causeFacts === undefined ? '' : `,"detail":${JSON.stringify(causeFacts)}`;
  return `${envelopeStart(error)}${unixTime()},"request_id":"${requestId}"${errorsField}${detailField}}`;
}

/** Returns `[]` for details that are no list or have no JSON. A controller may have changed the details. */
function encodeDetails(details: unknown): string {
  return attempt(() => (Array.isArray(details) ? JSON.stringify(details) : '[]'), '[]');
}

let cachedError: HttpError | undefined;
let cachedStart = '';

/**
 * Returns the text of the envelope before its timestamp. `refusal(code)` of errors.ts returns one shared, frozen error
 * per code. Such an error may be sent thousands of times a second, so its text is cached. The text of any other error
 * is not cached, because that error can still change.
 */
function envelopeStart(error: HttpError): string {
  if (error === cachedError) return cachedStart;
  const start = `{"status":"error","error_code":${JSON.stringify(error.code)},"message":${JSON.stringify(error.message)},"timestamp":`;
  if (Object.isFrozen(error)) {
    cachedError = error;
    cachedStart = start;
  }
  return start;
}

/**
 * Returns a whole response as text, for a connection whose request Node's parser rejected.
 *
 * @param headers the headers of the port, as alternating names and values
 * @param response replaces the status and the envelope of the error, when the service file has a `formatError`
 */
export function rawRefusal(
  error: HttpError,
  requestId: string,
  headers: readonly string[],
  response = { status: error.status, text: envelope(error, requestId) },
): string {
  const { status, text: body } = response;
  let lines = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\nDate: ${new Date().toUTCString()}\r\n`;
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  lines += `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n`;
  return `${lines}\r\n${body}`;
}

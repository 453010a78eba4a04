// Builds the body that every error has on every port (the envelope), and a whole response as text for a connection
// whose request Node could not parse. The headers of a port are the caller's.
import { STATUS_CODES } from './builtins.ts';
import type { HttpError } from './errors.ts';
import { unixTime } from './time.ts';

/** Returns the JSON body of a refusal. The request id is inserted as it is: it has no character that JSON escapes. */
export function envelope(error: HttpError, requestId: string, detail?: object): string {
  const errors = error.details === undefined ? '' : `,"errors":${encodeDetails(error.details)}`;
  const end = detail === undefined ? '' : `,"detail":${JSON.stringify(detail)}`;
  return `${envelopeStart(error)}${unixTime()},"request_id":"${requestId}"${errors}${end}}`;
}

/** Encodes the details that a controller may have set. Where JSON cannot encode them, the refusal is sent with `[]`. */
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
 * Returns the fields that are the same each time an error is sent. The last result is kept if its error is a shared,
 * frozen one of the catalogue, because those come in floods.
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
 * Returns a whole response as text, for a connection whose request Node's parser rejected.
 *
 * @param headers of the port: names and values in turn
 * @param body a status and a body in the place of the envelope
 */
export function rawRefusal(
  error: HttpError,
  requestId: string,
  headers: readonly string[],
  { status, text: body } = { status: error.status, text: envelope(error, requestId) },
): string {
  const date = new Date().toUTCString();
  const fields = [
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
  for (let i = 0; i < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${lines}\r\n${body}`;
}

// The one shape of every error (decisions 5), and a whole refusal as text for what never became a request.
import { STATUS_CODES } from '../../base/builtins.ts';
import type { HttpError } from '../../base/errors.ts';
import { JSON_HEADERS, NO_STORE } from '../headers.ts';

function unixTime(): number {
  return Math.floor(Date.now() / 1000);
}

/** Put together by hand: a request id is its own JSON. */
export function envelope(error: HttpError, requestId: string, detail?: object): string {
  const errors = error.details === undefined ? '' : `,"errors":${encodeDetails(error.details)}`;
  const end = detail === undefined ? '' : `,"detail":${JSON.stringify(detail)}`;
  return `${envelopeStart(error)}${unixTime()},"request_id":"${requestId}"${errors}${end}}`;
}

/** They are the controller's own, so they may have no JSON form; the refusal stands all the same. */
function encodeDetails(details: unknown): string {
  try {
    return Array.isArray(details) ? JSON.stringify(details) : '[]';
  } catch {
    return '[]';
  }
}

let lastRefusal: HttpError | undefined;
let lastStart = '';

/** Kept for the refusal last answered, if it is a frozen one of the catalogue: they come in floods. */
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
 * A whole answer as text, for a connection whose request never became one: Node's parser gave up on it.
 *
 * @param extra header lines, each with its CRLF
 */
export function rawRefusal(error: HttpError, requestId: string, extra = ''): string {
  const { status } = error;
  const body = envelope(error, requestId);
  const headers = [
    ...JSON_HEADERS,
    ...NO_STORE,
    'X-Request-Id',
    requestId,
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Connection',
    'close',
  ];
  let lines = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n${extra}`;
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${lines}\r\n${body}`;
}

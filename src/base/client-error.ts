// Explains the errors of Node's event `clientError`: bytes that the HTTP parser rejects, or a request that is too slow.
import type { ErrorCode } from './errors.ts';

/** Key: an error code of Node. Value: the code of the refusal. Any other code of Node means malformed bytes. */
const REFUSAL_CODES: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ['HPE_INVALID_URL', 'MALFORMED_PATH'],
  ['HPE_HEADER_OVERFLOW', 'HEADERS_TOO_LARGE'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'BODY_TOO_LARGE'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'REQUEST_TIMEOUT'],
]);

export function refusalCodeOf(clientError: NodeJS.ErrnoException): ErrorCode {
  return REFUSAL_CODES.get(clientError.code) ?? 'MALFORMED_REQUEST';
}

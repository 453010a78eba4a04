// The catalogue of all error codes, so that a status and a message are written once. docs/ERRORS.md documents each row,
// and a test compares both.
import type { ReplyHeaders } from '../api/controller/reply.ts';
import { isErrorStatus, isPlainObject, showStatus } from './values.ts';

export const CATALOGUE = {
  MALFORMED_REQUEST: { status: 400, message: 'The request is not valid HTTP/1.1' },
  HTTPS_REQUIRED: { status: 400, message: 'This port speaks HTTPS' },
  MALFORMED_HOST: { status: 400, message: 'The Host header is missing, repeated or not a host' },
  MALFORMED_PATH: { status: 400, message: 'The request target cannot be decoded' },
  TOO_MANY_HEADERS: { status: 400, message: 'The request has too many header lines' },
  DUPLICATE_AUTHORIZATION: { status: 400, message: 'The request has more than one Authorization header' },
  MALFORMED_JSON: { status: 400, message: 'The body is not valid JSON' },
  MALFORMED_BODY: { status: 400, message: 'The body cannot be decoded as its content type says' },
  FORBIDDEN_KEY: { status: 400, message: 'The body has a key that is not accepted' },
  INVALID_REQUEST_DATA: { status: 400, message: 'A field of the request is missing or makes no sense' },
  CSRF_TOKEN_MISMATCH: { status: 400, message: 'The g_csrf_token of the form and of the cookie differ' },
  INVALID_CREDENTIAL: { status: 401, message: 'The application credential is not valid' },
  CREDENTIAL_REQUIRED: { status: 401, message: 'Send the credential of a registered application' },
  USER_REQUIRED: { status: 401, message: 'Sign in: the operation is for users alone' },
  INVALID_ID_TOKEN: { status: 401, message: 'The identity token is not valid' },
  SCOPE_MISSING: { status: 403, message: 'This credential lacks a scope that the operation requires' },
  ACCESS_DENIED: { status: 403, message: 'The caller may not use this operation' },
  ORIGIN_NOT_ALLOWED: { status: 403, message: 'A page of this origin may not make the request: list it in cors' },
  NOT_REGISTERED: { status: 403, message: 'This identity has no registered application' },
  REGISTRATION_CLOSED: { status: 403, message: 'This identity may not register' },
  GROUP_NOT_ALLOWED: { status: 403, message: 'This application may not use the handler group' },
  NOT_FOUND: { status: 404, message: 'Not found: every path starts with /api' },
  GROUP_NOT_FOUND: { status: 404, message: 'There is no such handler group' },
  FILE_NOT_FOUND: { status: 404, message: 'There is no such file' },
  ROUTE_NOT_FOUND: { status: 404, message: 'No route of the handler group fits the path' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'The method is not allowed here' },
  REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive' },
  ALREADY_REGISTERED: { status: 409, message: 'This identity has already registered an application of this name' },
  TOO_MANY_APPLICATIONS: { status: 409, message: 'This identity has registered as many applications as it may' },
  SUBSCRIBER_TOO_SLOW: { status: 408, message: 'The subscriber did not keep up with the channel' },
  PRECONDITION_FAILED: {
    status: 412,
    message: 'The resource is not, or no longer, as If-Match or If-Unmodified-Since says',
  },
  BODY_TOO_LARGE: { status: 413, message: 'The body is larger than the limit' },
  TOO_MANY_FIELDS: { status: 413, message: 'The form or the query has too many fields' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'The content type is not supported' },
  UNSUPPORTED_CHARSET: { status: 415, message: 'The charset is not supported, only UTF-8 is' },
  UNSUPPORTED_ENCODING: { status: 415, message: 'The content encoding is not supported' },
  RANGE_NOT_SATISFIABLE: { status: 416, message: 'The file has no such part' },
  EXPECTATION_FAILED: { status: 417, message: 'The only expectation served is 100-continue' },
  MISDIRECTED_REQUEST: { status: 421, message: 'The Host header names none of the domains of this service' },
  INVALID_DATA: { status: 422, message: 'The request data is not what this operation takes' },
  PRECONDITION_REQUIRED: { status: 428, message: 'Send If-Match with the ETag that the change is based on' },
  RATE_LIMITED: { status: 429, message: 'There were more requests than the limit allows' },
  HEADERS_TOO_LARGE: { status: 431, message: 'The header section is larger than the limit' },
  INTERNAL_ERROR: { status: 500, message: 'The request could not be answered' },
  OPERATION_NOT_FOUND: { status: 500, message: 'The handler group has no operation for this request' },
  SERVICE_NOT_LOADABLE: { status: 500, message: 'The service file cannot be loaded' },
  GROUP_NOT_LOADABLE: { status: 500, message: 'The handler group cannot be loaded' },
  DELEGATED_GROUP_NOT_FOUND: {
    status: 500,
    message: 'The request was delegated to a handler group that does not exist',
  },
  UNENCODABLE_RESULT: { status: 500, message: 'The result cannot be encoded as JSON' },
  UNSUPPORTED_TRANSFER_CODING: { status: 501, message: 'The only transfer coding served is chunked' },
  IDENTITY_NOT_CONFIGURED: { status: 503, message: 'No identity provider is configured' },
  IDENTITY_UNAVAILABLE: { status: 503, message: "The identity provider's keys are temporarily unavailable" },
  REGISTRATION_UNAVAILABLE: { status: 503, message: 'Registration is temporarily unavailable' },
  SESSION_UNAVAILABLE: { status: 503, message: 'Sign-in is temporarily unavailable' },
  STORE_AWAY: { status: 503, message: 'Credentials cannot be checked at the moment' },
  GROUP_LOADING: { status: 503, message: 'The handler group is being loaded: repeat the request' },
  CHANNEL_BUSY: { status: 503, message: 'The channel takes no more events at the moment' },
  OPERATION_TIMEOUT: { status: 503, message: 'The operation did not finish in time' },
  OVERLOADED: { status: 503, message: 'The server has more requests under way than it takes' },
  HTTP_VERSION_NOT_SUPPORTED: { status: 505, message: 'Only HTTP/1.0 and HTTP/1.1 are served' },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof CATALOGUE;

const BRAND = Symbol.for('gatefold.HttpError');

export interface HttpErrorOptions {
  /** Further response headers, for example `{ 'Retry-After': '30' }`. */
  readonly headers?: ReplyHeaders;
  /** For the log. A client gets it only with `NODE_ENV=development`, in `detail`. */
  readonly cause?: unknown;
  /** One entry for each mistake. The client gets the list as `errors`. */
  readonly details?: readonly ErrorDetail[];
}

export interface ErrorDetail {
  /** JSON pointer (RFC 6901) to the wrong value. An empty pointer means the whole data. */
  readonly pointer: string;
  readonly message: string;
  /** The part of the request that has the value. */
  readonly in?: 'body' | 'query' | 'path' | 'header';
  /** The code of the mistake, such as `minLength`. docs/ERRORS.md has the codes of the service itself. */
  readonly code?: string;
  /** The values in the message: `{ limit: 3 }`. */
  readonly params?: Readonly<Record<string, unknown>>;
  readonly [more: string]: unknown;
}

/**
 * Refuses a request when thrown. The client gets `status`, `code` as `error_code`, and `message`.
 *
 * @example throw new HttpError(422, 'NAME_TAKEN', 'There is a user of this name');
 * @throws TypeError when `status` is not a whole number from 400 to 599, `code` is not `[A-Z][A-Z0-9_]*`, `message` is
 *   not a string, `details` is not a list, or `headers` is not a plain object
 */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: ReplyHeaders | undefined;
  readonly details: readonly ErrorDetail[] | undefined;

  constructor(status: number, code: string, message: string, options: HttpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!isErrorStatus(status))
      throw new TypeError(`HttpError: the status is ${showStatus(status)}, it must be a whole number from 400 to 599`);
    if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]*$/.test(code))
      throw new TypeError(`HttpError: the code is ${JSON.stringify(code)}, it must look like NAME_TAKEN`);
    if (typeof message !== 'string') throw new TypeError('HttpError: the message must be a string');
    if (options.details !== undefined && !Array.isArray(options.details))
      throw new TypeError('HttpError: details must be a list');
    if (options.headers !== undefined && !isPlainObject(options.headers))
      throw new TypeError('HttpError: headers must be a plain object');
    this.status = status;
    this.code = code;
    this.headers = options.headers;
    this.details = options.details;
  }
}

Object.defineProperty(HttpError.prototype, 'name', { value: 'HttpError', configurable: true, writable: true });
// `isHttpError` checks a global symbol, because `instanceof` does not recognize the errors of another copy of this
// package. A controller may import another copy than the one that serves it.
Object.defineProperty(HttpError.prototype, BRAND, { value: true });

export function isHttpError(value: unknown): value is HttpError {
  return value instanceof Error && (value as { [BRAND]?: unknown })[BRAND] === true;
}

/** The errors with default messages. To record a stack is slow and useless here, so each error is made once. */
const sharedErrors = new Map<ErrorCode, HttpError>();

/** Returns the error of a code, for the caller to throw. `message` replaces the message of CATALOGUE. */
export function refusal(code: ErrorCode, message?: string, options?: HttpErrorOptions): HttpError {
  const row = CATALOGUE[code];
  if (message !== undefined || options !== undefined)
    return new HttpError(row.status, code, message ?? row.message, options);
  const error = sharedErrors.get(code) ?? Object.freeze(new HttpError(row.status, code, row.message));
  sharedErrors.set(code, error);
  return error;
}

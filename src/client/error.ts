// The one class that a call of the client is rejected with. It knows the service's envelope and nothing of fetch.

/** One wrong field. `pointer` is a JSON pointer (RFC 6901): `/items/0/price`. */
export interface FieldError {
  readonly in?: 'body' | 'query' | 'path';
  readonly pointer: string;
  readonly message: string;
}

export interface ApiErrorDetails {
  readonly errors?: readonly FieldError[] | undefined;
  readonly requestId?: string | undefined;
  readonly response?: Response | undefined;
  readonly cause?: unknown;
}

/** What a call is rejected with. Only a call whose own `signal` was aborted is rejected with the signal's reason. */
export class ApiError extends Error {
  /** The HTTP status; 0: no answer came. */
  readonly status: number;
  /**
   * `error_code` of the answer. Without an answer `NETWORK_ERROR` or `TIMEOUT`; `HTTP_502` of a proxy that sent no
   * envelope.
   */
  readonly code: string;
  /** Each wrong field, of `INVALID_DATA` and of errors that the controller gave details. */
  readonly errors: readonly FieldError[];
  /** To be looked for in the service's log. */
  readonly requestId: string | undefined;
  /** For its headers: the body has been read. */
  readonly response: Response | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    { errors = [], requestId, response, cause }: ApiErrorDetails = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.requestId = requestId;
    this.response = response;
  }
}

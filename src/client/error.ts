// The error of the client's calls. This file knows the service's error envelope, and does not know `fetch`.

/** One wrong field of a request. */
export interface FieldError {
  /** The part of the request that has the field. Undefined: the controller named none. */
  readonly in?: 'body' | 'query' | 'path';
  /** A JSON pointer (RFC 6901) into that part: `/items/0/price`; empty: the part itself. */
  readonly pointer: string;
  /** `must be a number`, `is missing`. */
  readonly message: string;
}

export interface ApiErrorDetails {
  readonly errors?: readonly FieldError[] | undefined;
  readonly requestId?: string | undefined;
  readonly response?: Response | undefined;
  readonly cause?: unknown;
}

/** The error of a failed call. A call whose own `signal` is aborted is rejected with the signal's reason instead. */
export class ApiError extends Error {
  /** The HTTP status; 0: no complete answer came. */
  readonly status: number;
  /**
   * The `error_code` of the answer. `HTTP_502` and the like: the answer, from a proxy for example, has no `error_code`.
   * `NETWORK_ERROR`, `TIMEOUT`: no complete answer came.
   */
  readonly code: string;
  /** The wrong fields: of `INVALID_DATA`, and of an error to which the controller added details. */
  readonly errors: readonly FieldError[];
  /** The id of the request in the service's log. */
  readonly requestId: string | undefined;
  /** The answer, for its headers. Its body has been read. */
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

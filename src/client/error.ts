// The error of a failed call of the client.

/** One wrong field of a request. */
export interface FieldError {
  /** The part of the request that has the field; undefined when the controller named no part. */
  readonly in?: 'body' | 'query' | 'path';
  /** A JSON pointer (RFC 6901) into that part, such as `/items/0/price`; empty for the part itself. */
  readonly pointer: string;
  /** The mistake, such as `must be a number` or `is missing`. */
  readonly message: string;
}

export interface ApiErrorDetails {
  readonly errors?: readonly FieldError[] | undefined;
  readonly requestId?: string | undefined;
  readonly response?: Response | undefined;
  readonly body?: unknown;
  readonly cause?: unknown;
}

/**
 * The error of a failed call. A call is rejected with another reason when its own `signal` is aborted, when the
 * function `authorization` fails, or when the request cannot be built.
 */
export class ApiError<Body = unknown> extends Error {
  /** The body of the answer: the parsed JSON, or the text when it is not JSON; undefined when no answer came. */
  readonly body: Body;
  /** The HTTP status; 0 when no complete answer came. */
  readonly status: number;
  /**
   * The code of the error, which is one of these:
   * - The `error_code` of the answer.
   * - `HTTP_502` and the like: the answer has no `error_code`, because a proxy has sent it, or because `formatError` of
   *   the service file has made its body.
   * - `NETWORK_ERROR`, `TIMEOUT`: no complete answer came.
   */
  readonly code: string;
  /** The wrong fields, when the code is `INVALID_DATA`, or when the controller added details to its error. */
  readonly errors: readonly FieldError[];
  /** The id of the request in the service's log. */
  readonly requestId: string | undefined;
  /** The answer, for example to read its headers. The body of the answer has already been read. */
  readonly response: Response | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    { errors = [], requestId, response, body, cause }: ApiErrorDetails = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.requestId = requestId;
    this.response = response;
    this.body = body as Body;
  }
}

/**
 * Returns whether an error is an `ApiError`. `isApiError<MyError>(error)` also gives `error.body` a type: the type that
 * `formatError` of the service file returns. The body itself is not checked, and an answer of a proxy has another body.
 *
 * @example
 * if (isApiError<{ errors: { body: string[] } }>(error) && error.status === 422) show(error.body.errors.body);
 */
export function isApiError<Body = unknown>(error: unknown): error is ApiError<Body> {
  return error instanceof ApiError;
}

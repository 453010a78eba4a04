/** One wrong field of a request. */
export interface FieldError {
  /** The part of the request that has the field; undefined when the controller named no part. */
  readonly in?: 'body' | 'query' | 'path' | 'header';
  /** A JSON pointer (RFC 6901) into that part, such as `/items/0/price`; empty for the part itself. */
  readonly pointer: string;
  /** The mistake, such as `must be a number` or `is missing`. */
  readonly message: string;
  /** The code of the mistake, such as `minLength`; undefined when the controller named none. */
  readonly code?: string;
  /** The values in the message, such as `{ limit: 3 }`. */
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Not made from the fields of ApiError: `cause` of an Error needs `lib: ES2022`, which not every front end has. */
interface ApiErrorDetails {
  readonly errors?: readonly FieldError[] | undefined;
  readonly requestId?: string | undefined;
  readonly response?: Response | undefined;
  readonly body?: unknown;
  readonly cause?: unknown;
}

/**
 * The error of a failed call. A call is rejected with another value in three cases: its own `signal` is aborted, the
 * function `authorization` fails, or the request cannot be built.
 */
export class ApiError<Body = unknown> extends Error {
  /** The body of the answer: the parsed JSON, or else the text; undefined when no complete answer came. */
  readonly body: Body;
  /** The HTTP status of the answer; 0 when no complete answer came. */
  readonly status: number;
  /**
   * The code of the error, which is one of these:
   * - The `error_code` of the answer.
   * - `HTTP_` and the status, such as `HTTP_502`: the answer has no `error_code`. A proxy has sent the answer, or
   *   `formatError` of the service file has made its body.
   * - `NETWORK_ERROR`: no complete answer came.
   * - `REDIRECT_REFUSED`: the answer is a redirect, and the call has headers.
   * - `TIMEOUT`: no complete answer came within the call's `timeout`.
   */
  readonly code: string;
  /** The wrong fields; empty unless the code is `INVALID_DATA`, or the controller added details to its error. */
  readonly errors: readonly FieldError[];
  /** The id of the request in the service's log; undefined when no complete answer came, or one without an id. */
  readonly requestId: string | undefined;
  /** The answer, whose body has already been read; undefined when no complete answer came. */
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
 * Returns whether an error is an `ApiError`. `isApiError<MyBody>(error)` also gives `error.body` the type `MyBody`, for
 * a service file whose `formatError` returns this type. The body is not checked: a proxy's answer has another body.
 *
 * @example
 * if (isApiError<{ errors: { body: string[] } }>(error) && error.status === 422) show(error.body.errors.body);
 */
export function isApiError<Body = unknown>(error: unknown): error is ApiError<Body> {
  return error instanceof ApiError;
}

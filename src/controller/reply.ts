// A result with a status and headers: `return new Reply(201, user, { Location: '/api/user/7' })`. http/answer/result.ts
// sends it.

/** Header fields by name. A list sends one field for each entry: `Set-Cookie` needs one field for each cookie. */
export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

const BRAND = Symbol.for('gatefold.Reply');

/**
 * A result with a status and headers of its own.
 *
 * @example return new Reply(201, order, { Location: `/api/order/${order.id}`, ETag: `"${order.version}"` });
 * @example return new Reply(204);
 */
export class Reply<Status extends number = number, Body = unknown> {
  readonly status: Status;
  /**
   * The body of the answer. Bytes, a stream or an event stream are sent as they are, and any other value as JSON. If
   * undefined, no body is sent.
   */
  readonly body: Body | undefined;
  readonly headers: ReplyHeaders | undefined;

  /**
   * @param body ignored for 204, 205 and 304, which never have a body
   * @param headers the server sets `Content-Length`, `Transfer-Encoding`, `Connection`, `X-Request-Id` and the CORS
   *   headers itself
   * @throws TypeError when `status` is not a whole number from 200 to 399; an operation refuses with an HttpError
   */
  constructor(status: Status, body?: Body, headers?: ReplyHeaders) {
    if (!Number.isInteger(status) || status < 200 || status > 399) {
      throw new TypeError(
        `Reply: the status is ${status}, but it must be a whole number from 200 to 399; throw an HttpError to refuse`,
      );
    }
    this.status = status;
    this.body = body;
    this.headers = headers;
  }

  /**
   * Creates a redirect.
   *
   * @param status 301, 302, 303, 307 or 308; default: 302
   * @throws TypeError when `status` is not a whole number from 200 to 399
   */
  static redirect(location: string | URL, status = 302): Reply<number, undefined> {
    return new Reply(status, undefined, { Location: String(location) });
  }
}

// A global symbol marks a Reply, because `instanceof` fails when a controller imports another copy of this package.
Object.defineProperty(Reply.prototype, BRAND, { value: true });

export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

// An answer with a status and headers of its own: `return new Reply(201, user, { Location: '/api/user/7' })`. It
// carries what the operation said; how it becomes bytes is http/answer/result.ts.

/** Several values of one name: a list. `Set-Cookie` needs one for each cookie. */
export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

const BRAND = Symbol.for('gatefold.Reply');

/**
 * @example return new Reply(201, order, { Location: `/api/order/${order.id}`, ETag: `"${order.version}"` });
 * @example return new Reply(204);
 */
export class Reply<Status extends number = number, Body = unknown> {
  readonly status: Status;
  /** JSON by the rules of any result; or bytes, a stream, an event stream, sent as they are. Left out: no body. */
  readonly body: Body | undefined;
  readonly headers: ReplyHeaders | undefined;

  /**
   * @param body 204, 205 and 304 never have one
   * @param headers `Content-Length`, `Transfer-Encoding`, `Connection`, the CORS headers and `X-Request-Id` are the
   *   server's
   * @throws TypeError when `status` is not a whole number from 200 to 399; to refuse, throw an HttpError
   */
  constructor(status: Status, body?: Body, headers?: ReplyHeaders) {
    if (!Number.isInteger(status) || status < 200 || status > 399) {
      throw new TypeError(
        `Reply: the status is ${status}, it must be a whole number from 200 to 399; throw an HttpError to refuse`,
      );
    }
    this.status = status;
    this.body = body;
    this.headers = headers;
  }

  /** @param status 301, 302, 303, 307 or 308 */
  static redirect(location: string | URL, status = 302): Reply<number, undefined> {
    return new Reply(status, undefined, { Location: String(location) });
  }
}

// A global symbol, not `instanceof`: a controller may import another copy of this package than the one that serves it.
Object.defineProperty(Reply.prototype, BRAND, { value: true });

export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

// A result with a status and headers. request/answer/result.ts sends it.
import { isReplyStatus, showStatus } from '../../base/values.ts';

/** Header fields by name. A list sends one field for each entry: `Set-Cookie` needs one field for each cookie. */
export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

/** Marks a Reply, because `instanceof` fails when a controller imports another copy of this package. */
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
   * Bytes and streams are sent as they are, and so is a text whose `Content-Type` is not JSON. Any other value is sent
   * as JSON. For undefined, no body is sent.
   */
  readonly body: Body | undefined;
  readonly headers: ReplyHeaders | undefined;

  /**
   * @param body ignored for 204, 205 and 304, which never have a body
   * @param headers without `Content-Length`, `Transfer-Encoding`, `Connection`, `X-Request-Id` and the CORS headers,
   *   which the server sets
   * @throws TypeError when `status` is not a whole number from 200 to 399. To refuse, an operation throws an HttpError
   */
  constructor(status: Status, body?: Body, headers?: ReplyHeaders) {
    if (!isReplyStatus(status)) {
      throw new TypeError(
        `Reply: the status is ${showStatus(status)}, but it must be a whole number from 200 to 399; throw an HttpError to refuse`,
      );
    }
    this.status = status;
    this.body = body;
    this.headers = headers;
  }

  /**
   * Creates a redirect. Characters that no URL has are encoded: `/tag/grün` becomes `/tag/gr%C3%BCn`.
   *
   * @param status 301, 302, 303, 307 or 308; default: 302. Other values from 200 to 399 are not refused
   * @throws TypeError when `status` is not a whole number from 200 to 399
   */
  static redirect<Status extends number = 302>(location: string | URL, status?: Status): Reply<Status, undefined> {
    // A header has a byte for each character, and browsers do not agree on the meaning of such a byte.
    const headers = { Location: String(location).replace(/[^!-~]+/g, encodeURIComponent) };
    return new Reply(status ?? (302 as Status), undefined, headers);
  }
}

Object.defineProperty(Reply.prototype, BRAND, { value: true });

export function isReply(value: unknown): value is Reply {
  return Object(value)[BRAND] === true;
}

// Server-sent events (WHATWG HTML, 9.2) as an operation returns them. What is sent, and when, is
// http/answer/event-stream.ts.

/** One event. `data` is sent as JSON, so that a client can always parse it. */
export interface ServerEvent<Data = unknown> {
  readonly data: Data;
  /** The type that a client listens to; default: `message`. */
  readonly event?: string;
  /** Comes back as `params.lastEventId` when the client reconnects. */
  readonly id?: string;
  /** Milliseconds that the client waits before it reconnects, from now on. */
  readonly retry?: number;
}

export interface EventStreamOptions {
  /** Milliseconds that a client waits before it reconnects; default: 500. */
  readonly retry?: number;
}

const BRAND = Symbol.for('gatefold.EventStream');

export class EventStream<Data = unknown> {
  readonly source: AsyncIterable<ServerEvent<Data> | Data>;
  readonly options: EventStreamOptions;

  constructor(source: AsyncIterable<ServerEvent<Data> | Data>, options: EventStreamOptions) {
    this.source = source;
    this.options = options;
  }
}
Object.defineProperty(EventStream.prototype, BRAND, { value: true });

/**
 * Returned by an operation, it answers with an event for each item of `source`. An item is a value, or `{ data, event?,
 * id?, retry? }`. The stream ends with its source, and when the client leaves. The service ends the stream when the
 * credential is revoked or expires, and when the worker makes room for new code. The client then reconnects by itself,
 * and `params.lastEventId` says where it was. `params.signal` is aborted in all these cases.
 *
 * @throws TypeError when `source` is no async iterable, or `retry` no number of milliseconds
 */
export function eventStream<Data>(
  source: AsyncIterable<ServerEvent<Data> | Data>,
  options: EventStreamOptions = {},
): EventStream<Data> {
  if (typeof source?.[Symbol.asyncIterator] !== 'function')
    throw new TypeError('eventStream: the source must be an async iterable');
  const { retry } = options;
  if (retry !== undefined) checkRetry(retry, 'eventStream: retry');
  return new EventStream(source, options);
}

/** The longest time that a client's timer takes. A longer one would end at once. */
const LONGEST_RETRY = 2 ** 31 - 1;

/** Checks a number of milliseconds. @throws TypeError */
export function checkRetry(retry: unknown, name: string): void {
  if (!Number.isInteger(retry) || (retry as number) < 0 || (retry as number) > LONGEST_RETRY)
    throw new TypeError(`${name} must be a whole number of milliseconds, ${LONGEST_RETRY} at most`);
}

export function isEventStream(value: unknown): value is EventStream {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

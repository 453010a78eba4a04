// A result that is a stream of server-sent events (HTML standard, 9.2), which request/answer/event-stream.ts sends.
import { isBetween } from '../../base/values.ts';

/** One server-sent event. */
export interface ServerEvent<Data = unknown> {
  /** The content of the event. It is sent as JSON, so that every client can parse it. */
  readonly data: Data;
  /** The type to which a client listens; default: `message`. */
  readonly event?: string;
  /** The id that a client sends back when it reconnects. The operation then gets the id as `params.lastEventId`. */
  readonly id?: string;
  /** Milliseconds that the client waits before each reconnection, from this event on. */
  readonly retry?: number;
}

export interface EventStreamOptions {
  /** Milliseconds that a client waits before it reconnects; default: 500. */
  readonly retry?: number;
}

/** Marks an EventStream, because `instanceof` fails when a controller imports another copy of this package. */
const BRAND = Symbol.for('gatefold.EventStream');

/** A stream of events as a result. `eventStream` creates it. */
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
 * Creates a result that sends one event for each item of `source`. An item is a `ServerEvent`, or any other value,
 * which is then the data of the event.
 *
 * The stream ends with its source, or when the client disconnects. The service also ends the stream when the caller's
 * credential is revoked or expires, and when new code replaces the worker. The client then reconnects, and
 * `params.lastEventId` is the id of the last event that it has received. `params.signal` is aborted when a stream ends
 * before its source does.
 *
 * @throws TypeError when `source` is not an async iterable, or `retry` is not a whole number of milliseconds
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

/** The longest timer of JavaScript, in milliseconds. A longer timer in a client would fire at once. */
const MAX_TIMER = 2 ** 31 - 1;

/** Checks a number of milliseconds. @param name the name of the number in the error. @throws TypeError */
export function checkRetry(retry: unknown, name: string): void {
  if (!isBetween(retry, 0, MAX_TIMER))
    throw new TypeError(`${name} must be a whole number of milliseconds, ${MAX_TIMER} at most`);
}

export function isEventStream(value: unknown): value is EventStream {
  return Object(value)[BRAND] === true;
}

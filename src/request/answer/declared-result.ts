// Limits what an operation sends to the fields that its result type declares, in every form of a result: JSON, the body
// of a Reply, the events of a stream. Bytes, streams of bytes and web responses have no fields.
import { type EventStream, isEventStream } from '../../api/controller/event-stream.ts';
import { isReply, type Reply } from '../../api/controller/reply.ts';
import { EVENTS_BEGIN } from '../../base/channel-hub.ts';
import { refusal } from '../../base/errors.ts';
import { isPromise } from '../../base/values.ts';
import type { ResultFilter } from '../../contract/check/result-filter.ts';
import { type EventIterator, isEvent } from './event-stream.ts';
import { isJson } from './json.ts';

/** @throws or rejects with HttpError UNENCODABLE_RESULT, when a part of the result cannot be read */
export function limitResult(filter: ResultFilter, result: unknown): unknown {
  if (!isReply(result)) return limitBody(filter, result, undefined);
  const body = limitBody(filter, result.body, result.status);
  if (isPromise(body)) return body.then((limited) => withField(result, 'body', limited));
  return body === result.body ? result : withField(result, 'body', body);
}

function limitBody(filter: ResultFilter, body: unknown, status: number | undefined): unknown {
  if (typeof body !== 'object' || body === null) return body;
  if (isEventStream(body)) return withField(body, 'source', limitEvents(filter, body.source, status));
  if (!isJson(body)) return body;
  try {
    const copy = filter(body, 'json', status);
    if (isPromise(copy)) return copy.then((limited) => objectOr(filter, body, limited), refuse);
    return objectOr(filter, body, copy);
  } catch (error) {
    return refuse(error);
  }
}

/**
 * A `toJSON` of the whole body can return a text. Then the body is sent as without a filter. The schema of a library
 * can make any value of a body, which is sent in its place.
 */
function objectOr(filter: ResultFilter, body: object, copy: unknown): unknown {
  return !filter.isOutput && (typeof copy !== 'object' || copy === null) ? body : copy;
}

function refuse(cause: unknown): never {
  throw refusal('UNENCODABLE_RESULT', undefined, { cause });
}

/** Keeps the class of a Reply or an EventStream, which can come from another copy of this package. */
function withField<T extends Reply | EventStream>(result: T, name: 'body' | 'source', value: unknown): T {
  return Object.defineProperty(Object.create(result), name, { value, enumerable: true });
}

function limitEvents(filter: ResultFilter, source: AsyncIterable<unknown>, status: number | undefined) {
  return {
    [Symbol.asyncIterator](): EventIterator {
      const iterator: EventIterator = source[Symbol.asyncIterator]();
      return {
        [EVENTS_BEGIN]: async () => (await iterator[EVENTS_BEGIN]?.()) ?? '',
        async next() {
          const { done, value } = await iterator.next();
          if (done === true) return { done, value: undefined };
          if (!isEvent(value)) return { done: false, value: await filter(value, 'events', status) };
          // A channel makes this event itself, so a schema of the author can lack it. It has no data.
          if (value.event === 'reset' && value.data === null) return { done: false, value };
          return { done: false, value: { ...value, data: await filter(value.data, 'events', status) } };
        },
        async return() {
          await iterator.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

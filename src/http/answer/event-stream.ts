// Sends server-sent events (WHATWG HTML, 9.2): an event for each item, a comment every 15 s so that no proxy takes the
// connection for dead, and an end between two events when the worker drains. Such a stream has its connection for
// itself.
import type { ServerResponse } from 'node:http';
import { checkRetry, type EventStream, type ServerEvent } from '../../controller/event-stream.ts';
import { endBody, type StreamEvents } from './byte-stream.ts';
import { lostIn } from './json.ts';
import { hasRoom, spend, whenThereIsRoom } from './turns.ts';

/**
 * Header lines of every event stream, unless the operation brings its own of the name. nginx would gather events
 * otherwise.
 */
export const EVENT_HEADERS = ['Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'] as const;
const HEARTBEAT = 15_000;
/** A client is back on the new code within a second. */
const RETRY = 500;
const FIELDS: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry']);

export interface LiveEvents {
  /** Ends the stream between two events, at once. */
  end(): void;
  /** Gives it up: nobody waits for it any more. */
  cancel(): void;
}

/** @param heartbeat milliseconds between two comments */
export function sendEvents(
  stream: EventStream,
  response: ServerResponse,
  events: StreamEvents,
  heartbeat = HEARTBEAT,
): LiveEvents {
  let bytes = 0;
  let cost = 0;
  let isOver = false;
  let hasBegun = false;
  let timer: NodeJS.Timeout | undefined;
  const retry = stream.options.retry ?? RETRY;
  const iterator = stream.source[Symbol.asyncIterator]();
  response.on('close', closed);
  response.on('error', () => {});
  void run();
  return { end: finish, cancel };

  async function run(): Promise<void> {
    try {
      let next = Promise.resolve(iterator.next()).then(eventOf);
      // A source that fails at once is refused with a status; one that waits for its first event does not make the
      // client wait.
      await Promise.race([next, new Promise(setImmediate)]);
      if (isOver) return;
      hasBegun = true;
      if (!events.begin()) return cancel();
      timer = setInterval(beat, heartbeat);
      write(`retry: ${retry}\n\n`);
      for (;;) {
        const text = await next;
        if (isOver) return;
        if (text === undefined) return endForGood();
        if (!write(text) && !(await drained())) return;
        cost += spend(text.length);
        if (!hasRoom(cost)) await new Promise<void>((goOn) => whenThereIsRoom(cost, goOn));
        if (isOver) return;
        next = Promise.resolve(iterator.next()).then(eventOf);
      }
    } catch (error) {
      if (isOver) return;
      over();
      cancelSource();
      events.fail(error, bytes, hasBegun);
    }
  }

  function write(text: string): boolean {
    bytes += Buffer.byteLength(text);
    return response.write(text);
  }

  /** @returns false: the stream is over */
  function drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const done = () => {
        response.off('drain', done);
        response.off('close', done);
        resolve(!isOver);
      };
      response.on('drain', done);
      response.on('close', done);
    });
  }

  function beat(): void {
    if (!response.writableNeedDrain) write(':\n\n');
  }

  /**
   * Said in a comment, which `EventSource` passes over: a client that knows it does not ask again for what has come to
   * its end.
   */
  function endForGood(): void {
    write(': end\n\n');
    finish();
  }

  function finish(): void {
    if (isOver) return;
    over();
    cancelSource();
    if (!hasBegun) {
      if (!events.begin()) return;
      write(`retry: ${retry}\n\n`);
    }
    endBody(response, bytes, events);
  }

  function cancel(): void {
    if (isOver) return;
    over();
    cancelSource();
    // Where the client has gone, this is all that will be said of the answer.
    if (response.destroyed) events.left(bytes);
  }

  function closed(): void {
    if (isOver) return;
    over();
    cancelSource();
    events.left(bytes);
  }

  function over(): void {
    isOver = true;
    clearInterval(timer);
    response.off('close', closed);
  }

  /** A generator that waits for something hears of it by `params.signal`: `return()` alone would wait with it. */
  function cancelSource(): void {
    try {
      Promise.resolve(iterator.return?.()).catch(() => {});
    } catch {
      // Its own affair: nobody waits for it any more.
    }
  }
}

/** Undefined: it was the last. @throws TypeError when an item cannot be sent as an event */
function eventOf({ done, value }: IteratorResult<unknown>): string | undefined {
  return done === true ? undefined : textOf(value);
}

function textOf(item: unknown): string {
  const { data, event, id, retry } = isEvent(item) ? item : { data: item };
  const json = JSON.stringify(data === undefined ? null : data);
  if (json === undefined) throw new TypeError(`the data of an event is a ${typeof data}, which has no JSON form`);
  const lost = lostIn(data, json);
  if (lost !== undefined) throw new TypeError(`the data of an event has ${lost}`);
  let text = '';
  if (event !== undefined) text += `event: ${oneLine('event', event)}\n`;
  if (id !== undefined) text += `id: ${oneLine('id', id)}\n`;
  if (retry !== undefined) {
    checkRetry(retry, 'the retry of an event');
    text += `retry: ${retry}\n`;
  }
  return `${text}data: ${json}\n\n`;
}

function isEvent(item: unknown): item is ServerEvent {
  return (
    typeof item === 'object' &&
    item !== null &&
    Object.hasOwn(item, 'data') &&
    Object.keys(item).every((key) => FIELDS.has(key))
  );
}

/** A line break would begin another field, and a NUL has the id ignored. */
function oneLine(field: string, value: unknown): string {
  const text = String(value);
  if (/[\r\n\0]/.test(text)) throw new TypeError(`the ${field} of an event has a line break or a NUL`);
  return text;
}

// Sends server-sent events (WHATWG HTML, 9.2): one event for each item of the source. A comment line every 15 s keeps
// proxies from closing an idle connection. When the worker drains, the stream ends between two events, and its client
// reconnects to another worker.
import type { ServerResponse } from 'node:http';
import { checkRetry, type EventStream, type ServerEvent } from '../../api/controller/event-stream.ts';
import { EVENT_TEXT, EVENTS_BEGIN } from '../../base/channel-hub.ts';
import { endBody, type StreamListener } from './byte-stream.ts';
import { describeLostObject } from './json.ts';
import { countSent, maySendMore, whenMaySendMore } from './stream-pacing.ts';

/** Header lines of each event stream, unless the operation sets them. `X-Accel-Buffering` turns off nginx's buffer. */
export const EVENT_HEADERS = ['Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'] as const;
/** Milliseconds between two comment lines. */
const HEARTBEAT = 15_000;
/** Milliseconds after which a client reconnects: few, so that the client soon reaches the new code after a reload. */
const RETRY = 500;
/** Milliseconds in which a client must have read the end of a stream that `end` has ended. */
const END_LIMIT = 1500;
const EVENT_FIELDS: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry']);

export interface EventIterator extends AsyncIterator<unknown> {
  [EVENTS_BEGIN]?(): Promise<string>;
}

export function sendEvents(
  stream: EventStream,
  response: ServerResponse,
  listener: StreamListener,
  heartbeat = HEARTBEAT,
) {
  let bytes = 0;
  /** The cost of all events so far, by which stream-pacing.ts limits the stream. */
  let cost = 0;
  let isOver = false;
  let hasBegun = false;
  let firstFields = '';
  let timer: NodeJS.Timeout | undefined;
  const retry = stream.options.retry ?? RETRY;
  const iterator: EventIterator = stream.source[Symbol.asyncIterator]();
  // After an error comes 'close', at which the exchange cancels the stream.
  response.on('error', () => {});
  void run();
  return { end, cancel, fail };

  async function run(): Promise<void> {
    try {
      if (iterator[EVENTS_BEGIN] !== undefined) firstFields = await iterator[EVENTS_BEGIN]();
      if (isOver) return;
      let next = Promise.resolve(iterator.next()).then(encodeNext);
      // If the source fails at once, the answer is an error. Otherwise, the head is sent before the first event comes.
      await Promise.race([next, new Promise(setImmediate)]);
      if (isOver) return;
      if (!begin()) return cancel();
      timer = setInterval(beat, heartbeat);
      for (;;) {
        const event = await next;
        if (isOver) return;
        if (event === undefined) return endOfSource();
        if (!write(event) && !(await waitForDrain())) return;
        cost += countSent(event.length);
        if (!maySendMore(cost)) await new Promise<void>((resolve) => whenMaySendMore(cost, resolve));
        if (isOver) return;
        next = Promise.resolve(iterator.next()).then(encodeNext);
      }
    } catch (error) {
      fail(error);
    }
  }

  /** @returns false when the head cannot be sent */
  function begin(): boolean {
    hasBegun = true;
    if (!listener.begin()) return false;
    write(`retry: ${retry}\n${firstFields}\n`);
    return true;
  }

  function write(text: string): boolean {
    bytes += Buffer.byteLength(text);
    return response.write(text);
  }

  /** Waits until the client has read what was written. @returns false when the stream is over */
  function waitForDrain(): Promise<boolean> {
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

  /** Sends an empty comment, if the client has read all earlier bytes. */
  function beat(): void {
    if (!response.writableNeedDrain) write(':\n\n');
  }

  /** Sends the comment `end`, after which the client of this project does not reconnect. `EventSource` ignores it. */
  function endOfSource(): void {
    write(': end\n\n');
    finish();
  }

  /** Ends the stream now, between two events. */
  function end(): void {
    finish();
    // A client that does not read would hold up the drain. It reconnects in both cases.
    setTimeout(() => {
      if (!response.writableFinished) response.destroy();
    }, END_LIMIT).unref();
  }

  function finish(): void {
    if (isOver) return;
    stop();
    if (!hasBegun && !begin()) return;
    endBody(response, bytes, listener);
  }

  function cancel(): void {
    if (isOver) return;
    stop();
    // If the client has left, the response emits nothing more, so the listener is called here.
    if (response.destroyed) listener.clientLeft(bytes);
  }

  function fail(error: unknown): void {
    if (isOver) return;
    stop();
    listener.fail(error, bytes, hasBegun);
  }

  function stop(): void {
    isOver = true;
    clearInterval(timer);
    void endSource(() => iterator);
  }
}

/**
 * Calls `return()` of the source's iterator, and ignores an error of that call. A generator that waits for something
 * runs `return()` only after the wait. The code of the generator can end the wait by `params.signal`.
 */
export async function endSource(getIterator: () => AsyncIterator<unknown>): Promise<void> {
  try {
    await getIterator().return?.();
  } catch {}
}

/** @returns undefined at the end of the source @throws TypeError when an item cannot be sent as an event */
function encodeNext({ done, value }: IteratorResult<unknown>): string | undefined {
  return done === true ? undefined : encodeEvent(value);
}

function encodeEvent(item: unknown): string {
  const made = (item as { readonly [EVENT_TEXT]?: string } | null | undefined)?.[EVENT_TEXT];
  if (made !== undefined) return made;
  const { data, event, id, retry } = isEvent(item) ? item : { data: item };
  const json = JSON.stringify(data === undefined ? null : data);
  if (json === undefined) throw new TypeError(`the data of an event is a ${typeof data}, which has no JSON form`);
  const lostObject = describeLostObject(data, json);
  if (lostObject !== undefined) throw new TypeError(`the data of an event has ${lostObject}`);
  let text = '';
  if (event !== undefined) text += `event: ${singleLine('event', event)}\n`;
  if (id !== undefined) text += `id: ${singleLine('id', id)}\n`;
  if (retry !== undefined) {
    checkRetry(retry, 'the retry of an event');
    text += `retry: ${retry}\n`;
  }
  return `${text}data: ${json}\n\n`;
}

/** Recognises an item that sets the fields of an event. Any other item is the data of an event. */
export function isEvent(item: unknown): item is ServerEvent {
  if (typeof item !== 'object' || item === null || !Object.hasOwn(item, 'data')) return false;
  return Object.keys(item).every((key) => EVENT_FIELDS.has(key));
}

/** Refuses a line break, which would begin another field, and a NUL, which makes a client ignore the id. */
function singleLine(field: string, value: unknown): string {
  const text = String(value);
  if (/[\r\n\0]/.test(text)) throw new TypeError(`the ${field} of an event has a line break or a NUL`);
  return text;
}

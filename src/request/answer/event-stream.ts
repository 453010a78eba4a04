// Sends server-sent events (WHATWG HTML, 9.2): one event for each item of the source. A comment line every 15 s keeps
// proxies from closing an idle connection. When the worker drains, the stream ends between two events, and its client
// reconnects to another worker.
import type { ServerResponse } from 'node:http';
import { checkRetry, type EventStream, type ServerEvent } from '../../api/controller/event-stream.ts';
import { EVENT_TEXT, EVENTS_BEGIN } from '../../base/channel-hub.ts';
import { type Receive, type StreamListener, sendPieces } from './byte-stream.ts';
import { describeLostObject } from './json.ts';

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
  { source, options: { retry = RETRY } }: EventStream,
  response: ServerResponse,
  listener: StreamListener,
  heartbeat = HEARTBEAT,
) {
  const iterator: EventIterator = source[Symbol.asyncIterator]();
  let firstFields = '';
  let hasBegun = false;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  let send: Receive;
  /** Called when the client can take more, after the head, too. The first call starts the stream. */
  let sendNext = () => {
    sendNext = () => {};
    void run();
  };
  const live = sendPieces(
    (receive) => {
      send = receive;
      return { read: () => sendNext(), cancel: stop };
    },
    response,
    listener,
  );
  return { ...live, end };

  async function run(): Promise<void> {
    try {
      if (iterator[EVENTS_BEGIN] !== undefined) firstFields = await iterator[EVENTS_BEGIN]();
      if (isOver) return;
      let next = Promise.resolve(iterator.next()).then(encodeNext);
      // If the source fails at once, the answer is an error. Otherwise, the head is sent before the first event comes.
      await Promise.race([next, new Promise(setImmediate)]);
      if (isOver) return;
      timer = setInterval(() => {
        // A comment is not needed while the client has earlier bytes to read.
        if (!response.writableNeedDrain) live.writeBeside(':\n\n');
      }, heartbeat);
      begin();
      for (;;) {
        const event = await next;
        if (isOver) return;
        if (event === undefined) {
          // After this comment, the client of this project does not reconnect. `EventSource` ignores it.
          send(undefined, ': end\n\n');
          return finish();
        }
        if (!send(undefined, event))
          await new Promise<void>((resolve) => {
            sendNext = resolve;
          });
        if (isOver) return;
        next = Promise.resolve(iterator.next()).then(encodeNext);
      }
    } catch (error) {
      stop();
      send(error ?? new Error('the stream failed'), undefined);
    }
  }

  /** Sends the head with the fields before the first event. */
  function begin(): void {
    hasBegun = true;
    send(undefined, `retry: ${retry}\n${firstFields}\n`);
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
    if (!hasBegun) begin();
    stop();
    send(undefined, undefined);
  }

  function stop(): void {
    if (isOver) return;
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
function encodeNext({ done, value: item }: IteratorResult<unknown>): string | undefined {
  if (done === true) return undefined;
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

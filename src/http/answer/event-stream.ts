// Sends server-sent events (WHATWG HTML, 9.2): one event for each item of the source. A comment every 15 s keeps
// proxies from closing an idle connection. When the worker drains, the stream ends between two events. This file knows
// no headers but EVENT_HEADERS.
import type { ServerResponse } from 'node:http';
import { checkRetry, type EventStream, type ServerEvent } from '../../controller/event-stream.ts';
import { endBody, type StreamEvents } from './byte-stream.ts';
import { describeLostObject } from './json.ts';
import { countSent, maySendMore, whenMaySendMore } from './turns.ts';

/** Header lines of each event stream, unless the operation sets the header. `X-Accel-Buffering` is for nginx. */
export const EVENT_HEADERS = ['Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'] as const;
/** Milliseconds between two comments. */
const HEARTBEAT = 15_000;
/**
 * Milliseconds after which a client reconnects. The value is small, so that the client gets the new code within a
 * second after a reload.
 */
const RETRY = 500;
const EVENT_FIELDS: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry']);

export interface LiveEvents {
  /** Ends the stream now, between two events. */
  end(): void;
  /** Cancels the source, because the client is not waiting any more. */
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
  response.on('error', () => {});
  void run();
  return { end: finish, cancel };

  async function run(): Promise<void> {
    try {
      let next = Promise.resolve(iterator.next()).then(encodeNext);
      // When a source fails at once, the answer is an error status. For any other source, the head is sent now, so the
      // client does not wait for the first event.
      await Promise.race([next, new Promise(setImmediate)]);
      if (isOver) return;
      hasBegun = true;
      if (!events.begin()) return cancel();
      timer = setInterval(beat, heartbeat);
      write(`retry: ${retry}\n\n`);
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
      if (isOver) return;
      stop();
      events.fail(error, bytes, hasBegun);
    }
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

  function beat(): void {
    if (!response.writableNeedDrain) write(':\n\n');
  }

  /** Sends the comment `end`. `EventSource` ignores the comment. A client that reads the comment does not reconnect. */
  function endOfSource(): void {
    write(': end\n\n');
    finish();
  }

  function finish(): void {
    if (isOver) return;
    stop();
    if (!hasBegun) {
      if (!events.begin()) return;
      write(`retry: ${retry}\n\n`);
    }
    endBody(response, bytes, events);
  }

  function cancel(): void {
    if (isOver) return;
    stop();
    // No other event of the response follows when the client has left.
    if (response.destroyed) events.left(bytes);
  }

  function stop(): void {
    isOver = true;
    clearInterval(timer);
    void endSource(() => iterator);
  }
}

/**
 * Calls `return()` of the source. A generator that is waiting runs `return()` only when its wait is over.
 * `params.signal` lets the generator end its wait. The source is not needed any more, so its error does not matter.
 */
export async function endSource(iterator: () => AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator().return?.();
  } catch {}
}

/** @returns undefined at the end of the source @throws TypeError when an item cannot be sent as an event */
function encodeNext({ done, value }: IteratorResult<unknown>): string | undefined {
  return done === true ? undefined : encodeEvent(value);
}

function encodeEvent(item: unknown): string {
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

function isEvent(item: unknown): item is ServerEvent {
  return (
    typeof item === 'object' &&
    item !== null &&
    Object.hasOwn(item, 'data') &&
    Object.keys(item).every((key) => EVENT_FIELDS.has(key))
  );
}

/** Refuses a line break, which would begin another field, and a NUL, which makes a client ignore the id. */
function singleLine(field: string, value: unknown): string {
  const text = String(value);
  if (/[\r\n\0]/.test(text)) throw new TypeError(`the ${field} of an event has a line break or a NUL`);
  return text;
}

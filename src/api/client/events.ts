// Reads server-sent events (HTML standard, 9.2) as an async iterable. A complete stream ends with the comment line
// `: end`. A stream that ends without this line broke off, or the service replaces its code. Then the client requests
// the stream again with the id of the latest event.
import { ApiError } from './error.ts';

/** One server-sent event. */
export interface ServerEvent<T = unknown> {
  /** The type that the controller gave to the event; default: `message`. */
  readonly event: string;
  /** The id of this event, or else of the last event before it that had an id; '' when there was none. */
  readonly id: string;
  readonly data: T;
}

/** Requests the events after `lastId`, or all events when `lastId` is empty. */
export type Resume = (lastId: string) => Promise<Response>;

/**
 * Minimum and maximum milliseconds that the service can set by `retry`. A pause of 0 would flood a service that ends
 * each stream at once. `setTimeout` takes a number above 2^31 for 1.
 */
const MIN_RETRY_DELAY = 100;
const MAX_RETRY_DELAY = 600_000;

/** A stream can consist of several answers. */
interface StreamState {
  /** The latest id of a complete event; '' when no event had an id. */
  lastId: string;
  /** Milliseconds from the end of an answer to the next request of the stream. */
  retryDelay: number;
  /** Whether the service has sent `: end`. */
  isAtEnd: boolean;
}

/**
 * @param resume undefined when the request must not be repeated
 * @param abort aborted at the end, so that the connection closes even when the loop over the events is left early
 * @throws ApiError when the stream breaks off and cannot be resumed, or the reason of an abort by the caller
 */
export async function* readEvents(
  firstResponse: Response,
  resume: Resume | undefined,
  abort: AbortController,
): AsyncGenerator<ServerEvent, void> {
  const stream: StreamState = { lastId: '', retryDelay: 1000, isAtEnd: false };
  let response: Response | undefined = firstResponse;
  try {
    while (!stream.isAtEnd) {
      try {
        response ??= await (resume as Resume)(stream.lastId);
        // By the HTML standard, an answer such as 204 means that the client must not reconnect.
        if (response.status !== 200) return;
        yield* parseEvents(response, stream);
      } catch (error) {
        if (abort.signal.aborted) throw abort.signal.reason;
        if (resume === undefined || !isTemporary(error)) throw error;
      }
      if (resume === undefined) return;
      response = undefined;
      if (!stream.isAtEnd) await pause(stream.retryDelay, abort.signal);
    }
  } finally {
    abort.abort();
  }
}

/** Ends early when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
}

/** Returns whether a later request can succeed: no complete answer came, or the service was not ready. */
function isTemporary(error: unknown): boolean {
  return error instanceof ApiError && (error.response === undefined || error.status >= 502);
}

/** Also updates the state of the stream. */
async function* parseEvents(response: Response, stream: StreamState): AsyncGenerator<ServerEvent, void> {
  let event = '';
  let data: string[] = [];
  let id = stream.lastId;
  for await (const line of readLines(response)) {
    if (line === '') {
      // The end of an event.
      stream.lastId = id;
      if (data.length > 0) yield { event: event || 'message', id, data: parseData(data.join('\n')) };
      event = '';
      data = [];
    } else if (line === ': end') {
      stream.isAtEnd = true;
    } else {
      // `field: value`, `field:value`, or a field without a value. A comment line begins with the colon.
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (field === 'data') data.push(value);
      else if (field === 'event') event = value;
      else if (field === 'id') id = value;
      else if (field === 'retry' && /^\d+$/.test(value))
        stream.retryDelay = Math.min(Math.max(Number(value), MIN_RETRY_DELAY), MAX_RETRY_DELAY);
    }
  }
}

/** Drops an unfinished last line, as the HTML standard requires. */
async function* readLines({ body }: Response): AsyncGenerator<string, void> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A CR at the end of a chunk can be the first half of a CRLF.
      const lines = text.split(done ? /\r\n|\n|\r/ : /\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? '';
      yield* lines;
      if (done) return;
    }
  } catch (cause) {
    throw new ApiError(0, 'NETWORK_ERROR', 'The stream of events broke off', { cause });
  }
}

/** Returns a text that is not JSON unchanged. */
function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

// Reads server-sent events (HTML standard, 9.2) as an async iterable. When a stream breaks off, or the service ends the
// stream to replace its code, the reader requests the stream again with the id of the last event. A complete stream
// ends with the comment line `: end`, and is not requested again.
import { ApiError } from './error.ts';

/** One server-sent event. */
export interface ServerEvent<T = unknown> {
  /** The type that the controller gave to the event; default: `message`. */
  readonly event: string;
  /** The id of this event, or else of the last event before it that had an id; '' when there was none. */
  readonly id: string;
  readonly data: T;
}

/** Requests the stream again, from the event after `lastId`. */
export type Resume = (lastId: string) => Promise<Response>;

/** The state of a stream that can consist of several answers. */
interface StreamState {
  /** The id of the last event; '' when there was none. */
  lastId: string;
  /** Milliseconds before the next request of the stream. */
  retry: number;
  /** True when the service has marked the end of the stream. */
  isAtEnd: boolean;
}

/** Milliseconds before a stream that broke off is requested again, unless the service sends another value. */
const RETRY_DELAY = 1000;

/**
 * @param resume undefined when the request must not be repeated
 * @param abort aborted at the end, so that the connection closes even when the reader stops early
 */
export async function* readEvents(
  firstResponse: Response,
  resume: Resume | undefined,
  abort: AbortController,
): AsyncGenerator<ServerEvent, void> {
  const stream: StreamState = { lastId: '', retry: RETRY_DELAY, isAtEnd: false };
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
      if (!stream.isAtEnd) await pause(stream.retry, abort.signal);
    }
  } finally {
    abort.abort();
  }
}

function pause(ms: number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve(undefined);
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

/** Returns whether a later request can succeed: no answer came, or the service was not ready (502 and above). */
function isTemporary(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

async function* parseEvents(response: Response, stream: StreamState): AsyncGenerator<ServerEvent, void> {
  let event = '';
  let data: string[] = [];
  let id = stream.lastId;
  for await (const line of readLines(response)) {
    if (line === '') {
      stream.lastId = id;
      if (data.length > 0) yield { event: event || 'message', id, data: parseData(data.join('\n')) };
      event = '';
      data = [];
    } else if (line === ': end') {
      stream.isAtEnd = true;
    } else {
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (field === 'data') data.push(value);
      else if (field === 'event') event = value;
      else if (field === 'id') id = value;
      else if (field === 'retry' && /^\d+$/.test(value)) stream.retry = Number(value);
    }
  }
}

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

/** Parses the data of an event. A text that is not JSON stays a text. */
function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

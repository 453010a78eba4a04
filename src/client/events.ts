// Reads server-sent events (HTML standard, 9.2) as an async iterable. When a stream breaks off, or the service ends the
// stream to replace its code, the reader requests the stream again with the id of the last event. The service marks the
// end of a complete stream with the comment `: end`. Such a stream is not requested again.
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

/** Milliseconds before a stream that broke off is requested again, unless the service sends another value. */
const RETRY_DELAY = 1000;

/**
 * @param resume undefined when the request must not be repeated
 * @param abort closes the connection, also when the reader stops early
 */
export async function* readEvents(
  firstResponse: Response,
  resume: Resume | undefined,
  abort: AbortController,
): AsyncGenerator<ServerEvent, void> {
  const stream = { lastId: '', retry: RETRY_DELAY, isAtEnd: false };
  let response: Response | undefined = firstResponse;
  try {
    while (!stream.isAtEnd) {
      try {
        response ??= await (resume as Resume)(stream.lastId);
        // An answer with 204 has no stream. By the HTML standard, the client then does not reconnect.
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

/** Returns whether a later request can succeed: no answer came, or a gateway or the service is not ready (502, …). */
function isTemporary(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

async function* parseEvents(
  response: Response,
  stream: { lastId: string; retry: number; isAtEnd: boolean },
): AsyncGenerator<ServerEvent, void> {
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
      else if (field === 'retry') stream.retry = Number(value) || 0;
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

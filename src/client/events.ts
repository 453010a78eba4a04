// Server-sent events (HTML standard, 9.2) as an async iterable. A stream that breaks off, or that the service ends
// because its code is replaced, is asked for again with the last id. One that has come to its end says so in a last
// comment, `: end`.
import { ApiError } from './error.ts';

/** One server-sent event. */
export interface ServerEvent<T = unknown> {
  /** `message` unless the controller named it. */
  readonly event: string;
  /** The last one that was sent; '' before the first. */
  readonly id: string;
  readonly data: T;
}

/** Asks for the stream once more, from behind this id on. */
export type Resume = (lastId: string) => Promise<Response>;

/** Milliseconds before a stream that broke off is asked for again, until the service says otherwise. */
const RETRY = 1000;

/**
 * @param resume undefined: the stream cannot be asked for twice
 * @param abort of the connection, which is let go of when the reader has had enough, too
 */
export async function* readEvents(
  first: Response,
  resume: Resume | undefined,
  abort: AbortController,
): AsyncGenerator<ServerEvent, void> {
  const stream = { lastId: '', retry: RETRY, isAtEnd: false };
  let response: Response | undefined = first;
  try {
    while (!stream.isAtEnd) {
      try {
        response ??= await (resume as Resume)(stream.lastId);
        // Where HTTP says that there is nothing more (204), there is not.
        if (response.status !== 200) return;
        yield* eventsOf(response, stream);
      } catch (error) {
        if (abort.signal.aborted) throw abort.signal.reason;
        if (resume === undefined || !isPassing(error)) throw error;
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
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => done(clearTimeout(timer)));
  });
}

/** No answer, or one of a service that is being restarted. */
function isPassing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

async function* eventsOf(
  response: Response,
  stream: { lastId: string; retry: number; isAtEnd: boolean },
): AsyncGenerator<ServerEvent, void> {
  let event = '';
  let data: string[] = [];
  let id = stream.lastId;
  for await (const line of linesOf(response)) {
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

async function* linesOf({ body }: Response): AsyncGenerator<string, void> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A CR at the very end may be half of a CRLF.
      const lines = text.split(done ? /\r\n|\n|\r/ : /\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? '';
      yield* lines;
      if (done) return;
    }
  } catch (cause) {
    throw new ApiError(0, 'NETWORK_ERROR', 'The stream of events broke off', { cause });
  }
}

/** A controller's value comes as JSON; its own text as it is. */
function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

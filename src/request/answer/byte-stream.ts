// Sends a stream as the body of an answer, no faster than the client reads. One piece at a time is in memory. The head
// is sent with the first piece, so a stream that fails at its start can still be answered with an error.
import { AsyncResource } from 'node:async_hooks';
import type { Readable, Writable } from 'node:stream';
import { countSent, maySendMore, whenMaySendMore } from './stream-pacing.ts';

export type ByteSource = Readable | ReadableStream<Uint8Array>;

export interface StreamListener {
  /** Sends the head. Called at the first piece, or at the end of an empty stream. @returns whether to send the body */
  begin(): boolean;
  end(bytes: number): void;
  /** @param hasBegun whether the head has been sent */
  fail(error: unknown, bytes: number, hasBegun: boolean): void;
  clientLeft(bytes: number): void;
}

export interface LiveStream {
  /** Cancels the source and sends nothing more. */
  cancel(reason: Error): void;
  /** Cancels the source and calls `fail` of the listener. */
  fail(error: unknown): void;
}

export function sendStream(source: ByteSource, response: Writable, listener: StreamListener): LiveStream {
  const createReader = (receive: Receive) =>
    'getReader' in source ? readWebStream(source, receive) : readReadable(source, receive);
  return sendPieces(createReader, response, listener);
}

export function sendPieces(
  createReader: (receive: Receive) => SourceReader,
  response: Writable,
  listener: StreamListener,
): LiveStream & { writeBeside(text: string): void } {
  let bytes = 0;
  /** The cost of all pieces so far, by which stream-pacing.ts limits the stream. */
  let cost = 0;
  let hasBegun = false;
  let isOver = false;
  const reader = createReader(receive);
  /** Other streams start this read (stream-pacing.ts). It belongs to this exchange all the same. */
  const readInContext = AsyncResource.bind(reader.read);
  // After an error, a listener of 'close' (exchange.ts) or another one of 'error' (replies.ts) ends the stream.
  response.on('error', () => {});
  reader.read();
  return { cancel, fail, writeBeside };

  /** Writes a few bytes between two pieces. They ask for no piece, and wait for no turn. */
  function writeBeside(text: string): void {
    bytes += text.length;
    response.write(text);
  }

  function receive(error: unknown, piece: unknown): boolean {
    if (isOver) return false;
    if (error !== undefined) {
      reportFailure(error);
      return false;
    }
    if (piece !== undefined && typeof piece !== 'string' && !(piece instanceof Uint8Array)) {
      fail(new TypeError(`the stream has a piece that is ${typeof piece} and not bytes`));
      return false;
    }
    if (!hasBegun) {
      hasBegun = true;
      if (!listener.begin()) {
        cancel(brokenOff());
        return false;
      }
    }
    if (piece === undefined) {
      isOver = true;
      endBody(response, bytes, listener);
      return false;
    }
    const length = typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
    bytes += length;
    cost += countSent(length);
    // An empty piece is not written, because an empty chunk would end the body.
    if (length > 0 && !response.write(piece)) response.once('drain', readMore);
    else if (maySendMore(cost)) return true;
    else readMore();
    return false;
  }

  function readMore(): void {
    whenMaySendMore(cost, readInContext);
  }

  function cancel(reason: Error): void {
    if (isOver) return;
    isOver = true;
    reader.cancel(reason);
    // If the client has left, the response emits nothing more, so the listener is called here.
    if (response.destroyed) listener.clientLeft(bytes);
  }

  function fail(error: unknown): void {
    if (isOver) return;
    reader.cancel(brokenOff());
    reportFailure(error);
  }

  function reportFailure(error: unknown): void {
    isOver = true;
    listener.fail(error, bytes, hasBegun);
  }
}

const brokenOff = () => new Error('its answer was broken off');

/** Ends a body. Calls `end` of the listener when the last byte was sent, or `clientLeft` when the client left. */
function endBody(response: Writable, bytes: number, listener: StreamListener): void {
  const done = () => {
    response.off('finish', done);
    response.off('close', done);
    if (response.writableFinished) listener.end(bytes);
    else listener.clientLeft(bytes);
  };
  response.on('finish', done);
  response.on('close', done);
  response.end();
}

interface SourceReader {
  read(): void;
  cancel(reason: Error): void;
}

/** Receives an error or a piece. Both are undefined at the end. @returns whether to read the next piece now */
export type Receive = (error: unknown, piece: unknown) => boolean;

function readWebStream(source: ReadableStream<Uint8Array>, receive: Receive): SourceReader {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  function read(): void {
    try {
      reader ??= source.getReader();
    } catch (error) {
      receive(error, undefined);
      return;
    }
    // A source can fail with the value undefined, which would look like the end.
    reader.read().then(
      ({ done, value }) => {
        if (receive(undefined, done ? undefined : value)) read();
      },
      (error) => void receive(error ?? new Error('the stream failed'), undefined),
    );
  }
  return { read, cancel: (reason) => void reader?.cancel(reason).catch(() => {}) };
}

function readReadable(source: Readable, receive: Receive): SourceReader {
  let hasEnded = false;
  source.on('data', (piece: unknown) => {
    if (!receive(undefined, piece)) source.pause();
  });
  source.on('end', () => {
    hasEnded = true;
    receive(undefined, undefined);
  });
  source.on('error', (error: unknown) => void receive(error ?? new Error('the stream failed'), undefined));
  source.on('close', () => {
    if (!hasEnded) receive(new Error('the stream closed before its end'), undefined);
  });
  return {
    read() {
      if ((source.destroyed || source.readableEnded) && !hasEnded)
        receive(source.errored ?? new Error('the stream was over before it was read'), undefined);
      else source.resume();
    },
    cancel: (reason) => void source.destroy(reason),
  };
}

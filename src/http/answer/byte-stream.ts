// Sends a stream of bytes as a body: no faster than the client reads, and never more than a piece of it in memory. The
// head goes out with the first piece, so that a stream which fails at its start can still be refused. It knows no
// headers.
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { hasRoom, spend, whenThereIsRoom } from './turns.ts';

export type ByteSource = Readable | ReadableStream<Uint8Array>;

export interface StreamEvents {
  /** The first piece is there, or the end: the head goes out now. @returns whether anybody still wants the body */
  begin(): boolean;
  /** All is out, to the last byte. */
  end(bytes: number): void;
  /** It failed; `hasBegun`: in the middle of the body. */
  fail(error: unknown, bytes: number, hasBegun: boolean): void;
  /** The client has left; the source has been cancelled. */
  left(bytes: number): void;
}

export interface LiveStream {
  /** Ends the source early, and says nothing to the client. */
  cancel(reason: Error): void;
  /** Refuses the answer, or breaks it off where its head is out. */
  fail(error: unknown): void;
}

export function sendStream(source: ByteSource, response: ServerResponse, events: StreamEvents): LiveStream {
  let bytes = 0;
  let cost = 0;
  let hasBegun = false;
  let isOver = false;
  const pieces = 'getReader' in source ? piecesOfWebStream(source, take) : piecesOfReadable(source, take);
  response.on('error', () => {});
  pieces.go();
  return { cancel, fail };

  /** @returns whether the next piece is wanted at once */
  function take(error: unknown, piece: unknown): boolean {
    if (isOver) return false;
    if (error !== undefined) return over(() => events.fail(error, bytes, hasBegun));
    if (piece !== undefined && typeof piece !== 'string' && !(piece instanceof Uint8Array)) {
      pieces.cancel(new Error('it is no stream of bytes'));
      return over(() =>
        events.fail(new TypeError(`the stream has a piece that is ${typeof piece} and not bytes`), bytes, hasBegun),
      );
    }
    if (!hasBegun) {
      hasBegun = true;
      if (!events.begin()) {
        cancel(new Error('nobody waits for it any more'));
        return false;
      }
    }
    if (piece === undefined) return finish();
    const length = typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
    bytes += length;
    cost += spend(length);
    // An empty piece would be the end of a chunked body.
    if (length > 0 && !response.write(piece)) response.once('drain', goOn);
    else if (hasRoom(cost)) return true;
    else goOn();
    return false;
  }

  function goOn(): void {
    whenThereIsRoom(cost, pieces.go);
  }

  function finish(): false {
    isOver = true;
    endBody(response, bytes, events);
    return false;
  }

  function cancel(reason: Error): void {
    if (isOver) return;
    pieces.cancel(reason);
    over(leave);
  }

  function fail(error: unknown): void {
    if (isOver) return;
    pieces.cancel(new Error('its answer was broken off'));
    over(() => events.fail(error, bytes, hasBegun));
  }

  /** Where the client has gone, this is all that will be said of the answer. */
  function leave(): void {
    if (response.destroyed) events.left(bytes);
  }

  function over(then: () => void): false {
    isOver = true;
    then();
    return false;
  }
}

/** The end of a body, and what is told of it once the last byte is out, or the client gone before. */
export function endBody(response: ServerResponse, bytes: number, events: StreamEvents): void {
  const done = () => {
    response.off('finish', done);
    response.off('close', done);
    if (response.writableFinished) events.end(bytes);
    else events.left(bytes);
  };
  response.on('finish', done);
  response.on('close', done);
  response.end();
}

interface Pieces {
  /** Fetches one more piece. */
  go(): void;
  cancel(reason: Error): void;
}

/** @returns whether the next piece is wanted at once */
type Take = (error: unknown, piece: unknown) => boolean;

function piecesOfWebStream(source: ReadableStream<Uint8Array>, take: Take): Pieces {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  function go(): void {
    try {
      reader ??= source.getReader();
    } catch (error) {
      take(error, undefined);
      return;
    }
    reader.read().then(
      ({ done, value }) => {
        if (take(undefined, done ? undefined : value)) go();
      },
      (error) => void take(error ?? new Error('the stream failed'), undefined),
    );
  }
  return { go, cancel: (reason) => void (reader ?? source).cancel(reason).catch(() => {}) };
}

function piecesOfReadable(source: Readable, take: Take): Pieces {
  let hasEnded = false;
  source.on('data', (piece: unknown) => {
    if (!take(undefined, piece)) source.pause();
  });
  source.on('end', () => {
    hasEnded = true;
    take(undefined, undefined);
  });
  source.on('error', (error: unknown) => void take(error ?? new Error('the stream failed'), undefined));
  source.on('close', () => {
    if (!hasEnded) take(new Error('the stream closed before its end'), undefined);
  });
  return {
    go() {
      if (source.readableEnded && !hasEnded) take(new Error('the stream has been read already'), undefined);
      else if (source.destroyed && !hasEnded) take(source.errored ?? new Error('the stream was destroyed'), undefined);
      else source.resume();
    },
    cancel: (reason) => void source.destroy(reason),
  };
}

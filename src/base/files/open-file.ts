// Opens a file below a folder for an answer. The file is regular, and lies in the folder also behind links. If the
// file changes while it is sent, the answer ends with an error.
import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  openSync,
  read,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { isServable } from './servable.ts';

/** The facts that show that a file is the same and has not changed. */
export type FileState = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** The content of a file, for one answer. `close` is called when `part` is not. */
export interface FileContent {
  readonly state: FileState;
  readonly size: number;
  /** The whole content of a small file. */
  readonly bytes: Buffer | undefined;
  /**
   * Returns a part of the file: a small one at once, a large one as a stream.
   *
   * @param end the offset behind the last byte
   * @throws Error when the file has changed
   */
  part(start: number, end: number): Buffer | Readable;
  close(): void;
}

/** Bytes of the largest file, or part of a file, that is read at once. */
export const SMALL_BYTES = 64 * 1024;
/** How often a small file is read that changes meanwhile. */
const MAX_READS = 3;

export function isSameState(one: FileState, other: FileState): boolean {
  return (
    one.ino === other.ino &&
    one.mtimeNs === other.mtimeNs &&
    one.size === other.size &&
    one.ctimeNs === other.ctimeNs &&
    one.dev === other.dev
  );
}

/** @returns undefined where there is no regular file, or where this process may not see it */
export function stateOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // A loop of links, a name that is too long, or a folder without permission.
    return undefined;
  }
}

/** Says whether a path leads to a place in the folder that may be served, also behind links. */
export function isBelow(root: string, name: string): boolean {
  try {
    return isServableBelow(root, realpathSync.native(join(root, name)));
  } catch {
    return false;
  }
}

function isServableBelow(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep) && isServable(relative(root, path).split(sep));
}

/**
 * @param root the real path of the folder
 * @param name the path below the folder, whose segments `isServable` has accepted
 * @returns undefined when there is no file that may be served
 * @throws Error when a small file changes during each of several reads
 */
export function openFile(root: string, name: string): FileContent | undefined {
  let fd: number;
  try {
    const path = realpathSync.native(join(root, name));
    if (!isServableBelow(root, path)) return undefined;
    // Without O_NONBLOCK, the open of a FIFO would wait for a writer.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch {
    return undefined;
  }
  let isKept = false;
  try {
    const state = fstatSync(fd, { bigint: true });
    if (!state.isFile()) return undefined;
    const size = Number(state.size);
    if (size <= SMALL_BYTES) return readSmallFile(fd, state);
    isKept = true;
    return streamedContent(fd, state, size);
  } finally {
    if (!isKept) closeSync(fd);
  }
}

function streamedContent(fd: number, state: FileState, size: number): FileContent {
  /** The descriptor is closed once, by its stream if there is one. Later, another file can have it. */
  let isTaken = false;
  return {
    ...{ state, size, bytes: undefined },
    part(start, end) {
      isTaken = true;
      if (end - start > SMALL_BYTES) return new FileStream(fd, state, start, end);
      try {
        const bytes = readPart(fd, start, end - start);
        if (bytes.length === end - start && isSameState(state, fstatSync(fd, { bigint: true }))) return bytes;
        throw new Error('the file changed while it was read');
      } finally {
        closeSync(fd);
      }
    },
    close() {
      if (!isTaken) close(fd);
      isTaken = true;
    },
  };
}

function readSmallFile(fd: number, firstState: BigIntStats): FileContent {
  let state = firstState;
  for (let attempt = 0; attempt < MAX_READS; attempt++) {
    const bytes = readPart(fd, 0, Number(state.size));
    const after = fstatSync(fd, { bigint: true });
    if (bytes.length === Number(state.size) && isSameState(state, after)) return wholeContent(state, bytes);
    state = after;
    if (state.size > SMALL_BYTES) break;
  }
  throw new Error('the file changed while it was read');
}

/** @returns fewer bytes than `length` at the end of the file */
function readPart(fd: number, start: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let end = 0;
  for (let count = -1; count !== 0 && end < length; end += count)
    count = readSync(fd, bytes, end, length - end, start + end);
  return bytes.subarray(0, end);
}

export function wholeContent(state: FileState, bytes: Buffer): FileContent {
  return { state, size: bytes.length, bytes, part: (start, end) => bytes.subarray(start, end), close() {} };
}

/** Bytes of a piece. One piece of each stream is in memory, and what its socket holds. */
const PIECE_BYTES = 64 * 1024;

/** Streams a part of a file. Closes the descriptor at its end. */
class FileStream extends Readable {
  readonly #fd: number;
  readonly #state: FileState;
  readonly #end: number;
  #position: number;
  #isReading = false;
  #afterRead: (() => void) | undefined;

  constructor(fd: number, state: FileState, start: number, end: number) {
    super({ highWaterMark: PIECE_BYTES });
    this.#fd = fd;
    this.#state = state;
    this.#position = start;
    this.#end = end;
  }

  override _read(): void {
    const length = Math.min(PIECE_BYTES, this.#end - this.#position);
    if (length === 0) return this.#endUnchanged();
    this.#isReading = true;
    read(this.#fd, Buffer.allocUnsafeSlow(length), 0, length, this.#position, (error, count, piece) => {
      this.#isReading = false;
      if (this.#afterRead !== undefined) return this.#afterRead();
      if (error !== null) return void this.destroy(error);
      if (count === 0) return void this.destroy(new Error('the file became shorter while it was sent'));
      this.#position += count;
      this.push(count === length ? piece : piece.subarray(0, count));
    });
  }

  /** A client must not take a mixture of two versions for the file. */
  #endUnchanged(): void {
    fstat(this.#fd, { bigint: true }, (error, state) => {
      if (error === null && isSameState(this.#state, state)) this.push(null);
      else this.destroy(error ?? new Error('the file changed while it was sent'));
    });
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const end = () => close(this.#fd, () => callback(error));
    // Another file could get the descriptor during a read.
    if (this.#isReading) this.#afterRead = end;
    else end();
  }
}

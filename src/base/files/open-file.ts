// Opens a file below a folder for an answer. The file is regular, and lies in the folder also behind links. If the
// file changes before it is sent or meanwhile, the answer ends with an error.
import * as fs from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { isHttpError, refusal } from '../errors.ts';
import { attempt, errorCode } from '../failure.ts';
import { isServable } from './servable.ts';

/** The facts that show that a file is the same and has not changed. */
export type FileState = Pick<fs.BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** The content of a file. It holds no descriptor, so an answer that is never sent leaves none open. */
export interface FileContent {
  readonly state: FileState;
  readonly size: number;
  /** The whole content, where it is in memory. */
  readonly bytes: Buffer | undefined;
  /**
   * Returns a part of the file: a small one at once, a large one as a stream.
   *
   * @param end the offset behind the last byte
   * @throws HttpError OVERLOADED when the process can open no more files; FileChangedError
   */
  part(start: number, end: number): Buffer | Readable;
}

/** Bytes of the largest file, or part of a file, that is read at once. */
export const SMALL_BYTES = 64 * 1024;
/** How often a small file is read that changes meanwhile. */
const MAX_READS = 3;

export class FileChangedError extends Error {
  override name = 'FileChangedError';

  constructor() {
    super('the file changed while it was read');
  }
}

export function isSameState(one: FileState, other: FileState): boolean {
  return hasSameContent(one, other) && one.ctimeNs === other.ctimeNs;
}

/** Another name, or none any more, changes only `ctimeNs`: a file that another one replaced is still whole. */
function hasSameContent(one: FileState, other: FileState): boolean {
  return one.ino === other.ino && one.mtimeNs === other.mtimeNs && one.size === other.size && one.dev === other.dev;
}

/** @returns undefined where there is no regular file, or where this process may not see it */
export function stateOf(path: string): fs.BigIntStats | undefined {
  // A loop of links, a name that is too long, or a folder without permission has an error.
  return attempt(() => fs.statSync(path, { bigint: true, throwIfNoEntry: false }), undefined);
}

/** Says whether a path leads to a place in the folder that may be served, also behind links. */
export function isBelow(root: string, name: string): boolean {
  return attempt(() => isServableBelow(root, fs.realpathSync.native(join(root, name))), false);
}

function isServableBelow(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep) && isServable(relative(root, path).split(sep));
}

/**
 * @param root the real path of the folder
 * @param name the path below the folder, whose segments `isServable` has accepted
 * @param maxRead bytes of the largest file that is read into memory
 * @returns undefined when there is no file that may be served
 * @throws HttpError OVERLOADED when the process can open no more files; FileChangedError when a small file changes
 *   during each of several reads
 */
export function openFile(root: string, name: string, maxRead = SMALL_BYTES): FileContent | undefined {
  let path: string;
  let fd: number;
  try {
    path = fs.realpathSync.native(join(root, name));
    if (!isServableBelow(root, path)) return undefined;
    fd = open(path);
  } catch (error) {
    if (isHttpError(error)) throw error;
    return undefined;
  }
  try {
    const state = fs.fstatSync(fd, { bigint: true });
    // A folder of the path can have become a link since its real path was read. Only Linux has /proc.
    const place = attempt(() => fs.readlinkSync(`/proc/self/fd/${fd}`), path);
    if (!state.isFile() || !isServableBelow(root, place)) return undefined;
    return state.size <= maxRead ? readWhole(fd, state, maxRead) : contentOnDisk(path, state);
  } finally {
    fs.closeSync(fd);
  }
}

function open(path: string): number {
  try {
    // Without O_NONBLOCK, the open of a FIFO would wait for a writer.
    return fs.openSync(path, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    if (!/^E[MN]FILE$/.test(errorCode(cause) ?? '')) throw cause;
    throw refusal('OVERLOADED', undefined, { headers: { 'Retry-After': '1' }, cause });
  }
}

/** @param path the real path, which lay in the folder when the file had the state */
function contentOnDisk(path: string, state: FileState): FileContent {
  const size = Number(state.size);
  return {
    ...{ state, size, bytes: undefined },
    part(start, end) {
      const fd = open(path);
      let isKept = false;
      try {
        const isLong = end - start > SMALL_BYTES;
        const bytes = isLong ? undefined : readPart(fd, start, end - start);
        // With the same inode and times, this is the file that lay in the folder.
        if (!isSameState(state, fs.fstatSync(fd, { bigint: true }))) throw new FileChangedError();
        isKept = isLong;
        return bytes ?? new FileStream(fd, state, start, end);
      } finally {
        if (!isKept) fs.closeSync(fd);
      }
    },
  };
}

function readWhole(fd: number, firstState: fs.BigIntStats, maxRead: number): FileContent {
  let state = firstState;
  for (let attempt = 0; attempt < MAX_READS && state.size <= maxRead; attempt++) {
    const bytes = readPart(fd, 0, Number(state.size));
    const after = fs.fstatSync(fd, { bigint: true });
    if (bytes.length === Number(state.size) && isSameState(state, after)) return contentInMemory(state, bytes);
    state = after;
  }
  throw new FileChangedError();
}

/** @returns fewer bytes than `length` at the end of the file */
function readPart(fd: number, start: number, length: number): Buffer {
  // Not from the pool of Node: a small file that is kept would keep its whole part of the pool.
  const bytes = Buffer.allocUnsafeSlow(length);
  let end = 0;
  for (let count = -1; count !== 0 && end < length; end += count)
    count = fs.readSync(fd, bytes, end, length - end, start + end);
  return bytes.subarray(0, end);
}

/** Bytes of all contents in memory of which a stream is open. A slow client holds the content of its stream. */
let streamedBytes = 0;

export function bytesInStreams(): number {
  return streamedBytes;
}

function contentInMemory(state: FileState, bytes: Buffer): FileContent {
  let streams = 0;
  const release = () => {
    if (--streams === 0) streamedBytes -= bytes.length;
  };
  return {
    ...{ state, size: bytes.length, bytes },
    part(start, end) {
      if (end - start <= SMALL_BYTES) return pieceOf(bytes, start, end);
      if (streams++ === 0) streamedBytes += bytes.length;
      return new BytesStream(bytes, start, end, release);
    },
  };
}

/** Returns a piece that its client may read after the end of the stream. So it does not hold a large content. */
function pieceOf(bytes: Buffer, start: number, end: number): Buffer {
  const piece = bytes.subarray(start, end);
  return bytes.length > SMALL_BYTES ? Buffer.from(piece) : piece;
}

/** Bytes of a piece. One piece of each stream is in memory, and what its socket holds. */
const PIECE_BYTES = 64 * 1024;

/** Streams a part of a content, and then forgets the content: a connection keeps the stream of its last answer. */
class BytesStream extends Readable {
  #bytes: Buffer | undefined;
  #release: (() => void) | undefined;
  #position: number;
  readonly #end: number;

  constructor(bytes: Buffer, start: number, end: number, release: () => void) {
    super({ highWaterMark: 0 });
    this.#bytes = bytes;
    this.#release = release;
    this.#position = start;
    this.#end = end;
  }

  override _read(): void {
    const start = this.#position;
    const bytes = this.#bytes;
    if (bytes === undefined || start === this.#end) return void this.push(null);
    this.#position = Math.min(start + PIECE_BYTES, this.#end);
    const isLast = this.#position === this.#end;
    this.push(isLast ? pieceOf(bytes, start, this.#end) : bytes.subarray(start, this.#position));
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#release?.();
    this.#bytes = undefined;
    this.#release = undefined;
    callback(error);
  }
}

/** Streams a part of a file. Closes the descriptor at its end. */
class FileStream extends Readable {
  readonly #fd: number;
  readonly #state: FileState;
  readonly #end: number;
  #position: number;
  #isReading = false;
  #afterRead: (() => void) | undefined;

  constructor(fd: number, state: FileState, start: number, end: number) {
    // Nothing is read ahead for a client that does not read.
    super({ highWaterMark: 0 });
    this.#fd = fd;
    this.#state = state;
    this.#position = start;
    this.#end = end;
  }

  override _read(): void {
    const length = Math.min(PIECE_BYTES, this.#end - this.#position);
    if (length === 0) return void this.push(null);
    this.#isReading = true;
    fs.read(this.#fd, Buffer.allocUnsafeSlow(length), 0, length, this.#position, (error, count, piece) => {
      this.#position += count;
      const give = (failure: Error | null) => this.#give(failure, piece.subarray(0, count));
      if (error !== null || this.#position < this.#end) give(error);
      else this.#checkUnchanged(give);
    });
  }

  /** Called before the last piece. A client that has it takes a mixture of two versions for the file. */
  #checkUnchanged(callback: (error: Error | null) => void): void {
    fs.fstat(this.#fd, { bigint: true }, (error, state) => {
      if (error !== null || hasSameContent(this.#state, state)) callback(error);
      else callback(new Error('the file changed while it was sent'));
    });
  }

  #give(error: Error | null, piece: Buffer): void {
    this.#isReading = false;
    if (this.#afterRead !== undefined) this.#afterRead();
    else if (error !== null) this.destroy(error);
    else if (piece.length === 0) this.destroy(new Error('the file became shorter while it was sent'));
    else this.push(piece);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const end = () => fs.close(this.#fd, () => callback(error));
    // Another file could get the descriptor during a read.
    if (this.#isReading) this.#afterRead = end;
    else end();
  }
}

// The note of a worker: the last operation that it began, and its heap. The supervisor reads the note when the worker
// has ended, because a worker that is stuck, killed or out of memory cannot report. The note is a file without a name,
// in memory where the system has such a folder. The supervisor opens it, and the worker inherits its descriptor.
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attempt } from './failure.ts';

/** The last operation that a worker began, for the log. It may have ended long before the worker. */
export interface LastRequest {
  readonly last_request: string;
  readonly last_request_id: string;
  readonly last_request_at: string;
}

export type WorkerNote = NonNullable<ReturnType<typeof openNote>>;

/** In bytes. */
export interface Heap {
  readonly used: number;
  readonly limit: number;
}

/** The place of the heap in the file. The request is before it. */
const HEAP_OFFSET = 1024;
const NOTE_SIZE = HEAP_OFFSET + 64;
const NOTE_VARIABLE = 'GATEFOLD_WORKER_NOTE';
let noteCount = 0;

/** @returns undefined where no file can be made, and on Windows, where an open file keeps its name */
export function openNote() {
  if (process.platform === 'win32') return undefined;
  const fd = openNameless('/dev/shm') ?? openNameless(tmpdir());
  if (fd === undefined) return undefined;
  return {
    fd,
    /** Reads the note for the last time. */
    take(): { readonly request: LastRequest | undefined; readonly heap: Heap | undefined } {
      const bytes = Buffer.alloc(NOTE_SIZE);
      const length = readSync(fd, bytes, 0, NOTE_SIZE, 0);
      const at = fstatSync(fd).mtime.toISOString();
      closeSync(fd);
      const [last_request = '', last_request_id = ''] = bytes.toString('utf8', 0, HEAP_OFFSET).split('\n');
      const heapTexts = bytes.toString('latin1', HEAP_OFFSET, length).split(' ');
      const [used = Number.NaN, limit = Number.NaN] = heapTexts.map(Number);
      return {
        request: last_request_id === '' ? undefined : { last_request, last_request_id, last_request_at: at },
        heap: limit > 0 ? { used, limit } : undefined,
      };
    },
  };
}

function openNameless(folder: string): number | undefined {
  const path = join(folder, `.gatefold-${process.pid}-${++noteCount}`);
  return attempt(() => {
    const fd = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    return fd;
  }, undefined);
}

/**
 * Returns the variables of a worker that inherits the note as its descriptor `fd`.
 *
 * @param hasRequests whether the worker notes each operation that it begins, and not only its heap
 */
export function noteEnvironment(fd: number, hasRequests: boolean): NodeJS.ProcessEnv {
  return { [NOTE_VARIABLE]: `${fd}${hasRequests ? ' requests' : ''}` };
}

/** Removes the variable, so that processes of controllers do not see it. @returns undefined without a note */
export function createNoteWriter(env: NodeJS.ProcessEnv = process.env) {
  const [number, hasRequests] = env[NOTE_VARIABLE]?.split(' ') ?? [];
  const fd = Number(number);
  delete env[NOTE_VARIABLE];
  if (!(fd > 0)) return undefined;
  const bytes = Buffer.alloc(HEAP_OFFSET);
  let lastOperation = '';
  let head = 0;

  /** @param operation the verb and the route */
  function begin(operation: string, requestId: string): void {
    if (operation !== lastOperation) {
      lastOperation = operation;
      head = bytes.write(`${operation.slice(0, MAX_OPERATION)}\n`);
    }
    // Most requests repeat the operation before them, and write only their id.
    write(fd, bytes, head + bytes.write(`${requestId}\n`, head, 'latin1'), 0);
  }

  return {
    /** Undefined when the worker notes only its heap. */
    begin: hasRequests === undefined ? undefined : begin,
    heap({ used, limit }: Heap): void {
      const text = Buffer.from(`${used} ${limit} `);
      write(fd, text, text.length, HEAP_OFFSET);
    },
  };
}

/** Characters of an operation in the note. Its bytes and an id of 128 characters fit before the heap. */
const MAX_OPERATION = 250;

/** A full disk costs the note, and no request. */
function write(fd: number, bytes: Uint8Array, length: number, position: number): void {
  try {
    writeSync(fd, bytes, 0, length, position);
  } catch {}
}

// The lease says which process runs the tasks. It is renewed all the time, and another process takes it only when it
// has seen no renewal for LEASE_MS on its own clock, which never goes back. So no two clocks are compared. The lease
// and the records of the tasks are one text: in a file of DATA_DIR, or in the store that several machines share.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crypto } from '../../base/builtins.ts';
import { describeFailure, explainFailure, unlessMissing } from '../../base/failure.ts';
import { acquireLock, isDead, processName } from '../../base/folder-lock.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { nearestManifest } from '../../base/manifest.ts';
import { isObject, parseObject } from '../../base/values.ts';
import { writeWholeFile } from '../../base/whole-file.ts';

/** Where the text is. Both methods throw an Error with a message of one line when the text cannot be had. */
export interface Cell {
  /** `version` differs after each write. It is '' without a text. */
  read(): Promise<{ readonly version: string; readonly text: string }>;
  /** @returns false when the text has another version; after an Error it can be written or not */
  write(version: string, text: string): Promise<boolean>;
}

/** The state of a task that outlasts the process. Times are Unix milliseconds. */
export interface TaskRecord {
  /** The plan of the task as text, and the last of its times that was run or skipped. */
  readonly plan?: string | undefined;
  readonly accounted?: number | undefined;
  /** The run that is under way, or that was interrupted. */
  readonly running?: RunRecord | undefined;
  /** The last run that has ended. */
  readonly last?: (RunRecord & { readonly endedAt: number; readonly error?: string | undefined }) | undefined;
  readonly lastSuccessAt?: number | undefined;
}

export interface RunRecord {
  /** The worker, in the form of base/folder-lock.ts; '' when the run was interrupted. */
  readonly process: string;
  readonly machine: string;
  readonly pid: number | undefined;
  readonly startedAt: number;
  readonly dueAt?: number | undefined;
}

/** Milliseconds without a renewal after which another process takes the lease. */
const LEASE_MS = 15_000;
/** Milliseconds after the last renewal in which tasks may run. The rest of the lease is for their end. */
const SURE_MS = 10_000;

export class Lease {
  /** By the names of the tasks. They are those of this process while the lease is held. */
  records = new Map<string, TaskRecord>();
  readonly #cell: Cell;
  readonly #now: () => number;
  readonly #me: string;
  #beat = 0;
  /** When the last exchange that proved the lease began. */
  #provenAt = Number.NEGATIVE_INFINITY;
  #seen = { version: '', since: 0 };
  #queue: Promise<unknown> = Promise.resolve();

  /** @param now returns milliseconds on a clock that never goes back */
  constructor(cell: Cell, now: () => number, process = processName()) {
    this.#me = `${process}-${crypto().randomUUID()}`;
    this.#cell = cell;
    this.#now = now;
  }

  /** When the runs must end unless the lease is proven again, by `now`. */
  get sureUntil(): number {
    return this.#provenAt + SURE_MS;
  }

  get isHeld(): boolean {
    return this.#now() < this.sureUntil;
  }

  /**
   * Takes the lease if it is free, renews it, and writes the records. One call follows the other.
   *
   * @param holder '' to give the lease back
   * @returns whether the records are written
   */
  sync(holder = this.#me): Promise<boolean> {
    const result = this.#queue.then(() => this.#sync(holder));
    this.#queue = result.catch(() => {});
    return result;
  }

  async #sync(newHolder: string): Promise<boolean> {
    const beganAt = this.#now();
    const { version, text } = await this.#cell.read();
    const { holder, records } = parseTasks(text);
    if (holder !== this.#me) {
      this.#provenAt = Number.NEGATIVE_INFINITY;
      if (this.#seen.version !== version) this.#seen = { version, since: beganAt };
      if (newHolder === '' || (holder !== '' && !isDead(holder, beganAt - this.#seen.since > LEASE_MS))) return false;
      this.records = records;
    }
    const tasks = Object.fromEntries(this.records);
    const isWritten = await this.#cell.write(version, JSON.stringify({ holder: newHolder, beat: ++this.#beat, tasks }));
    if (isWritten) this.#provenAt = newHolder === '' ? Number.NEGATIVE_INFINITY : beganAt;
    return isWritten;
  }
}

/** @throws Error when the text is in no form of this file */
export function parseTasks(text: string): { readonly holder: string; readonly records: Map<string, TaskRecord> } {
  if (text === '') return { holder: '', records: new Map() };
  const { holder, tasks } = parseObject(text) ?? {};
  if (typeof holder === 'string' && isObject(tasks) && Object.values(tasks).every(isObject))
    return { holder, records: new Map(Object.entries(tasks) as [string, TaskRecord][]) };
  throw new Error('the state of the tasks is broken: remove it (tasks.json), and each task waits for its next time');
}

/** Returns the name of the service, which differs between services that share a store. */
export function serviceOf(controllersDir: string): string {
  return String(nearestManifest(dirname(controllersDir))?.fields.name ?? 'service');
}

/** The text in a file of DATA_DIR. A lock makes a comparison and a write one step for all processes of the machine. */
export function createFileCell(dataDir: string): Cell {
  const path = join(dataDir, 'tasks.json');
  const fail = (error: unknown): never => {
    throw new Error(`${path}: ${describeFailure(error)}`);
  };
  const read = () => unlessMissing(() => readFileSync(path, 'utf8'), '');
  async function write(version: string, text: string): Promise<boolean> {
    makeFolder(dataDir, 0o700);
    const lock = await acquireLock(join(dataDir, 'tasks.lock'), { waitMs: 2000 });
    try {
      const isSame = read() === version && (await lock.isHeld());
      if (isSame) writeWholeFile(path, text);
      return isSame;
    } finally {
      await lock.release();
    }
  }
  return {
    async read() {
      const text = explainFailure(path, read);
      return { version: text, text };
    },
    write: (version, text) => write(version, text).catch(fail),
  };
}

// The store: the place of the state that several machines share. postgres.ts and file.ts implement the interface. A
// reader holds all entries in memory and asks `since` for changes; `bell` only makes that fast.

/** `keys` has the rows of the credentials table. `secrets` has sealed values (seal.ts). */
export type Space = 'keys' | 'secrets';

export interface Entry {
  /** The number of the change, as text. Numbers grow in the order of commits. */
  readonly version: string;
  /** `undefined`: the entry was removed. */
  readonly value: string | undefined;
}

export interface Snapshot {
  /** The version of the space: its history, and the number of the last change. */
  readonly version: string;
  /** In the order in which the entries were first written. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Changes {
  readonly version: string;
  /** In the order of their commits. */
  readonly changes: readonly (readonly [name: string, entry: Entry])[];
}

export interface Change {
  readonly name: string;
  /** The version that the entry must have; empty: the entry must not exist. */
  readonly is: string;
  readonly value: string;
}

export interface Store {
  /** Reads the entries as they were at one moment. @param names reads these alone @throws StoreAway */
  read(space: Space, names?: readonly string[]): Promise<Snapshot>;
  /**
   * Returns all changes since a version. It never answers from a copy that may be behind a confirmed write.
   *
   * @returns undefined when the store does not know the version, so the reader must read all entries
   * @throws StoreAway
   */
  since(space: Space, version: string): Promise<Changes | undefined>;
  /**
   * Writes all changes or none. A repeated write with the same id is done once.
   *
   * @param at the version that the space must have; undefined: any
   * @returns false when an entry or the space has another version
   * @throws StoreAway: the write was done, or it was not
   */
  write(space: Space, changes: readonly Change[], id: string, at?: string): Promise<boolean>;
  /** Rings after a change, mostly. It may ring too often, late or never. @returns a function that stops it */
  bell?(ring: () => void): () => void;
  /** Subtracts tokens from many buckets, by the clock of the store. @throws StoreAway */
  spend?(spendings: readonly Spending[]): Promise<Spent>;
  close(): Promise<void>;
}

/** The form of limits/rate-limiter.ts: a caller, its spent tokens, and its rate. */
export type Spending = readonly [caller: string, spent: number, count: number, seconds: number, burst: number];

export interface Spent {
  /** The tokens that are left, in the order of the spendings. */
  readonly tokens: readonly number[];
}

/** The store did not answer, or refused. The message is the reason, in one line and without a secret. */
export class StoreAway extends Error {
  /** To retry is useless: somebody must change something first. */
  readonly isFinal: boolean;

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isFinal = isFinal;
  }
}

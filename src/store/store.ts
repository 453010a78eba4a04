// The store: the place of the state that several machines share. postgres.ts and file.ts implement the interface. A
// reader holds all entries in memory and asks `since` for changes. The `bell` announces changes, so that the reader
// asks sooner.

/**
 * A part of the store. `keys` has the rows of the credentials table. `secrets` has sealed (encrypted) values (seal.ts).
 */
export type Space = 'keys' | 'secrets';

export interface Entry {
  /** The number of the entry's last change, as text. Numbers grow in the order of commits. */
  readonly version: string;
  /** The text of the entry; `undefined` when the entry was removed. */
  readonly value: string | undefined;
}

export interface Snapshot {
  /** The version of the space: its history, and the number of the last change. */
  readonly version: string;
  /** The entries, in the order in which they were first written. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Changes {
  readonly version: string;
  /** The changes, in the order of their commits. */
  readonly changes: readonly (readonly [name: string, entry: Entry])[];
  /** Whether these are all changes up to the moment of the answer. Otherwise, the reader asks again. */
  readonly isComplete: boolean;
}

export interface Change {
  readonly name: string;
  /** The version that the entry must have for this change; empty when the entry must not exist. */
  readonly is: string;
  readonly value: string;
}

export interface Store {
  /** Reads the entries as they were at one moment. @param names limits the read to these entries @throws StoreAway */
  read(space: Space, names?: readonly string[]): Promise<Snapshot>;
  /**
   * Returns all changes since a version. The answer never comes from a copy that may lack a confirmed write.
   *
   * @returns undefined when the store does not know the version, so the reader must read all entries
   * @throws StoreAway
   */
  since(space: Space, version: string): Promise<Changes | undefined>;
  /**
   * Writes all changes or none. When a write is repeated with the same id, its changes are made only once.
   *
   * @param at the version that the space must have; undefined when any version is accepted
   * @returns false when an entry or the space has another version
   * @throws StoreAway; then the changes may or may not have been written
   */
  write(space: Space, changes: readonly Change[], id: string, at?: string): Promise<boolean>;
  /**
   * Calls `ring` after most changes. A call may also come too often, late or never.
   *
   * @returns a function that ends the calls
   */
  bell?(ring: () => void): () => void;
  /** Subtracts tokens from many buckets of rate limits, by the clock of the store. @throws StoreAway */
  spend?(spendings: readonly Spending[]): Promise<Spent>;
  close(): Promise<void>;
}

/** A caller, the tokens that the caller has spent, and the caller's rate, in the form of limits/rate-limiter.ts. */
export type Spending = readonly [caller: string, spent: number, count: number, seconds: number, burst: number];

export interface Spent {
  /** The tokens that are left, in the order of the spendings. */
  readonly tokens: readonly number[];
}

/**
 * The error when the store did not answer or has refused. Its message is the reason, in one line and without a secret.
 */
export class StoreAway extends Error {
  /** Whether a retry is useless, because somebody must change something first. */
  readonly isFinal: boolean;

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isFinal = isFinal;
  }
}

// The store: the state that several machines share. postgres.ts and file.ts implement the interface. A reader holds all
// entries in memory and calls `since` for changes. A notification, the bell, announces a change, so that the reader
// calls `since` sooner.

/** A part of the store: `keys` has the rows of the credentials table, `secrets` has encrypted values (seal.ts). */
export type Space = 'keys' | 'secrets';

export interface Entry {
  /** Differs after each change. In PostgreSQL it is the number of the change, and later commits have larger numbers. */
  readonly version: string;
  /** The text of the entry; `undefined` when the entry was removed. */
  readonly value: string | undefined;
}

export interface Snapshot {
  /** The version of the space, which differs after each change of an entry. */
  readonly version: string;
  /** The entries, in the order in which they were first written. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Changes {
  readonly version: string;
  /** The changes, in the order of their commits. */
  readonly changes: readonly (readonly [name: string, entry: Entry])[];
  /** False when there are more changes than one answer holds. The reader then calls `since` again. */
  readonly isComplete: boolean;
}

export interface Change {
  readonly name: string;
  /** The version that the entry must have for this change; empty when the entry must not exist. */
  readonly expectedVersion: string;
  readonly value: string;
}

export interface Store {
  /** Reads the entries as they are at one moment: all of them, or those with these names. @throws StoreAway */
  read(space: Space, names?: readonly string[]): Promise<Snapshot>;
  /**
   * Returns all changes since a version. The answer never comes from a standby, which can lack a confirmed write.
   *
   * @returns undefined when the store does not know the version, so the reader must read all entries
   * @throws StoreAway
   */
  since(space: Space, version: string): Promise<Changes | undefined>;
  /**
   * Writes all changes or none. When a write is repeated with the same id, its changes are made only once.
   *
   * @param spaceVersion the version that the space must have; undefined when any version is accepted
   * @returns false when an entry or the space has another version
   * @throws StoreAway; the caller then does not know whether the changes were written
   */
  write(space: Space, changes: readonly Change[], id: string, spaceVersion?: string): Promise<boolean>;
  /**
   * Calls `listener` when the store announces a change. A call can be repeated, late or lost.
   *
   * @returns a function that ends the calls
   */
  onBell?(listener: () => void): () => void;
  /** Subtracts tokens from many buckets of rate limits, by the clock of the store. @throws StoreAway */
  spend?(spendings: readonly Spending[]): Promise<Spent>;
  close(): Promise<void>;
}

/** A caller, the tokens that it has spent, and its rate: `count` requests in `seconds`, and `burst` at once. */
export type Spending = readonly [caller: string, spent: number, count: number, seconds: number, burst: number];

export interface Spent {
  /** The tokens that each caller has left, in the order of the spendings. */
  readonly tokens: readonly number[];
}

/** Thrown when the store did not answer or has refused. The message is the reason: one line, without a secret. */
export class StoreAway extends Error {
  /** True when a retry is useless until somebody changes something, such as a password. */
  readonly isFinal: boolean;

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isFinal = isFinal;
  }
}

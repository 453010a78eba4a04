// The interface of the store: named entries. A reader holds all entries in memory and calls `since` for changes.
import type { Spending } from '../../callers/rates/rate-limiter.ts';

/**
 * A part of the store. `keys` has the rows of the credentials table, `secrets` has encrypted values (seal.ts), and
 * `tasks` has the state of the tasks of each service (live/tasks/lease.ts).
 */
export type Space = 'keys' | 'secrets' | 'tasks';

export interface Entry {
  /** The number of the latest change of the entry. Later commits have larger numbers. */
  readonly version: string;
  readonly value: string;
}

export interface Snapshot {
  /** The version of the space, which differs after each change of an entry. */
  readonly version: string;
  /** The entries, in the order in which they were first written. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Changes {
  readonly version: string;
  /** In the order of the commits: the name of an entry and its new value, which is undefined for a removed entry. */
  readonly changes: readonly (readonly [name: string, value: string | undefined])[];
  /** False when there are more changes than one answer holds. The reader then calls `since` again. */
  readonly isComplete: boolean;
}

export interface Change {
  readonly name: string;
  /** The version that the entry must have for this change; empty when the entry must not exist. */
  readonly expectedVersion: string;
  /** Undefined to remove the entry. */
  readonly value: string | undefined;
}

/** Each method that returns a promise, but `close`, can throw StoreAway. */
export interface Store {
  read(space: Space, names?: readonly string[]): Promise<Snapshot>;
  /**
   * Returns the changes since a version. The answer never comes from a standby, which can lack a confirmed write.
   *
   * @returns undefined when the version is unknown, so that the reader must read all entries
   */
  since(space: Space, version: string): Promise<Changes | undefined>;
  /**
   * Whether a version is of the history of an earlier one. A promoted standby or a backup has another, and lacks
   * changes.
   */
  isSuccessor(version: string, earlier: string): boolean;
  /**
   * Writes all changes or none. When a write is repeated with the same id, its changes are made only once.
   *
   * @param spaceVersion the version that the space must have; undefined when any version is accepted
   * @returns false when an entry or the space has another version than expected, so that nothing was written
   * @throws StoreAway when the changes may have been written or not; another Error when a row or the table would be too
   *   large. A revocation is never too large
   */
  write(space: Space, changes: readonly Change[], id: string, spaceVersion?: string): Promise<boolean>;
  /**
   * Subtracts tokens from the rate limits of callers, by the clock of the store.
   *
   * @returns the tokens that each caller has left, which can be negative, in the order of the spendings
   */
  spend(spendings: readonly Spending[]): Promise<number[]>;
  close(): Promise<void>;
}

/** Thrown when the store does not answer or refuses. The message is the reason, in one line and without a secret. */
export class StoreAway extends Error {
  /** True when a retry is useless until an operator changes something, such as a password. */
  readonly needsOperator: boolean;
  /** True when a query has had no answer in time. */
  readonly isTimeout: boolean;

  constructor(message: string, facts: Partial<Pick<StoreAway, 'needsOperator' | 'isTimeout' | 'cause'>> = {}) {
    const { needsOperator = false, isTimeout = false, cause } = facts;
    super(message, { cause });
    this.needsOperator = needsOperator;
    this.isTimeout = isTimeout;
  }
}

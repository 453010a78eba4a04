// The replica: this machine's copy of the store's table. Workers read it from the file `production.json`, where a
// member `store` marks the copy. With the replica, a machine starts and serves while the store is away. A revocation
// that this machine has seen stays. If a standby is promoted, the store may lack the revocation, but the replica does
// not undo it. The list of `revoke --here` is applied here, too.
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import { replaceFile } from '../base/system.ts';
import { parseTableText } from '../credentials/table/text.ts';
import { readRevokedHere, revokedHerePath } from '../credentials/write/revoked-here.ts';
import { tablePath } from '../credentials/write/store.ts';
import { createRowNames, type ReplicaMark, tableText } from './entries.ts';
import type { Changes, Snapshot } from './store.ts';

export interface Replica {
  /** The version of the rows; undefined when the rows do not come from the store. */
  version(): string | undefined;
  /** Whether workers have a table: either a copy of the store, or a table that was here before the store. */
  hasTable(): boolean;
  /** The JSON of each row by its name. */
  rows(): ReadonlyMap<string, string>;
  /**
   * Replaces all rows by the rows of the store.
   *
   * @throws Error when the file has rows of its own that the store lacks
   */
  replaceAll(snapshot: Snapshot): void;
  apply(changes: Changes): void;
  /** The rows whose revocation this machine has seen, but the store has lost, by their names. */
  lostRevocations(): ReadonlyMap<string, string>;
  /** Writes the file if its text has changed. @returns whether it was written @throws the error of a system call */
  publish(): boolean;
  /** Records that the rows are complete at this moment. */
  prove(): void;
  /**
   * Milliseconds since the rows were last proven to be complete, also across a restart; infinite when they never were.
   */
  age(): number;
}

/** Milliseconds between two records on disk of the proof that the rows are complete. */
const PROOF_INTERVAL = 10_000;
/** Milliseconds between a change of the file and its sync to disk. */
const SYNC_DELAY = 1000;
/** The most names of missing rows in one log line. */
const MAX_NAMES = 20;

/** @throws Error one line, when the file exists and is not a table */
export function openReplica(dataDir: string, log: Log): Replica {
  const path = tablePath(dataDir);
  const proofPath = join(dataDir, '.store-proof');
  const found = readFile(path);
  let rows = new Map(found?.rows ?? []);
  // The file contains the revocations of `revoke --here`, which the store does not have. So these revocations are
  // removed from the rows in memory. `publish` adds them to the file again.
  for (const [name, time] of found?.mark === undefined ? [] : readRevokedHere(dataDir)) {
    const row = rows.get(name);
    if (row !== undefined && isRevoked(row) && revocationOf(row) === time) rows.set(name, revoke(row, undefined));
  }
  let version = found?.mark?.version;
  let published = '';
  /** Whether the text of the file may have to change. */
  let isDirty = true;
  let listOfHere: number | undefined = 0;
  let isSyncDue = false;
  // For a table that was here before the store, the age is counted from now on.
  let provenAt =
    found === undefined ? undefined : performance.now() - (version === undefined ? 0 : timeSince(proofPath));
  let recordedAt = Number.NEGATIVE_INFINITY;
  const lost = new Map<string, string>();
  /** The names of the rows in a table that was here before the store. */
  const ownRows = found !== undefined && found.mark === undefined ? [...found.rows.keys()] : [];

  function remember(next: Snapshot['entries']): void {
    const missing: string[] = [];
    for (const [name, row] of rows) {
      const current = next.get(name)?.value;
      if (current === undefined) missing.push(name);
      else if (isRevoked(row) && !isRevoked(current)) lost.set(name, revokeAs(row, current));
    }
    if (missing.length > 0) {
      log.warn('store-rows-missing', { count: missing.length, names: missing.slice(0, MAX_NAMES) });
    }
    if (lost.size > 0) log.warn('store-revocations-lost', { count: lost.size, effect: 'they are written again' });
  }

  /**
   * Syncs the file to disk later, because a revocation must not wait for the disk. A power cut within the delay may
   * lose the last state of the file, but that file is only a copy.
   */
  function syncLater(): void {
    if (isSyncDue) return;
    isSyncDue = true;
    setTimeout(async () => {
      isSyncDue = false;
      const file = await open(path, 'r+').catch(() => undefined);
      await file?.sync().catch(() => {});
      await file?.close();
    }, SYNC_DELAY).unref();
  }

  function set(name: string, row: string | undefined): void {
    if (row === undefined) rows.delete(name);
    else rows.set(name, row);
    // The revocation is no longer lost when the store has it again, or when the row is gone.
    if (row === undefined || isRevoked(row)) lost.delete(name);
    else if (lost.has(name)) lost.set(name, revokeAs(lost.get(name) as string, row));
  }

  return {
    version: () => version,
    hasTable: () => version !== undefined || found !== undefined,
    rows: () => rows,
    replaceAll({ version: next, entries }) {
      const lacking = version === undefined ? ownRows.filter((name) => !entries.has(name)) : [];
      if (lacking.length > 0) {
        throw new Error(
          `${path} has ${lacking.length} rows of its own that the store lacks. Run: gatefold store import, or move the file away`,
        );
      }
      if (version !== undefined) remember(entries);
      rows = new Map();
      for (const [name, { value }] of entries) if (value !== undefined) set(name, value);
      version = next;
      isDirty = true;
    },
    apply(changes) {
      isDirty ||= changes.changes.length > 0;
      for (const [name, { value }] of changes.changes) set(name, value);
      version = changes.version;
    },
    lostRevocations: () => lost,
    publish() {
      const listTime = statSync(revokedHerePath(dataDir), { throwIfNoEntry: false })?.mtimeMs;
      if (!isDirty && listTime === listOfHere) return false;
      const revokedHere = readRevokedHere(dataDir);
      const text = tableText(
        Array.from(rows, ([name, row]) => {
          const time = revokedHere.get(name);
          return lost.get(name) ?? (time === undefined || isRevoked(row) ? row : revoke(row, time));
        }),
        { version: version as string },
      );
      const isListNew = listTime !== listOfHere;
      isDirty = false;
      listOfHere = listTime;
      if (text === published && !isListNew) return false;
      isDirty = true;
      const draft = join(dataDir, '.replica.tmp');
      writeFileSync(draft, text, { mode: 0o600 });
      replaceFile(draft, path);
      syncLater();
      published = text;
      isDirty = false;
      return true;
    },
    prove() {
      provenAt = performance.now();
      if (provenAt - recordedAt < PROOF_INTERVAL) return;
      recordedAt = provenAt;
      touch(proofPath);
    },
    age: () => (provenAt === undefined ? Number.POSITIVE_INFINITY : performance.now() - provenAt),
  };
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') writeFileSync(path, '');
  }
}

/**
 * Returns the milliseconds since the file was touched, by this machine's clock. If the clock was set back to an earlier
 * time, returns 0.
 */
function timeSince(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - stats.mtimeMs);
}

interface FoundTable {
  readonly rows: ReadonlyMap<string, string>;
  /** The mark of a replica; undefined when the table is not a replica. */
  readonly mark: ReplicaMark | undefined;
}

function readFile(path: string): FoundTable | undefined {
  try {
    const { members, rows } = parseTableText(readFileSync(path));
    const nameOf = createRowNames();
    return {
      rows: new Map(rows.map((row) => [nameOf(row), JSON.stringify(row)])),
      mark: members.store as ReplicaMark | undefined,
    };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(
      `Cannot read ${path}: ${errorCode(error) === undefined ? (error as Error).message : describeFailure(error)}`,
    );
  }
}

export function isRevoked(row: string): boolean {
  return row.includes('"revoked_at"') && revocationOf(row) !== undefined;
}

function revocationOf(row: string): unknown {
  return (JSON.parse(row) as { revoked_at?: unknown }).revoked_at ?? undefined;
}

/** Revokes `row` at the time at which `revoked`, another state of the same row, was revoked. */
export function revokeAs(revoked: string, row: string): string {
  return revoke(row, revocationOf(revoked));
}

function revoke(row: string, time: unknown): string {
  return JSON.stringify({ ...(JSON.parse(row) as object), revoked_at: time });
}

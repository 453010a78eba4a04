// The store in PostgreSQL (schema.ts has the statements). A write is one statement, so no lock outlives its machine.
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { type Connection, type ConnectionOptions, openConnection, type Row, sqlState } from './connection.ts';
import { isRevoked, usableRow } from './entries.ts';
import * as sql from './schema.ts';
import { type Change, type Space, type Store, StoreAway } from './store.ts';

export type PostgresStore = ReturnType<typeof createPostgresStore>;

export interface PostgresOptions extends Pick<ConnectionOptions, 'address' | 'load' | 'name'> {
  /** Called when the bell rings, which is a notification after each change. A call can be repeated, late or lost. */
  readonly onBell?: () => void;
  readonly maxBytes?: number;
  readonly machineId?: string;
}

/** The time limit for the first connection, in milliseconds. A later limit is four times what the last one took. */
const FIRST_CONNECT_TIMEOUT = 5000;
/** Minimum milliseconds of the later limits. */
const MIN_CONNECT_TIMEOUT = 1500;
/** The number of rounds of attempts within the time limit. Each round tries all hosts. */
const ROUNDS = 3;
/** The time limit for reading the complete table, for writing all rows of an import, or for new tables, in ms. */
const LONG_QUERY_TIMEOUT = 60_000;
/** Milliseconds for which a measured size of the table is good enough, while the table is not nearly full. */
const MEASURE_INTERVAL = 60_000;
/** The time limit of a write, in milliseconds. A write may have to wait for the lock of other writers. */
const WRITE_TIMEOUT = 5000;

/** Ends a query soon after its client is gone: queries that wait for a lock could take all connections. */
const CHECK_CLIENT = "set client_connection_check_interval = '1s'";

export function createPostgresStore(options: PostgresOptions) {
  const { address, load, name, onBell, maxBytes = MAX_BYTES, machineId = crypto().randomUUID() } = options;
  let connection: Connection | undefined;
  let opening: Promise<Connection> | undefined;
  let connectTimeout = FIRST_CONNECT_TIMEOUT;
  let isClosed = false;
  let measured = { bytes: 0, at: Number.NEGATIVE_INFINITY };

  /** Counts the rows of the table, and its bytes, without reading it. */
  async function measure() {
    const rows = await run(sql.MEASURE, ['keys'], LONG_QUERY_TIMEOUT);
    const bytes = Number(rows[0]?.bytes);
    measured = { bytes, at: performance.now() };
    return { version: versionOf(rows), rows: Number(rows[0]?.rows), bytes };
  }

  /** @throws Error when a row or the table would be too large. A removal or a revocation is never too large. */
  async function checkRoom(changes: readonly Change[]): Promise<void> {
    let added = 0;
    for (const { name, value } of changes) {
      if (value === undefined || isRevoked(value)) continue;
      const bytes = Buffer.byteLength(value);
      if (bytes > sql.MAX_VALUE_BYTES)
        throw new Error(`The row ${name} has ${bytes} bytes, and the limit is ${sql.MAX_VALUE_BYTES}`);
      added += bytes + sql.ROW_ROOM;
    }
    if (added === 0) return;
    const isRecent = performance.now() - measured.at < MEASURE_INTERVAL;
    if (!isRecent || measured.bytes + added > 0.9 * maxBytes) await measure();
    measured.bytes += added;
    if (measured.bytes > maxBytes)
      throw new Error(
        `The table of the store is full: ${maxBytes} bytes. Remove old rows: gatefold credentials prune --revoked-before 90d`,
      );
  }

  function getConnection(): Promise<Connection> | Connection {
    if (connection?.isOpen()) return connection;
    opening ??= openPrimary().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  /**
   * Connects to all hosts, and uses the first that is not a standby. An attempt that begins during a network failure
   * still waits for a lost packet when the failure is over. So further rounds begin while the first one waits. The
   * first round that succeeds or fails decides.
   */
  async function openPrimary(): Promise<Connection> {
    const deadline = performance.now() + connectTimeout;
    const finished = new AbortController();
    const rounds = Array.from({ length: ROUNDS }, async (_, index) => {
      if (index > 0) await sleep((index * connectTimeout) / ROUNDS, undefined, { signal: finished.signal });
      return connectToPrimary(Math.max(1, deadline - performance.now()), finished.signal);
    });
    try {
      connection = await Promise.race(rounds);
      return connection;
    } finally {
      finished.abort();
      closeOthers(rounds, connection);
    }
  }

  async function connectToPrimary(timeout: number, finished: AbortSignal): Promise<Connection> {
    const beganAt = performance.now();
    const attempts = address.hosts.map((server) =>
      openConnection({ load, address, server, name, timeout, signal: finished, onNotify: () => onBell?.() }),
    );
    const primary = await Promise.any(attempts).catch(({ errors }: { readonly errors: StoreAway[] }) => {
      const message = errors.map((error) => error.message).join('; ');
      const needsOperator = errors.every((error) => error.needsOperator);
      throw new StoreAway(message, { needsOperator });
    });
    closeOthers(attempts, primary);
    // When another round was faster, `closeOthers` closes this connection.
    if (finished.aborted) return primary;
    connectTimeout = Math.max(MIN_CONNECT_TIMEOUT, 4 * (performance.now() - beganAt));
    // A pooler can refuse both, and PostgreSQL 13 the first. The connection serves all the same, but no bell rings.
    for (const text of [CHECK_CLIENT, ...(onBell ? ['listen gatefold'] : [])])
      await primary.query(text).catch((error: unknown) => {
        if (!primary.isOpen()) throw error;
      });
    return primary;
  }

  async function run(text: string, parameters: readonly (string | number | null)[], timeout?: number) {
    if (isClosed) throw new StoreAway('the store was closed');
    return (await getConnection()).query(text, parameters, timeout);
  }

  const store: Store = {
    async read(space, names) {
      const rows =
        names === undefined
          ? await run(sql.READ, [space], LONG_QUERY_TIMEOUT)
          : await run(sql.READ_NAMES, [space, JSON.stringify(names)]);
      const entries = entriesOf(rows).map(({ name, v, value }) => {
        return [String(name), { version: String(v), value: toValue(space, name, value) }] as const;
      });
      return { version: versionOf(rows), entries: new Map(entries) };
    },
    async since(space, version) {
      const start = parseVersion(version);
      if (start === undefined) return undefined;
      const rows = await run(sql.SINCE, [space, start.number]);
      const current = versionOf(rows);
      if (!isSuccessor(current, version)) return undefined;
      const changes = entriesOf(rows).map(({ name, value }) => {
        return [String(name), value === null ? undefined : toValue(space, name, value)] as const;
      });
      const isComplete = changes.length < sql.MAX_CHANGES;
      return { version: isComplete ? current : `${start.origin}/${rows.at(-1)?.v}`, changes, isComplete };
    },
    isSuccessor,
    async write(space, changes, id, spaceVersion) {
      if (space === 'keys') await checkRoom(changes);
      const list = changes.map(({ name, expectedVersion, value }, index) => {
        return { name, k: index + 1, is: expectedVersion || '0', value };
      });
      // No space has the number -1, so the write fails when the version is not in the form of this file.
      const expected = spaceVersion === undefined ? null : (parseVersion(spaceVersion)?.number ?? '-1');
      const timeout = changes.length > 100 ? LONG_QUERY_TIMEOUT : WRITE_TIMEOUT;
      try {
        const [row] = await run(sql.WRITE, [space, JSON.stringify(list), String(list.length), id, expected], timeout);
        if (row?.written === list.length) return true;
      } catch (error) {
        if (sqlState(error) !== DIVISION_BY_ZERO) throw error;
      }
      // Nothing was written now. But an earlier attempt, whose answer was lost, can have written the changes.
      const [row] = await run(sql.COUNT_WRITTEN, [space, JSON.stringify(changes.map(({ name }) => name)), id]);
      return row?.written === changes.length;
    },
    async spend(spendings) {
      const list = spendings.map(([caller, spent, count, seconds, burst]) => {
        return { caller, spent, burst, gain: count / seconds };
      });
      const rows = await run(sql.SPEND, [JSON.stringify(list)]);
      const tokens = new Map(rows.map((row) => [row.caller, Number(row.tokens)]));
      return spendings.map(([caller, , , , burst]) => tokens.get(caller) ?? burst);
    },
    async close() {
      isClosed = true;
      await opening?.catch(() => {});
      connection?.close();
    },
  };

  return {
    ...store,
    measure,
    /**
     * Reports that this machine is alive. Returns the number of machines that have reported within 15 s, this one
     * included. `secondsAhead` is by how much the clock of the store is ahead of the clock here, negative when it is
     * behind. `uncertainty` is by how many seconds this number can be wrong.
     */
    async reportMachine() {
      const askedAt = Date.now();
      const [row] = await run(sql.REPORT_MACHINE, [machineId, hostname()]);
      // The store read its clock about halfway between the question and the answer.
      const uncertainty = (Date.now() - askedAt) / 2000;
      const secondsAhead = Number(row?.clock) - askedAt / 1000 - uncertainty;
      return { machines: Number(row?.machines ?? 1), secondsAhead, uncertainty };
    },
    sweepRates: (maxValues = sql.MAX_STORED_VALUES) => run(sql.SWEEP_RATES, [String(maxValues)], LONG_QUERY_TIMEOUT),
    /** Waits for the locks of other queries, and on a slow disk. */
    init: () => run(sql.SCHEMA, [], LONG_QUERY_TIMEOUT),
    query: (text: string, timeout?: number) => run(text, [], timeout),
  };
}

/** The SQLSTATE with which `WRITE` fails when not all of its changes can be made. */
const DIVISION_BY_ZERO = '22012';

/** Closes the connections of these attempts except `used`, also a connection that is opened later. */
function closeOthers(attempts: readonly Promise<Connection>[], used: Connection | undefined): void {
  for (const attempt of attempts)
    attempt.then(
      (connection) => connection === used || connection.close(),
      () => {},
    );
}

/**
 * Returns the origin and the number of the latest change of the space. The origin is the history, which is the id of
 * the tables, and the timeline, which a promoted standby changes: `…-…/00000002`. In two origins, the same number can
 * mean different changes. Returns undefined for a text without an origin or a number, such as the empty text.
 */
function parseVersion(version: string) {
  const [, origin = '', number = ''] = /^(.+)\/(\d+)$/.exec(version) ?? [];
  return origin === '' ? undefined : { origin, number };
}

function isSuccessor(version: string, earlier: string): boolean {
  const [later, before] = [parseVersion(version), parseVersion(earlier)];
  if (later === undefined || before === undefined) return false;
  // A database that was restored can have a smaller number. It lacks changes that the reader has seen.
  return later.origin === before.origin && BigInt(later.number) >= BigInt(before.number);
}

function versionOf(rows: readonly Row[]): string {
  const [row] = rows;
  if (row === undefined) throw new StoreAway('it is not prepared. Run: gatefold store init', { needsOperator: true });
  // A store that was prepared before there was a row `version` has the first schema.
  const schema = Number(row.schema ?? 1);
  if (schema > sql.SCHEMA_VERSION)
    throw new StoreAway(
      `it was prepared by a newer Gatefold: its schema is ${schema}, and this one knows ${sql.SCHEMA_VERSION}`,
      { needsOperator: true },
    );
  return `${row.history}/${row.timeline}/${row.head}`;
}

function toValue(space: Space, name: unknown, value: unknown): string {
  return space === 'keys' ? usableRow(String(name), String(value)) : String(value);
}

/** Returns the rows that have an entry. Without any entry, a statement returns one row, which has only the version. */
function entriesOf(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ name }) => name !== null);
}

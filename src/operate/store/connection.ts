// One connection to PostgreSQL, through the package `postgres`, which the user's project installs. Each query has a
// time limit, because it could wait for minutes on a connection that the network has lost.
import { createRequire } from 'node:module';
import { isIP, type Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeFailure, errorCode } from '../../base/failure.ts';
import type { StoreAddress } from '../../base/store-address.ts';
import { withTimeLimit } from '../../base/time.ts';
import { openSocket } from './socket.ts';
import { StoreAway } from './store.ts';

export type Row = Readonly<Record<string, unknown>>;

export interface Connection {
  /** @throws StoreAway when the server refuses the query, or has not answered after `timeout` milliseconds */
  query(text: string, parameters?: readonly (string | number | null)[], timeout?: number): Promise<readonly Row[]>;
  isOpen(): boolean;
  close(): void;
}

/** The parts of the package `postgres` that this file uses. */
export type PostgresPackage = (options: Readonly<Record<string, unknown>>) => {
  unsafe(text: string, parameters: readonly unknown[], options: { prepare: boolean }): PromiseLike<readonly Row[]>;
  end(options: { timeout: number }): Promise<void>;
};

/** The default time limit of a query, in milliseconds. A query for changes reads an index, and takes less than 1 ms. */
const QUERY_TIMEOUT = 2000;

/**
 * @param folders the folders from which the package is looked up, in this order, before the folder of Gatefold itself
 * @throws StoreAway when the package is not installed or cannot be loaded
 */
export async function loadPostgres(folders: readonly string[]): Promise<PostgresPackage> {
  const importers = folders.map((folder) => pathToFileURL(join(folder, 'package.json')).href);
  for (const importer of [...importers, import.meta.url]) {
    try {
      const module = await import(pathToFileURL(createRequire(importer).resolve('postgres')).href);
      return (module as { default: PostgresPackage }).default;
    } catch (error) {
      if (errorCode(error) === 'MODULE_NOT_FOUND') continue;
      const message = `Cannot load the package postgres: ${describeFailure(error)}`;
      throw new StoreAway(message, { needsOperator: true, cause: error });
    }
  }
  throw new StoreAway('STORE needs the package postgres. Run: npm install postgres', { needsOperator: true });
}

export interface ConnectionOptions {
  readonly load: () => Promise<PostgresPackage>;
  readonly address: StoreAddress;
  readonly server: StoreAddress['hosts'][number];
  /** The name of the connection in `pg_stat_activity`. */
  readonly name: string;
  readonly onNotify: () => void;
  /** The time limit for connecting and the first query together, in milliseconds. */
  readonly timeout: number;
  /** Ends the attempt, but not a connection that is open. */
  readonly signal: AbortSignal;
}

/** @throws StoreAway when the host does not answer, refuses the connection, or is a standby */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { address, name, onNotify, timeout, signal } = options;
  const { host, port } = options.server;
  const serverName = `${host}:${port}`;
  let socket: Socket | undefined;
  let isOpen = true;
  let isResolved = isIP(host) !== 0;
  let timeoutError: StoreAway | undefined;
  const sql = (await options.load())({
    host,
    port,
    user: address.user,
    pass: address.password,
    database: address.database,
    max: 1,
    // The package closes no connection by its own rules, asks for no types, and starts no TLS, which socket.ts does.
    idle_timeout: null,
    max_lifetime: null,
    fetch_types: false,
    ssl: false,
    connection: { application_name: name },
    onnotice() {},
    onnotify: onNotify,
    onclose: close,
    // The package calls this function again to replace a closed connection. The error prevents a second connection.
    socket: async () => {
      if (socket !== undefined || !isOpen) throw new Error('the connection was closed');
      const onSocket = (next: Socket) => {
        socket = next;
        next.once('lookup', () => (isResolved = true));
        // The package removes its own listeners early. Without this one, a later error would end the process.
        next.on('error', () => {});
      };
      return Object.assign(await openSocket({ address, host, port, onSocket }), { host, port });
    },
  });

  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    sql.end({ timeout: 0 }).catch(() => {});
    socket?.destroy();
  }

  const query: Connection['query'] = async (text, parameters = [], limit = QUERY_TIMEOUT) => {
    if (!isOpen) throw new StoreAway(`${serverName}: the connection was closed`);
    const timeOut = () => {
      const reason = isResolved ? `${serverName} has not` : `${serverName}: no name server has`;
      timeoutError ??= new StoreAway(`${reason} answered in time`, { isTimeout: true });
      close();
      return timeoutError;
    };
    try {
      // A pooler can give each transaction another connection, which does not have the statements that were prepared.
      return await withTimeLimit(sql.unsafe(text, parameters, { prepare: false }), limit, timeOut);
    } catch (error) {
      // When one query is not answered in time, all queries that wait on this connection fail with its error.
      const failure = timeoutError ?? toStoreAway(error, serverName);
      // After most errors, such as that the server shuts down, further queries would fail, too.
      if (!STATEMENT_ERROR.test(sqlState(error) ?? '')) close();
      throw failure;
    }
  };

  signal.addEventListener('abort', close);
  try {
    const [row] = await query('select pg_is_in_recovery() as standby', [], timeout);
    if (row?.standby !== false) throw new StoreAway(`${serverName} is a standby`);
  } catch (error) {
    close();
    throw error;
  } finally {
    signal.removeEventListener('abort', close);
  }
  return { query, isOpen: () => isOpen, close };
}

/** SQLSTATE → the reason for the operator, and whether a retry is useless until the operator changes something. */
const REASONS: Readonly<Record<string, readonly [reason: string, needsOperator: boolean]>> = {
  '28P01': ['it refuses the user or the password', true],
  '28000': ['it refuses the user', true],
  '3D000': ['it has no such database', true],
  '3F000': ['it is not prepared. Run: gatefold store init', true],
  '42P01': ['it is not prepared. Run: gatefold store init', true],
  '42703': ['it was prepared by another version. Run: gatefold store init', true],
  '42501': ['its user lacks a right. Run gatefold store init as the owner of the database', true],
  '25006': ['it is read-only', false],
  '53100': ['its disk is full', false],
  '53300': ['it has no free connection', false],
  '57P01': ['it shuts down', false],
  '57P03': ['it starts or shuts down', false],
};

/** Matches the SQLSTATE of errors after which the connection still works. Two characters are a class of errors. */
const STATEMENT_ERROR = /^(?:0A|2[1-3]|25006|3F|40|42|53100|55)/;

/** @returns the five characters of PostgreSQL's error code (SQLSTATE); undefined for an error without such a code */
export function sqlState(error: unknown): string | undefined {
  const code = errorCode(error instanceof StoreAway ? error.cause : error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

function toStoreAway(error: unknown, serverName: string): StoreAway {
  if (error instanceof StoreAway) return error;
  const code = errorCode(error) ?? '';
  const reason = REASONS[code];
  const [message = ''] = (error as Error).message.split('\n', 1);
  // The server has several reasons to refuse a user, such as a connection without TLS.
  const detail = code === '28000' ? `: ${message.slice(0, 200)}` : '';
  if (reason !== undefined)
    return new StoreAway(`${serverName}: ${reason[0]}${detail}`, { needsOperator: reason[1], cause: error });
  const codeSuffix = message.includes(code) ? '' : ` (${code})`;
  // The message of Node advises `--use-system-ca` alone.
  const cure = /SELF_SIGNED|LEAF_SIGNATURE|ISSUER_CERT/.test(code) ? '. Name its root: sslrootcert=FILE' : '';
  return new StoreAway(`${serverName}: ${message.slice(0, 200)}${codeSuffix}${cure}`, { cause: error });
}

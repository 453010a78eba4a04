// A real PostgreSQL with the tables of the store, for tests of src/operate/store.
import type { TestContext } from 'node:test';
import postgresPackage from 'postgres';
import { startPostgres } from '../../examples/conduit/test/postgres.ts';
import { type StoreAddress, storeAddressParser } from '../../src/base/store-address.ts';
import type { PostgresPackage } from '../../src/operate/store/connection.ts';
import { createPostgresStore, type PostgresOptions, type PostgresStore } from '../../src/operate/store/postgres.ts';

export { noPostgres } from '../../examples/conduit/test/postgres.ts';

export const load = async () => postgresPackage as unknown as PostgresPackage;

export function addressOf(url: string): StoreAddress {
  return storeAddressParser('/')(url.replace('postgres@', 'postgres:@')) as StoreAddress;
}

export function openStore(
  test: TestContext,
  url: string,
  options: Pick<PostgresOptions, 'onBell' | 'maxBytes'> = {},
): PostgresStore {
  const store = createPostgresStore({ address: addressOf(url), load, name: 'test', ...options });
  test.after(() => store.close());
  return store;
}

export interface StoreBench {
  readonly url: string;
  readonly database: Awaited<ReturnType<typeof startPostgres>>;
  readonly store: PostgresStore;
}

let shared: Promise<StoreBench['database']> | undefined;
let databases = 0;

/** Creates a database on a server that all tests of the process share. The server ends with the process. */
export async function startStore(test: TestContext): Promise<StoreBench> {
  shared ??= startPostgres();
  const database = await shared;
  const name = `test_${++databases}`;
  // A busy disk makes a database in more than the two seconds that the store gives a query.
  const admin = postgresPackage(database.url, { max: 1, onnotice() {} });
  await admin.unsafe(`create database ${name}`);
  await admin.end();
  return prepare(test, database, database.url.replace(/[^/]+$/, name));
}

/** Starts a server for a test that breaks it. @param settings lines of postgresql.conf */
export async function startOwnStore(test: TestContext, ...settings: string[]): Promise<StoreBench> {
  const database = await startPostgres(...settings);
  test.after(() => database.close());
  return prepare(test, database, database.url);
}

async function prepare(test: TestContext, database: StoreBench['database'], url: string): Promise<StoreBench> {
  const store = openStore(test, url);
  await store.init();
  return { url, database, store };
}

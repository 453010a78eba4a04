// Clocks that are wrong by an hour: the clock of the database, and the clock of a machine.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { PostgresStore } from '../../src/operate/store/postgres.ts';
import { noPostgres, openStore, startStore } from '../support/store-bench.ts';
import { issue, run, startMachine, until } from '../support/store-machines.ts';

/** Sets the clock of a database for all later connections. Returns a store with such a connection. */
async function setClock(test: TestContext, { store, url }: { store: PostgresStore; url: string }, hours: number) {
  await store.query('create schema if not exists wrong');
  await store.query(`create or replace function wrong.clock_timestamp() returns timestamptz language sql volatile
    as $$ select pg_catalog.clock_timestamp() + interval '${hours} hours' $$`);
  await store.query(`do $$ begin
    execute format('alter database %I set search_path = wrong, pg_catalog, public', current_database()); end $$`);
  const connected = openStore(test, url);
  const [row] = await connected.query('select round(extract(epoch from clock_timestamp() - now()) / 3600) as hours');
  assert.equal(Number(row?.hours), hours);
  return connected;
}

/** Runs a Node process whose clock is wrong by an hour. */
const shifted = (hours: number): Record<string, string> => ({
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
    `const Real = Date, by = ${hours * 3_600_000}; globalThis.Date = class extends Real {
      constructor(...list) { super(...(list.length === 0 ? [Real.now() + by] : list)); }
      static now() { return Real.now() + by; } };`,
  )}`,
});

describe('a clock that is wrong by an hour', { skip: noPostgres }, () => {
  for (const hours of [-1, 1])
    it(`on the database, ${hours} h: rate limit tokens refill, and machines are counted`, async (test) => {
      const bench = await startStore(test);
      await bench.store.spend([['a', 10, 10, 1, 10]]);
      await bench.store.spend([['b', 5, 10, 3600, 10]]);
      await openStore(test, bench.url).reportMachine();
      const store = await setClock(test, bench, hours);
      await until('tokens refill', async () => ((await store.spend([['a', 0, 10, 1, 10]]))[0] ?? 0) > 1);
      const [left = 0] = await store.spend([['b', 0, 10, 3600, 10]]);
      assert.equal(Math.round(left), hours < 0 ? 5 : 10, 'a clock set back refills no tokens');
      assert.equal((await store.reportMachine()).machines, 1, 'a machine that has ended is not counted');
    });

  for (const hours of [-1, 1])
    it(`on a machine, ${hours} h: keys and revocations apply on all machines`, async (test) => {
      const { url } = await startStore(test);
      const [right, wrong] = await Promise.all([
        startMachine(test, url),
        startMachine(test, url, { env: shifted(hours) }),
      ]);
      for (const machine of [right, wrong]) {
        const { id, token } = await issue(machine.env);
        assert.deepEqual(await Promise.all([right.ask(token), wrong.ask(token)]), [200, 200]);
        assert.equal((await run(machine.env, 'credentials', 'revoke', id)).code, 0);
        for (const each of [right, wrong])
          await until('the key is revoked', async () => (await each.ask(token)) === 401);
      }
      await until('both machines have reported', async () => (await wrong.ready()).store.machines === 2);
      const { store } = await wrong.ready();
      assert.deepEqual([store.state, store.age_seconds < 3600], ['connected', true]);
      const doctor = await run(wrong.env, 'doctor');
      assert.match(doctor.out, new RegExp(`its clock is ${-hours * 36}\\d\\d`));
    });
});

// Several machines with one PostgreSQL, as a user runs them: the built service and the built command.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRow } from '../../src/callers/credentials/write/changes.ts';
import { updateRows } from '../../src/operate/store/update.ts';
import { makeRow } from '../support/credentials-bench.ts';
import { startProxy, withoutNotifications } from '../support/postgres-cluster.ts';
import { noPostgres, startOwnStore, startStore } from '../support/store-bench.ts';
import { findStoreHost, issue, run, startMachine, until } from '../support/store-machines.ts';

const KEY = 'a key of the tests with 32 characters or more';

// Each test has a store and machines of its own, and waits for most of its time.
describe('machines that share a store', { skip: noPostgres, concurrency: 3 }, () => {
  it('accept a key of any machine at the first request, and refuse a revoked key', async (test) => {
    const { url } = await startStore(test);
    const env = { STORE_KEY: KEY };
    const [one, two] = await Promise.all([startMachine(test, url, { env }), startMachine(test, url, { env })]);
    for (const machine of [one, two]) {
      const { id, token } = await issue(machine.env);
      assert.deepEqual(await Promise.all([one.ask(token), two.ask(token)]), [200, 200]);
      const rotated = await run(one.env, 'credentials', 'rotate', id, '--json');
      const { token: next } = JSON.parse(rotated.out) as { token: string };
      assert.deepEqual(await Promise.all([one.ask(next), two.ask(next)]), [200, 200]);
      await until('the old secret is refused', async () => (await two.ask(token)) === 401);
      const revoked = await run(machine.env, 'credentials', 'revoke', id);
      assert.equal(revoked.code, 0, revoked.err);
      for (const each of [one, two]) await until('the token is refused', async () => (await each.ask(next)) === 401);
    }
    await until('both machines have reported', async () => (await one.ready()).store.machines === 2);
    const listed = await run(two.env, 'credentials', 'list', '--json');
    assert.deepEqual(
      (JSON.parse(listed.out) as { state: string }[]).map(({ state }) => state),
      ['revoked', 'revoked'],
    );
    const keyOf = (data: string) => readFileSync(join(data, 'session.key'), 'utf8');
    await until('both machines have the session key', () =>
      [one, two].every(({ data }) => existsSync(join(data, 'session.key'))),
    );
    await until('both session keys are the same', () => keyOf(one.data) === keyOf(two.data));
    // The bell has announced each change, also the changes before the time after which it counts as missing.
    for (const each of [one, two]) assert.equal(await each.metric('gatefold_store_missed_bells_total'), 0);
    const status = await run(one.env, 'store', 'status', '--json');
    assert.equal((JSON.parse(status.out) as { rows: number }).rows, 2);
  });

  it('accept each new key at the first request without notifications', async (test) => {
    const { url, store } = await startStore(test);
    const { port } = new URL(url);
    const proxy = await startProxy(Number(port), withoutNotifications);
    test.after(() => proxy.close());
    const machine = await startMachine(test, url.replace(`:${port}`, `:${proxy.port}`));
    for (let count = 0; count < 8; count++) {
      const { row, token } = createRow({ name: 'new', groups: '*' }, Date.now());
      await updateRows(store, [], (table) => table.append(row));
      assert.equal(await machine.ask(token.token), 200, `key ${count}`);
    }
  });

  it('serve while the store is away, and report its state', async (test) => {
    const { database, url } = await startOwnStore(test);
    const first = await startMachine(test, url);
    const kept = await issue(first.env);
    const { id, token } = await issue(first.env);
    assert.equal(await first.ask(token), 200);
    assert.equal((await first.ready()).store.state, 'connected');
    await database.stop();
    await until('the store is away', async () => (await first.ready()).store.state === 'away');
    assert.equal(await first.metric('gatefold_store_up'), 0);
    assert.equal((await first.ready()).http, 200);
    assert.deepEqual([await first.ask(token), await first.ask(makeRow().token)], [200, 401]);
    const refused = await run(first.env, 'credentials', 'revoke', id);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /^gatefold credentials revoke: The store is away: .*ECONNREFUSED/);

    first.process.kill('SIGTERM');
    await first.exited;
    const again = await startMachine(test, url, { dir: first.dir });
    assert.deepEqual([await again.ask(token), await again.ask(kept.token)], [200, 200]);
    assert.ok((await again.ready()).store.age_seconds > 0);

    const here = await run(again.env, 'credentials', 'revoke', id, '--here');
    assert.equal(here.code, 0, here.err);
    await until('the key is revoked here', async () => (await again.ask(token)) === 401);
    await database.start();
    await again.logged('store-back');
    const fresh = await issue(again.env);
    assert.deepEqual([await again.ask(fresh.token), await again.ask(token)], [200, 401]);
    assert.equal((await run(again.env, 'credentials', 'revoke', id, '--here', '--undo')).code, 0);
    await until('the key is valid again, as in the store', async () => (await again.ask(token)) === 200);
  });

  it('refuse credentials and end their streams when the table is older than STORE_MAX_AGE, and serve public pages', async (test) => {
    const { database, url } = await startOwnStore(test);
    const machine = await startMachine(test, url, { env: { STORE_MAX_AGE: '10s' } });
    const { token } = await issue(machine.env);
    assert.equal(await machine.ask(token), 200);
    const open = async (headers: Record<string, string>) => {
      const { body } = await fetch(`http://127.0.0.1:${machine.port}/api/order/endless`, { headers });
      const reader = (body as ReadableStream<Uint8Array>).getReader();
      test.after(() => reader.cancel().catch(() => {}));
      assert.equal((await reader.read()).value?.length, 100);
      const stream = { isCut: false };
      reader.read().catch(() => {
        stream.isCut = true;
      });
      return stream;
    };
    const [ofKey, ofNobody] = [await open({ authorization: `Bearer ${token}` }), await open({})];
    await database.stop();
    await until('the table is too old', async () => (await machine.ask(token)) === 503);
    assert.deepEqual((({ http, status }) => [http, status])(await machine.ready()), [503, 'store-too-old']);
    await until('the stream of the key is cut', () => ofKey.isCut);
    await machine.logged('stream-ended-early', ({ error }) => /STORE_AWAY|cannot be checked/.test(String(error)));
    assert.equal(ofNobody.isCut, false);
    const anonymous = await fetch(`http://127.0.0.1:${machine.port}/api/openapi.json`);
    assert.equal(anonymous.status, 200);
    await database.start();
    await until('the token is accepted again', async () => (await machine.ask(token)) === 200);
  });

  it('keep an existing table until it is imported', async (test) => {
    const { url } = await startStore(test);
    const machine = await startMachine(test, url);
    const row = makeRow({ groups: '*', own: { field: [1, 2] } });
    machine.process.kill('SIGTERM');
    await machine.exited;
    const path = join(machine.data, 'production.json');
    const text = JSON.stringify({ production: [row.row] });
    writeFileSync(path, text);
    const again = await startMachine(test, url, { dir: machine.dir });
    await again.logged('store-away', ({ reason }) => /gatefold store import/.test(String(reason)));
    assert.equal(await again.ask(row.token), 200);
    assert.equal(readFileSync(path, 'utf8'), text);
    const imported = await run(again.env, 'store', 'import');
    assert.equal(imported.code, 0, imported.err);
    await again.logged('store-back');
    assert.equal(await again.ask(row.token), 200);
    assert.match(readFileSync(path, 'utf8'), /"store":/);
    const repeated = await run(again.env, 'store', 'import');
    assert.deepEqual([repeated.code, /has 1 rows/.test(repeated.err)], [1, true]);
    const misspelt = await run(again.env, 'store', 'import', '/typo', '--merge');
    assert.deepEqual([misspelt.code, /There is no folder \/typo/.test(misspelt.err)], [1, true], misspelt.err);

    const doctor = await run(again.env, 'doctor', '--json');
    const { findings } = JSON.parse(doctor.out) as { findings: { topic: string; message: string }[] };
    const ofStore = findings.filter(({ topic }) => topic === 'store').map(({ message }) => message);
    assert.match(ofStore.join('; '), /STORE_KEY is not set.*no standby is synchronous/);
    assert.doesNotMatch(doctor.out, /postgres@/);

    const folder = join(machine.data, 'exported');
    assert.equal((await run(again.env, 'store', 'export', folder)).code, 0);
    const { production } = JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8')) as {
      production: unknown[];
    };
    assert.deepEqual(production, [row.row]);
  });

  it('fail to start when the database of the store does not exist', async (test) => {
    const { url } = await startStore(test);
    await assert.rejects(startMachine(test, url.replace(/[^/]+$/, 'none')), /STORE: .*no such database/);
  });

  it('reconnect after the server has ended the connection', async (test) => {
    const { url, store } = await startStore(test);
    const machine = await startMachine(test, url);
    const [ended] = await store.query(
      "select pg_terminate_backend(pid) as done from pg_stat_activity where application_name = 'gatefold' and datname = current_database()",
    );
    assert.equal(ended?.done, true);
    const { token } = await issue(machine.env);
    await until('the store is connected again', async () => (await machine.ask(token)) === 200);
  });

  it('restart a killed store-host, and keep serving', async (test) => {
    const { url } = await startStore(test);
    const machine = await startMachine(test, url);
    const { token } = await issue(machine.env);
    const first = findStoreHost(machine) ?? assert.fail();
    process.kill(first, 'SIGKILL');
    assert.equal(await machine.ask(token), 200);
    await machine.logged('store-host-exited', ({ signal }) => signal === 'SIGKILL');
    await until('another store-host runs', () => ![undefined, first].includes(findStoreHost(machine)));
    const fresh = await issue(machine.env);
    await until('the store is connected again', async () => (await machine.ask(fresh.token)) === 200);
  });
});

// The promises of the interface Store, kept by a real PostgreSQL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readSessionKey } from '../../../src/callers/credentials/session.ts';
import { callerKey } from '../../../src/callers/rates/bucket.ts';
import { readTableFile } from '../../../src/operate/store/entries.ts';
import type { PostgresStore } from '../../../src/operate/store/postgres.ts';
import { MAX_CHANGES, SCHEMA_VERSION, SINCE } from '../../../src/operate/store/schema.ts';
import { createSeal } from '../../../src/operate/store/seal.ts';
import { syncSessionKey } from '../../../src/operate/store/session-key.ts';
import { type Change, type Store, StoreAway } from '../../../src/operate/store/store.ts';
import { updateRows } from '../../../src/operate/store/update.ts';
import { freePorts } from '../../support/ports.ts';
import { noPostgres, openStore, startStore } from '../../support/store-bench.ts';
import { until } from '../../support/store-machines.ts';

const open = async (test: TestContext): Promise<Store> => (await startStore(test)).store;

const row = (id: string, more: object = {}): string => JSON.stringify({ id, name: `row ${id}`, ...more });
const add = (id: string): Change => ({ name: id, expectedVersion: '', value: row(id) });
const valuesOf = async (store: Store): Promise<string[]> =>
  Array.from((await store.read('keys')).entries.values(), ({ value }) => String(value));
const versionOf = async (store: Store, name: string): Promise<string> =>
  (await store.read('keys', [name])).entries.get(name)?.version ?? '';

describe('the store in PostgreSQL', { skip: noPostgres }, () => {
  it('reads entries in the order of their first writes', async (test) => {
    const store = await open(test);
    assert.equal(await store.write('keys', [add('b'), add('a')], '1'), true);
    assert.equal(await store.write('keys', [add('c')], '2'), true);
    const b = { name: 'b', expectedVersion: await versionOf(store, 'b'), value: row('b', { limit: '1/s' }) };
    assert.equal(await store.write('keys', [b], '3'), true);
    assert.deepEqual(await valuesOf(store), [row('b', { limit: '1/s' }), row('a'), row('c')]);
    assert.deepEqual([...(await store.read('keys', ['c', 'none'])).entries.keys()], ['c']);
  });

  it('writes nothing when a version differs from the expected version', async (test) => {
    const store = await open(test);
    await store.write('keys', [add('a'), add('b')], '1');
    const is = await versionOf(store, 'a');
    const cases: readonly [name: string, changes: readonly Change[], at?: string][] = [
      ['a new entry with the name of an old entry', [add('a')]],
      ['one wrong version in two changes', [{ name: 'a', expectedVersion: is, value: row('a', { x: 1 }) }, add('b')]],
      ['a wrong version of an entry', [{ name: 'a', expectedVersion: `${is}0`, value: row('a', { x: 1 }) }]],
      ['a wrong version of the space', [add('c')], 'never/seen/1'],
    ];
    const before = await store.read('keys');
    for (const [index, [title, changes, at]] of cases.entries())
      assert.equal(await store.write('keys', changes, `${index + 2}`, at), false, title);
    assert.deepEqual([...(await store.read('keys')).entries], [...before.entries]);
  });

  it('returns an empty list of changes at the newest version, and undefined at an unknown version', async (test) => {
    const store = await open(test);
    await store.write('keys', [add('a')], '1');
    const { version } = await store.read('keys');
    assert.deepEqual(await store.since('keys', version), { version, changes: [], isComplete: true });
    assert.equal(await store.since('keys', 'another'), undefined);
  });

  it('returns each change since a version, in the order of the commits', async (test) => {
    const { store } = await startStore(test);
    const { version } = await store.read('keys');
    for (const id of ['c', 'a', 'b']) await store.write('keys', [add(id)], id);
    const { changes, version: next } = (await store.since('keys', version)) ?? assert.fail();
    assert.deepEqual(
      changes.map((change) => [...change]),
      ['c', 'a', 'b'].map((id) => [id, row(id)]),
    );
    assert.deepEqual((await store.since('keys', next))?.changes, []);
  });

  it('applies a write once when the write is repeated with its id', async (test) => {
    const { store } = await startStore(test);
    assert.equal(await store.write('keys', [add('a')], 'same'), true);
    assert.equal(await store.write('keys', [add('a')], 'same'), true);
    assert.equal(await store.write('keys', [add('a')], 'another'), false);
    assert.equal((await store.read('keys')).entries.size, 1);
  });

  it('keeps all updates of four concurrent writers to one entry, and a reader sees them in order', async (test) => {
    const { store, url } = await startStore(test);
    await store.write('keys', [{ name: 'sum', expectedVersion: '', value: '0' }], 'first');
    let { version } = await store.read('keys');
    const seen: number[] = [];
    let isDone = false;
    const reader = (async () => {
      for (let isLast = false; ; isLast = isDone) {
        const next = (await store.since('keys', version)) ?? assert.fail();
        for (const [, value] of next.changes) seen.push(Number(value));
        version = next.version;
        if (isLast) return;
      }
    })();
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      const own = openStore(test, url);
      for (let count = 0; count < 8; ) {
        const entry = (await own.read('keys', ['sum'])).entries.get('sum') ?? assert.fail();
        const change = { name: 'sum', expectedVersion: entry.version, value: String(Number(entry.value) + 1) };
        if (await own.write('keys', [change], `${writer} ${count} ${entry.version}`)) count++;
      }
    });
    await Promise.all(writers);
    isDone = true;
    await reader;
    assert.equal((await store.read('keys')).entries.get('sum')?.value, '32');
    assert.deepEqual(
      seen,
      [...new Set(seen)].sort((a, b) => a - b),
    );
    assert.equal(seen.at(-1), 32);
  });

  it('refuses a row or a table that is too large, and never a revocation or a removal', async (test) => {
    const { store: roomy, url } = await startStore(test);
    const store = openStore(test, url, { maxBytes: 2000 });
    const large = row('large', { note: 'x'.repeat(70_000) });
    await assert.rejects(
      roomy.write('keys', [{ name: 'large', expectedVersion: '', value: large }], 'large'),
      /^Error: The row large has \d+ bytes, and the limit is 65536$/,
    );
    const ids = Array.from({ length: 30 }, (_, index) => `id${index}`);
    const full = /^Error: The table of the store is full: 2000 bytes\..*prune/;
    const fill = async () => {
      for (const id of ids) await store.write('keys', [add(id)], id);
    };
    await assert.rejects(fill, full);
    const { entries } = await store.read('keys');
    assert.ok(entries.size > 10 && entries.size < 30, `${entries.size} rows`);
    await assert.rejects(store.write('keys', ids.slice(-5).map(add), 'import'), full);
    for (const id of entries.keys())
      await updateRows(store, [id], ({ change }) => change(0, { revoked_at: '2026-01-01T00:00:00.000Z' }));
    assert.equal((await store.measure()).rows, entries.size);
    await updateRows(store, undefined, ({ length, remove }) => {
      for (let index = 0; index < length; index++) remove(index);
    });
    assert.equal((await store.measure()).rows, 0);
    assert.equal(await store.write('keys', [add('new')], 'new'), true);
  });

  it('reads the state of the tasks whole, however long it is', async (test) => {
    const { store } = await startStore(test);
    const value = JSON.stringify({ holder: 'x'.repeat(100_000), tasks: {} });
    assert.equal(await store.write('tasks', [{ name: 'shop', expectedVersion: '', value }], '1'), true);
    assert.equal((await store.read('tasks', ['shop'])).entries.get('shop')?.value, value);
  });

  it('returns many changes in pages without losing a change', async (test) => {
    const { store } = await startStore(test);
    const { version } = await store.read('keys');
    const ids = Array.from({ length: 12_001 }, (_, index) => `id${index}`);
    assert.equal(await store.write('keys', ids.map(add), 'many'), true);
    const found: string[] = [];
    for (let at = version; ; ) {
      const next = (await store.since('keys', at)) ?? assert.fail();
      found.push(...next.changes.map(([name]) => name));
      at = next.version;
      if (next.isComplete) break;
    }
    assert.deepEqual(found, ids);
  });

  it('rings the bell after a write of another client, and needs one connection', async (test) => {
    const { store: writer, url } = await startStore(test);
    const rung = new EventTarget();
    const store = openStore(test, url, { onBell: () => rung.dispatchEvent(new Event('ring')) });
    await store.read('keys');
    const ring = once(rung, 'ring');
    await writer.write('keys', [add('a')], '1');
    await ring;
    const [row] = await store.query(
      "select count(*)::int as connections from pg_stat_activity where application_name = 'test' and datname = current_database()",
    );
    assert.equal(row?.connections, 2);
  });

  it('needs one connection and no bell where a pooler refuses LISTEN', async (test) => {
    const { url } = await startStore(test);
    const sockets = new Set<Socket>();
    const pooler = createServer((client) => {
      const server = connect(Number(new URL(url).port), '127.0.0.1');
      for (const socket of [client, server]) socket.on('error', () => {});
      sockets.add(client.on('close', () => sockets.delete(client) && server.destroy()));
      client.on('data', (bytes) => server.write(bytes.toString('latin1').replace('listen', 'refuse'), 'latin1'));
      server.pipe(client);
    }).listen(0, '127.0.0.1');
    await once(pooler, 'listening');
    test.after(() => pooler.close());
    const { port } = pooler.address() as AddressInfo;
    const store = openStore(test, url.replace(/:\d+\//, `:${port}/`), { onBell() {} });
    for (let read = 0; read < 3; read++) assert.equal((await store.read('keys')).entries.size, 0);
    assert.equal(sockets.size, 1);
  });

  it('shares rate limits: the debt is at most 100 bursts, and tokens return by the clock of the store', async (test) => {
    const { store, url } = await startStore(test);
    const other = openStore(test, url);
    const hour = 3600;
    assert.deepEqual(await store.spend([['a', 3, 10, hour, 10]]), [7]);
    const rest = await other.spend([
      ['b', 1, 10, hour, 10],
      ['a', 5, 10, hour, 10],
    ]);
    assert.deepEqual(rest.map(Math.round), [9, 2]);
    const [debt = 0] = await store.spend([['a', 9999, 10, hour, 10]]);
    assert.equal(Math.round(debt), -1000);
    await store.query("update gatefold.rate set at = at - interval '99 hours' where caller = 'a'");
    const [back = 0] = await store.spend([['a', 0, 10, hour, 10]]);
    assert.equal(Math.round(back), -10);
    await store.query("update gatefold.rate set at = at - interval '3 hours'");
    await store.sweepRates();
    assert.equal((await store.query('select * from gatefold.rate')).length, 0);
  });

  it('counts the tokens of every caller, whatever a client has put into the key', async (test) => {
    const { store } = await startStore(test);
    const names = [
      'a\0',
      'a',
      '\ud800',
      '\udfff\ud800',
      `${'é'.repeat(154)}${'😀'.repeat(30)}`,
      `${'x'.repeat(153)}${'😀'.repeat(30)}`,
    ];
    const keys = names.map((name) => callerKey('by', name));
    assert.deepEqual(await store.spend(keys.map((key) => [key, 3, 10, 3600, 10])), Array(names.length).fill(7));
  });

  it('forgets values of `by` when there are too many: those first that have not called for longest', async (test) => {
    const { store } = await startStore(test);
    const spend = (...callers: number[]) => store.spend(callers.map((caller) => [`by ${caller}`, 1, 5, 86_400, 5]));
    const callers = async () =>
      (await store.query('select caller from gatefold.rate order by at')).map((row) => row.caller);
    await store.spend([['credential x', 1, 5, 86_400, 5]]);
    for (let caller = 1; caller <= 5; caller++) await spend(caller);
    await spend(1);
    await store.sweepRates(5);
    assert.equal((await callers()).length, 6);
    await store.sweepRates(3);
    assert.deepEqual(await callers(), ['credential x', 'by 4', 'by 5', 'by 1']);
  });

  it('counts the machines that have reported lately', async (test) => {
    const { store, url } = await startStore(test);
    const count = async (machine: PostgresStore) => (await machine.reportMachine()).machines;
    assert.equal(await count(store), 1);
    assert.equal(await count(openStore(test, url)), 2);
    assert.equal(await count(store), 2);
    await store.query("update gatefold.machine set seen = seen - interval '1 minute'");
    assert.equal(await count(store), 1);
    assert.ok(Math.abs((await store.reportMachine()).secondsAhead) < 60);
  });

  it('has the version of its schema in a row, and refuses a newer one', async (test) => {
    const { store } = await startStore(test);
    const versionRow = async () => (await store.query("select v::int from gatefold.head where space = 'version'"))[0];
    assert.deepEqual({ ...(await versionRow()) }, { v: SCHEMA_VERSION });
    await store.query("delete from gatefold.head where space = 'version'");
    assert.equal((await store.read('keys')).entries.size, 0);
    await store.query(`insert into gatefold.head (space, v) values ('version', ${SCHEMA_VERSION + 1})`);
    await assert.rejects(store.read('keys'), /prepared by a newer Gatefold: its schema is 2, and this one knows 1/);
    await store.init();
    assert.deepEqual({ ...(await versionRow()) }, { v: SCHEMA_VERSION + 1 });
  });

  it('waits at its preparation for a lock of another query, longer than a query of the service waits', async (test) => {
    const { store, url } = await startStore(test);
    const other = openStore(test, url);
    await other.query('begin');
    await other.query('lock table gatefold.head in share mode');
    const prepared = store.init();
    await sleep(2200);
    await other.query('commit');
    await prepared;
  });

  it('reads a page of changes by the index, and sorts no other pending change', async (test) => {
    const { store } = await startStore(test);
    await store.query(
      `insert into gatefold.entry select 'keys', 'id' || n, n, 0, n, '{"id":"id' || n || '"}', 'x'
        from generate_series(1, 60000) n`,
      60_000,
    );
    await store.query("update gatefold.head set v = 60000 where space = 'keys'");
    await store.query('analyze gatefold.entry', 60_000);
    const text = SINCE.replaceAll('$1', "'keys'").replaceAll('$2', "'0'");
    const plan = await store.query(`explain (analyze, costs off, timing off, summary off) ${text}`, 60_000);
    const lines = plan.map((line) => String(line['QUERY PLAN']));
    const rows = lines.map((line) => Number(/actual rows=(\d+)/.exec(line)?.[1] ?? 0));
    assert.ok(Math.max(...rows) <= MAX_CHANGES, lines.join('\n'));
  });

  it('reports why the database cannot be used, and never the password', async (test) => {
    const { store, url } = await startStore(test);
    await store.query("create user reader password 'a secret'");
    await store.query('create database empty');
    const refused = async (address: string, pattern: RegExp): Promise<void> => {
      await assert.rejects(openStore(test, address).read('keys'), (error: Error) => {
        assert.ok(error instanceof StoreAway);
        assert.match(error.message, pattern);
        assert.doesNotMatch(error.message, /a secret/);
        return true;
      });
    };
    await refused(url.replace('postgres@', 'reader:a%20secret@'), /lacks a right/);
    await refused(url.replace(/[^/]+$/, 'none'), /no such database/);
    await refused(url.replace(/[^/]+$/, 'empty'), /gatefold store init/);
    const name = url.replace(/^.*\//, '');
    await store.query(`alter database ${name} set default_transaction_read_only = on`);
    const readOnly = openStore(test, url);
    for (let isSo = false; !isSo; )
      [isSo = false] = (await readOnly.query("select current_setting('transaction_read_only') = 'on' as so")).map(
        ({ so }) => Boolean(so),
      );
    await assert.rejects(readOnly.write('keys', [add('x')], 'x'), /read-only/);
    assert.equal((await readOnly.read('keys')).entries.size, 0);
    const [closed = 0] = await freePorts(1);
    await refused(url.replace(/:\d+\//, `:${closed}/`), /ECONNREFUSED/);
  });

  it('opens a new connection after the server has ended the old connection', async (test) => {
    const { store, url } = await startStore(test);
    await store.read('keys');
    await openStore(test, url).query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    for (let isBack = false; !isBack; )
      isBack = await store.read('keys').then(
        () => true,
        () => false,
      );
  });

  it('leaves no query waiting in the database after the time limit of the query', async (test) => {
    const { store, url } = await startStore(test);
    const [holder, observer] = [openStore(test, url), openStore(test, url)];
    await holder.query('begin');
    await holder.query('lock table gatefold.entry');
    await assert.rejects(store.query('select from gatefold.entry', 100), /has not answered in time/);
    await until('the end of the query', async () => {
      const [row] = await observer.query(
        "select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return row?.waiting === 0;
    });
  });

  it('refuses queries after it was closed', async (test) => {
    const { store } = await startStore(test);
    await store.close();
    await assert.rejects(store.read('keys'), /the store was closed/);
  });

  it('changes only the rows that an edit has changed', async (test) => {
    const { store } = await startStore(test);
    await store.write('keys', [add('a'), add('b')], '1');
    const version = await versionOf(store, 'a');
    await updateRows(store, ['a', 'b'], ({ change }) => change(1, { limit: '1/s' }));
    assert.deepEqual(await valuesOf(store), [row('a'), row('b', { limit: '1/s' })]);
    assert.equal(await versionOf(store, 'a'), version);
  });

  it('keeps one session key when two machines write different keys at the same time', async (test) => {
    const { store } = await startStore(test);
    const folders = [1, 2].map(() => mkdtempSync(join(tmpdir(), 'gatefold-store-')));
    test.after(() => {
      for (const folder of folders) rmSync(folder, { recursive: true });
    });
    const seal = createSeal(['k'.repeat(32)]);
    assert.deepEqual(await Promise.all(folders.map((folder) => syncSessionKey(store, seal, folder))), [true, true]);
    const [first, second] = folders.map(readSessionKey);
    assert.equal(first, second);
  });

  it('refuses a server without TLS when the URL requires TLS', async (test) => {
    const { url } = await startStore(test);
    await assert.rejects(openStore(test, `${url}?sslmode=verify-full`).read('keys'), StoreAway);
  });
});

it('readTableFile returns hand-written rows unchanged', (test) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-store-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  const rows = [{ id: 'a', own: [1] }, { id: 'a' }, { name: 'no id' }, { name: 'no id' }, 7, { id: 'ü' }];
  writeFileSync(join(folder, 'production.json'), JSON.stringify({ production: rows }));
  const file = readTableFile(folder) ?? assert.fail();
  assert.deepEqual(
    Array.from(file.rows.values(), (text) => JSON.parse(text) as unknown),
    rows,
  );
});

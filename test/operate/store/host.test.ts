// The store-host of a machine, in this process, on a real PostgreSQL.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import postgresPackage from 'postgres';
import { parseSettings } from '../../../src/base/config.ts';
import { MAX_BYTES, readTable } from '../../../src/callers/credentials/table/live-table.ts';
import { createRow, revokeRow, rotateRow } from '../../../src/callers/credentials/write/changes.ts';
import { type HostOptions, startHost } from '../../../src/operate/store/host.ts';
import type { Answer, FromHost, HostState, Request } from '../../../src/operate/store/messages.ts';
import { createSeal } from '../../../src/operate/store/seal.ts';
import { SESSION_KEY } from '../../../src/operate/store/session-key.ts';
import { updateRows } from '../../../src/operate/store/update.ts';
import { noPgBouncer, startPgBouncer } from '../../support/pgbouncer.ts';
import { noPostgres, openStore, startStore } from '../../support/store-bench.ts';
import { until } from '../../support/store-machines.ts';

const OWNER = { issuer: 'https://issuer.example', subject: 'somebody' };
const KEY = 'k'.repeat(40);
/** Rounds of each client through PgBouncer. test/slow/more-rounds.slow.ts takes more. */
const ROUNDS = Number(process.env.ROUNDS ?? 8);

interface TestHost {
  readonly data: string;
  readonly events: string[];
  /** Each list of revoked rows, and `files-changed` for each write of the file. */
  readonly notices: (string | readonly string[])[];
  state(): HostState;
  call(request: Request): Promise<Answer>;
  /** The rows of the replica by id. */
  rows(): Map<string, Record<string, unknown>>;
  close(): Promise<void>;
}

async function openHost(
  test: TestContext,
  url: string,
  { data = mkdtempSync(join(tmpdir(), 'gatefold-host-')), storeKey = '' } = {},
): Promise<TestHost> {
  test.after(() => rmSync(data, { recursive: true, force: true }));
  const events: string[] = [];
  const notices: (string | readonly string[])[] = [];
  const answers = new Map<number, (answer: Answer) => void>();
  let state: HostState | undefined;
  let calls = 0;
  const settings = parseSettings({ STORE: url, DATA_DIR: data, STORE_KEY: storeKey }, [], { cores: 1 });
  const host = await startHost({
    settings: settings as HostOptions['settings'],
    send(message: FromHost) {
      if (message.kind === 'log') events.push((JSON.parse(message.line) as { event: string }).event);
      if (message.kind === 'rows-changed') notices.push(message.changed.revoked);
      if (message.kind === 'files-changed') notices.push(message.kind);
      if (message.kind === 'state') state = message.state;
      if (message.kind === 'answer') answers.get(message.call)?.(message.answer);
    },
  });
  test.after(() => host.close());
  return {
    data,
    events,
    notices,
    state: () => state ?? assert.fail(),
    call: (request) =>
      new Promise((resolve) => {
        const call = ++calls;
        answers.set(call, resolve);
        host.receive({ call, request });
      }),
    rows() {
      const text = readFileSync(join(data, 'production.json'), 'utf8');
      const { production } = JSON.parse(text) as { production: { id: string }[] };
      return new Map(production.map((row) => [row.id, row]));
    },
    close: host.close,
  };
}

const newRow = (name: string) => createRow({ name, owner: OWNER }, Date.now()).row as { id: string };
const register = (name: string, row: object = newRow(name)): Request => ({ kind: 'register', row, owner: OWNER, name });

describe('a store-host', { skip: noPostgres }, () => {
  it('registers a name of an identity once when several machines register the name at the same time', async (test) => {
    const { url, store } = await startStore(test);
    const hosts = await Promise.all([1, 2, 3].map(() => openHost(test, url)));
    const answers = await Promise.all(hosts.flatMap((host) => [1, 2].map(() => host.call(register('same')))));
    assert.equal(answers.filter(({ error }) => error === undefined).length, 1);
    assert.equal(answers.filter(({ code }) => code === 'ALREADY_REGISTERED').length, 5);
    const others = await Promise.all(hosts.map((host, index) => host.call(register(`other ${index}`))));
    assert.deepEqual(others, [{}, {}, {}]);
    assert.equal((await store.read('keys')).entries.size, 4);
    // The machine that got the request has the row before it answers.
    const row = newRow('at once');
    assert.deepEqual(await hosts[0]?.call(register('at once', row)), {});
    assert.ok(hosts[0]?.rows().has(row.id));
  });

  it('spends tokens at the store, and keeps the state of the tasks of a service there', async (test) => {
    const { url } = await startStore(test);
    const host = await openHost(test, url);
    assert.deepEqual(await host.call({ kind: 'spend', spendings: [['a', 3, 10, 3600, 10]] }), { tokens: [7] });
    const stateOf = async (service: string) => (await host.call({ kind: 'tasks', service })).tasks ?? assert.fail();
    const write = (version: string, text: string) => host.call({ kind: 'tasks', service: 'shop', version, text });
    assert.deepEqual(await stateOf('shop'), { version: '', text: '' });
    assert.deepEqual(await write('', 'one'), { isWritten: true });
    const { version, text } = await stateOf('shop');
    assert.equal(text, 'one');
    assert.deepEqual(
      [await write('', 'two'), await write(version, 'two')],
      [{ isWritten: false }, { isWritten: true }],
    );
    assert.deepEqual([(await stateOf('shop')).text, await stateOf('other')], ['two', { version: '', text: '' }]);
  });

  it('removes rates that have all their tokens again, once a minute', async (test) => {
    const { url, store } = await startStore(test);
    const host = await openHost(test, url);
    await host.call({ kind: 'spend', spendings: [['a', 3, 10, 3600, 10]] });
    await store.query("update gatefold.rate set at = at - interval '3 hours'");
    await host.call({ kind: 'look' });
    assert.equal((await store.query('select * from gatefold.rate')).length, 1);
    const { now } = performance;
    test.mock.method(performance, 'now', () => now.call(performance) + 60_000);
    await host.call({ kind: 'look' });
    // The host answers the look before it has removed the rates.
    await until('no rate', async () => (await store.query('select * from gatefold.rate')).length === 0, 10_000);
  });

  it('keeps a revocation that the store lost in a failover, and writes the revocation to the store', async (test) => {
    const { url, store } = await startStore(test);
    const host = await openHost(test, url);
    const [row, live] = [newRow('revoked'), newRow('live')];
    for (const each of [row, live]) await host.call(register(each.id, each));
    const revoke = async (id: string, revoked: boolean): Promise<void> => {
      const entry = (await store.read('keys', [id])).entries.get(id) ?? assert.fail();
      const { revoked_at: _, ...rest } = JSON.parse(String(entry.value)) as Record<string, unknown>;
      const value = JSON.stringify(revoked ? { ...rest, revoked_at: '2026-01-01T00:00:00Z' } : rest);
      assert.ok(await store.write('keys', [{ name: id, expectedVersion: entry.version, value }], `${id} ${revoked}`));
    };
    await host.call({ kind: 'look' });
    host.notices.length = 0;
    await revoke(row.id, true);
    await host.call({ kind: 'look' });
    assert.ok(host.rows().get(row.id)?.revoked_at);
    // Workers refuse the row before the file is written.
    assert.deepEqual(host.notices, [[row.id], 'files-changed']);
    await host.close();
    // The promoted standby lacks the revocation, and has other changes with the same numbers.
    await revoke(row.id, false);
    await store.query('update gatefold.head set history = gen_random_uuid()');

    const again = await openHost(test, url, { data: host.data });
    await until('the store has the revocation again', async () =>
      String((await store.read('keys', [row.id])).entries.get(row.id)?.value).includes('revoked_at'),
    );
    assert.ok(again.rows().get(row.id)?.revoked_at);
    assert.equal(again.rows().get(live.id)?.revoked_at, undefined);
    assert.ok(again.events.includes('store-history-changed'));
    await until('the store-host logs store-revocation-restored', () =>
      again.events.includes('store-revocation-restored'),
    );
  });

  for (const mode of ['transaction', 'session'] as const)
    it(`works through PgBouncer in ${mode} mode`, { skip: noPgBouncer }, async (test) => {
      const { url, store } = await startStore(test);
      const clients = 6;
      // In transaction mode, all clients share two connections. In session mode, each needs its own.
      const pooler = await startPgBouncer(test, url, mode, mode === 'transaction' ? 2 : clients);
      const hosts = [await openHost(test, pooler), await openHost(test, pooler)];
      const stores = Array.from({ length: clients - hosts.length }, () => openStore(test, pooler));
      const work = stores.map(async (each, index) => {
        for (let round = 0; round < ROUNDS; round++) {
          const { version } = await each.read('keys', [`${round} ${index - 1}`]);
          const change = { name: `${round} ${index}`, expectedVersion: '', value: '{}' };
          assert.ok(await each.write('keys', [change], `${round} ${index}`));
          assert.ok((await each.since('keys', version))?.changes.some(([name]) => name === change.name));
          await each.spend([[`a ${index}`, 1, 10, 3600, 10]]);
          await each.reportMachine();
        }
      });
      for (const [index, host] of hosts.entries())
        assert.equal((await host.call(register(`of ${index}`))).error, undefined);
      await Promise.all(work);
      for (const host of hosts) {
        await host.call({ kind: 'look' });
        assert.equal(readTable(join(host.data, 'production.json')).rows.size, hosts.length);
        assert.ok(!host.events.includes('store-away') && !host.events.includes('store-refused'), String(host.events));
      }
      assert.equal((await store.read('keys')).entries.size, hosts.length + stores.length * ROUNDS);
    });

  it('keeps the id of the machine and the number of machines over a restart', async (test) => {
    const { url, store } = await startStore(test);
    const first = await openHost(test, url);
    const other = await openHost(test, url);
    await until('both machines are counted', () => first.state().machines === 2 || other.state().machines === 2);
    const counted = first.state().machines === 2 ? first : other;
    await counted.close();
    const idsOf = async () => (await store.query('select id from gatefold.machine order by id')).map(({ id }) => id);
    const ids = await idsOf();
    await store.query('alter table gatefold.head rename to away');
    const again = await openHost(test, url, { data: counted.data });
    assert.equal(again.state().machines, 2);
    await until('the store is away', () => again.events.includes('store-away'));
    assert.equal(again.state().machines, 2);
    await store.query('alter table gatefold.away rename to head');
    await again.call({ kind: 'look' });
    await until('the machine has reported again', async () => again.state().machines === 2);
    assert.deepEqual(await idsOf(), ids);
    // A copy of the data folder on another machine must not count as the same machine.
    const proof = join(counted.data, '.store-proof');
    writeFileSync(proof, readFileSync(proof, 'utf8').replace(hostname(), 'another'));
    await again.close();
    await openHost(test, url, { data: counted.data });
    await until('a new machine has reported', async () => (await idsOf()).length === 3);
  });

  it('reports a clock that is more than 5 s off', async (test) => {
    const { url } = await startStore(test);
    const { now } = Date;
    test.mock.method(Date, 'now', () => now() - 60_000);
    const host = await openHost(test, url);
    await until('the difference is known', () => Math.round(host.state().secondsAhead) === 60);
    assert.ok(host.events.includes('store-clock-differs'));
    test.mock.restoreAll();
    const other = await openHost(test, url);
    await until('the difference is known', () => other.events.includes('store-back') || other.state().machines === 2);
    assert.ok(!other.events.includes('store-clock-differs'));
  });

  it('reads all rows after a query for changes that timed out', async (test) => {
    const { url, store } = await startStore(test);
    const host = await openHost(test, url);
    await host.call(register('first'));
    assert.equal(host.state().fullReads, 1);
    const locker = postgresPackage(url, { max: 1, onnotice() {} });
    test.after(() => locker.end({ timeout: 0 }));
    await locker.unsafe('begin; lock table gatefold.entry in access exclusive mode');
    await until('the query has timed out', () => host.events.includes('store-away'));
    await locker.unsafe('commit');
    await until('the store is back', () => host.events.includes('store-back'));
    assert.equal(host.state().fullReads, 2);
    assert.deepEqual(
      host.events.filter((event) => ['store-history-changed', 'store-rows-missing'].includes(event)),
      [],
    );
    await store.read('keys');
  });

  it('quarantines a value that is no row by name, keeps other rows live, and starts with it', async (test) => {
    const { url, store } = await startStore(test);
    const values: Record<string, string> = {
      text: 'oops',
      empty: '',
      torn: '{"id":"x"',
      two: '{},{}',
      closing: '{}],"production":[{}',
      large: JSON.stringify({ id: 'large', note: 'x'.repeat(70_000_000) }),
      deep: `{"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
    };
    const first = await openHost(test, url);
    const row = newRow('good');
    await first.call(register('good', row));
    for (const [name, value] of Object.entries(values))
      await store.query(
        `with h as (update gatefold.head set v = v + 1 where space = 'keys' returning v)
          insert into gatefold.entry select 'keys', '${name}', v, 0, v, '${value}', 'x' from h`,
        60_000,
      );
    const hosts = [first, await openHost(test, url, { data: first.data }), await openHost(test, url)];
    await updateRows(store, [row.id], (table) => revokeRow(table, row.id, Date.now()));
    for (const host of hosts) {
      await host.call({ kind: 'look' });
      assert.ok(host.rows().get(row.id)?.revoked_at);
      const { rows, quarantined } = readTable(join(host.data, 'production.json'));
      assert.deepEqual(
        [...rows.values()].map(({ id }) => id),
        [row.id],
      );
      assert.deepEqual(
        quarantined.map(({ id, reason }) => [id, reason.startsWith('its value in the store is not JSON')]).sort(),
        Object.keys(values)
          .sort()
          .map((name) => [name, true]),
      );
    }
    // A revocation mends such a row: it is a row again, and revoked.
    await updateRows(store, ['torn'], (table) => revokeRow(table, 'torn', Date.now()));
    assert.match(String((await store.read('keys', ['torn'])).entries.get('torn')?.value), /"revoked_at"/);
  });

  it('refuses to rotate a row of the store that has a field twice, and revokes it', async (test) => {
    const { store } = await startStore(test);
    const row = newRow('twice');
    const value = JSON.stringify(row).replace('{', '{"revoked_at":"2030-01-01T00:00:00Z","revoked_at":null,');
    await store.query(
      `with h as (update gatefold.head set v = v + 1 where space = 'keys' returning v)
        insert into gatefold.entry select 'keys', '${row.id}', v, 0, v, '${value}', 'x' from h`,
    );
    const rotating = updateRows(store, [row.id], (table) => rotateRow(table, row.id, 0, Date.now()));
    await assert.rejects(rotating, /the row is quarantined, it has the field "revoked_at" twice/);
    await updateRows(store, [row.id], (table) => revokeRow(table, row.id, Date.now()));
    const written = JSON.parse(String((await store.read('keys', [row.id])).entries.get(row.id)?.value));
    assert.match(written.revoked_at, /^2\d/);
  });

  for (const [name, damage] of Object.entries({
    'too large': (path: string) => truncateSync(path, MAX_BYTES + 1),
    torn: (path: string) => truncateSync(path, 40),
    empty: (path: string) => truncateSync(path, 0),
  }))
    it(`makes a copy that is ${name} again at the start, and keeps the old file`, async (test) => {
      const { url } = await startStore(test);
      const first = await openHost(test, url);
      const row = newRow('good');
      await first.call(register('good', row));
      await first.close();
      damage(join(first.data, 'production.json'));
      // A torn copy is known by its beginning, too: a backup can lack the file with the proof.
      if (name === 'torn') rmSync(join(first.data, '.store-proof'));
      const host = await openHost(test, url, { data: first.data });
      assert.equal(host.state().hasTable, false);
      await host.call({ kind: 'look' });
      assert.ok(host.rows().has(row.id));
      assert.ok(host.events.includes('store-copy-unreadable'));
      assert.ok(existsSync(join(first.data, 'production.json.unreadable')));
    });

  it('keeps a lost revocation while the store refuses writes', async (test) => {
    const { url, store } = await startStore(test);
    const row = { ...newRow('revoked'), revoked_at: '2026-01-01T00:00:00Z' };
    const first = await openHost(test, url);
    await first.call(register('revoked', row));
    await first.close();
    const { revoked_at: _, ...live } = row;
    const entry = (await store.read('keys', [row.id])).entries.get(row.id) ?? assert.fail();
    await store.write('keys', [{ name: row.id, expectedVersion: entry.version, value: JSON.stringify(live) }], 'lost');
    await store.query('update gatefold.head set history = gen_random_uuid()');
    await store.query(
      "create function gatefold.refuse() returns trigger language plpgsql as $$ begin raise sqlstate '25006'; end $$",
    );
    await store.query('create trigger refuse before update on gatefold.head execute function gatefold.refuse()');
    const host = await openHost(test, url, { data: first.data });
    await host.call({ kind: 'look' });
    assert.equal(host.state().awayReason, null);
    assert.ok(host.rows().get(row.id)?.revoked_at);
    await host.close();
    await store.query('drop trigger refuse on gatefold.head');
    await openHost(test, url, { data: first.data });
    await until('a new process writes the revocation to the store', async () =>
      String((await store.read('keys', [row.id])).entries.get(row.id)?.value).includes('revoked_at'),
    );
  });

  it('logs once that a read-only store refuses the reports of the machine, and reads the table', async (test) => {
    const { url, store } = await startStore(test);
    await store.query(`alter database ${url.replace(/^.*\//, '')} set default_transaction_read_only = on`);
    const { now } = performance;
    let ahead = 0;
    test.mock.method(performance, 'now', () => now.call(performance) + ahead);
    const host = await openHost(test, url);
    // A look is answered after the chores of the look before, whose queries are older on the same connection.
    for (let look = 0; look < 30; look++) {
      ahead += 3000;
      await host.call({ kind: 'look' });
    }
    assert.equal(host.state().awayReason, null);
    assert.deepEqual(
      host.events.filter((event) => event.startsWith('store-')),
      ['store-refused'],
    );
  });

  it('finds changes without the bell, and logs store-bell-missing', async (test) => {
    const { url, store } = await startStore(test);
    const host = await openHost(test, url);
    await host.call({ kind: 'look' });
    await store.query("select pg_notify('gatefold', '')");
    for (const name of ['one', 'two']) await host.call(register(name));
    assert.equal(host.state().missedBells, 0);
    const row = newRow('silent');
    await store.query('alter table gatefold.entry disable trigger all');
    await store.query(
      `with h as (update gatefold.head set v = v + 1 where space = 'keys' returning v)
        insert into gatefold.entry select 'keys', '${row.id}', v, 0, v, '${JSON.stringify(row)}', 'x' from h`,
    );
    await until('the file has the row', () => host.rows().has(row.id));
    await until('the store-host logs store-bell-missing', () => host.events.includes('store-bell-missing'));
    await until('the store-host counts the missed bell', () => host.state().missedBells === 1);
  });

  it('shares the session key of the first machine with other machines, sealed by STORE_KEY', async (test) => {
    const { url, store } = await startStore(test);
    const data = mkdtempSync(join(tmpdir(), 'gatefold-host-'));
    writeFileSync(join(data, 'session.key'), `${'s'.repeat(43)}\n`);
    const keyOf = (host: TestHost) => readFileSync(join(host.data, 'session.key'), 'utf8').trim();
    const first = await openHost(test, url, { data, storeKey: KEY });
    const sealed = async () => String((await store.read('secrets')).entries.get(SESSION_KEY)?.value);
    await until('the store has the session key', async () => (await store.read('secrets')).entries.size === 1);
    assert.doesNotMatch(await sealed(), /ssss/);
    const second = await openHost(test, url, { storeKey: `${'n'.repeat(40)},${KEY}` });
    await until('the second machine has the session key', () => {
      try {
        return keyOf(second) === keyOf(first);
      } catch {
        return false;
      }
    });
    // The second machine has sealed it with its first key.
    await until(
      'the second machine seals the session key with its first key',
      async () => createSeal(['n'.repeat(40)]).open(SESSION_KEY, await sealed()).isCurrent,
    );
    const wrong = await openHost(test, url, { storeKey: 'w'.repeat(40) });
    await until('the machine with a wrong key logs store-refused', () => wrong.events.includes('store-refused'));
    assert.throws(() => keyOf(wrong), /ENOENT/);
    assert.equal(wrong.state().awayReason, null);
  });
});

it('a store-host warns of a database on another machine without TLS', async (test) => {
  test.mock.method(dns, 'lookup', () => {});
  for (const [name, isWarned] of [
    ['127.0.0.1:1', false],
    ['db.test', true],
    ['127.0.0.1:1,db.test', true],
  ] as const) {
    const { events } = await openHost(test, `postgres://user:@${name}/database?sslmode=disable`);
    assert.equal(events.includes('store-unencrypted'), isWarned, name);
  }
});

describe('a sealed value', () => {
  const seal = createSeal([KEY]);
  const sealed = seal.seal('a', 'the text');
  const cases: readonly (readonly [name: string, open: () => unknown])[] = [
    ['with another key', () => createSeal(['x'.repeat(40)]).open('a', sealed)],
    ['with another name', () => seal.open('b', sealed)],
    ['with a changed byte', () => seal.open('a', sealed.slice(0, -2) + (sealed.endsWith('AA') ? 'BB' : 'AA'))],
    ['without its last part', () => seal.open('a', sealed.slice(0, 20))],
    ['when the text was never sealed', () => seal.open('a', 'the text')],
    ['with an unknown version', () => seal.open('a', sealed.replace('v1', 'v2'))],
  ];
  for (const [name, open] of cases) it(`does not open ${name}`, () => assert.throws(open, /STORE_KEY|sealed/));
  it('opens with its key, and differs from other seals of the same text', () => {
    assert.deepEqual(seal.open('a', sealed), { text: 'the text', isCurrent: true });
    assert.equal(seal.open('a', seal.seal('a', '')).text, '');
    assert.notEqual(seal.seal('a', 'the text'), sealed);
    assert.equal(createSeal(['y'.repeat(40), KEY]).open('a', sealed).isCurrent, false);
  });
});

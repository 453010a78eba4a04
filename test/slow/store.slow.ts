// The store during faults: a real PostgreSQL with standbys that is killed, frozen, cut off, full, read-only, or
// replaced by a standby that lags. Also the copies that the machines have afterwards.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseSettings } from '../../src/base/config.ts';
import { createRow, revokeRow, rotateRow } from '../../src/callers/credentials/write/changes.ts';
import { type HostOptions, startHost } from '../../src/operate/store/host.ts';
import type { HostState } from '../../src/operate/store/messages.ts';
import type { PostgresStore } from '../../src/operate/store/postgres.ts';
import { updateRows } from '../../src/operate/store/update.ts';
import {
  type Cluster,
  type Server,
  startCluster,
  startProxy,
  withoutNotifications,
} from '../support/postgres-cluster.ts';
import { noPostgres, openStore } from '../support/store-bench.ts';
import { until } from '../support/store-machines.ts';

interface Copy {
  readonly state: () => HostState;
  /** How often the store-host has sent its state, which it does after each look. */
  readonly looks: () => number;
  readonly events: string[];
  /** Whether each id is revoked. */
  rows(): Map<string, boolean>;
  /** The hash of each id. */
  hashes(): Map<string, string>;
}

async function openCopy(test: TestContext, url: string): Promise<Copy> {
  const data = mkdtempSync(join(tmpdir(), 'gatefold-copy-'));
  test.after(() => rmSync(data, { recursive: true, force: true }));
  let state: HostState | undefined;
  let looks = 0;
  const events: string[] = [];
  const settings = parseSettings({ STORE: url, DATA_DIR: data }, [], { cores: 1 }) as HostOptions['settings'];
  const host = await startHost({
    settings,
    send(message) {
      if (message.kind === 'state') {
        state = message.state;
        looks++;
      }
      if (message.kind === 'log') events.push((JSON.parse(message.line) as { event: string }).event);
    },
  });
  test.after(() => host.close());
  await until('the first table', () => state?.hasTable === true);
  const readRows = () => {
    const { production } = JSON.parse(readFileSync(join(data, 'production.json'), 'utf8'));
    return production as { id: string; hash: string; revoked_at?: string }[];
  };
  return {
    events,
    looks: () => looks,
    state: () => state ?? assert.fail(),
    rows: () => new Map(readRows().map(({ id, revoked_at }) => [id, revoked_at !== undefined])),
    hashes: () => new Map(readRows().map(({ id, hash }) => [id, hash])),
  };
}

async function openCluster(test: TestContext, standbys: number, ...settings: string[]): Promise<Cluster> {
  const cluster = await startCluster(standbys, ...settings);
  test.after(() => cluster.close());
  const store = openStore(test, cluster.url());
  await store.init();
  await store.close();
  return cluster;
}

/** @returns the ids */
async function addRows(store: PostgresStore, count: number): Promise<string[]> {
  const rows = Array.from({ length: count }, (_, index) => createRow({ name: `row ${index}` }, Date.now()).row);
  await updateRows(store, [], (table) => {
    for (const row of rows) table.append(row);
  });
  return rows.map(({ id }) => String(id));
}

const revoke = (store: PostgresStore, id: string) =>
  updateRows(store, [id], (table) => revokeRow(table, id, Date.now()), 60_000);

const isStreaming = async (primary: Server, count: number) =>
  (await primary.sql('select count(*) from pg_stat_replication')) === String(count);

// Each test has servers of its own, and waits for most of its time.
describe('the store during faults', { skip: noPostgres, concurrency: 3 }, () => {
  it('loses no confirmed change when the primary is killed and a synchronous standby promoted', async (test) => {
    const cluster = await openCluster(test, 2);
    const url = cluster.url();
    let [primary, next, last] = cluster.servers as [Server, Server, Server];
    const setSynchronous = async (server: Server) => {
      await server.sql("alter system set synchronous_standby_names = 'ANY 1 (*)'");
      await server.sql('select pg_reload_conf()');
    };
    await until('both standbys stream', () => isStreaming(primary, 2));
    await setSynchronous(primary);
    const copies = await Promise.all([1, 2, 3].map(() => openCopy(test, url)));
    const store = openStore(test, url);
    const ids = await addRows(store, 120);
    const writing = (async () => {
      for (const id of ids) await revoke(store, id);
    })();
    for (let kills = 0; kills < 2; kills++) {
      await sleep(300);
      await primary.kill();
      // The standby that has received more of the log is the one that has confirmed the writes.
      const lag = async (server: Server) =>
        BigInt(await server.sql("select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"));
      if ((await lag(last)) > (await lag(next))) [next, last] = [last, next];
      await next.promote();
      await last.kill();
      await cluster.follow(last, next);
      await cluster.follow(primary, next);
      [primary, next, last] = [next, last, primary];
    }
    await writing;
    for (const copy of copies)
      await until('each copy has each revocation', () => {
        const rows = copy.rows();
        return ids.every((id) => rows.get(id) === true);
      });
    assert.equal((await store.read('keys')).entries.size, ids.length);
  });

  it('restores revocations and rotations that a promoted standby lacks, and undoes none', async (test) => {
    const cluster = await openCluster(test, 1);
    const [primary, standby] = cluster.servers as [Server, Server];
    const copies = await Promise.all([1, 2].map(() => openCopy(test, cluster.url())));
    const store = openStore(test, cluster.url());
    const ids = await addRows(store, 60);
    await until(
      'the standby has the rows',
      async () => (await standby.sql("select count(*) from gatefold.entry where space = 'keys'")) === '60',
    );
    await standby.sql("alter system set primary_conninfo = ''");
    await standby.sql('select pg_reload_conf()');
    await until('the standby lags', () => isStreaming(primary, 0));
    const rotated = ids.slice(50);
    const leaked = copies[0]?.hashes() ?? new Map();
    for (const id of ids.slice(0, 40)) await revoke(store, id);
    for (const id of rotated) await updateRows(store, [id], (table) => rotateRow(table, id, 0, Date.now()), 60_000);
    const isReplaced = (copy: Copy, id: string) => copy.hashes().get(id) !== leaked.get(id);
    for (const copy of copies)
      await until('the copies have the changes', () => {
        const rows = copy.rows();
        return ids.slice(0, 40).every((id) => rows.get(id) === true) && rotated.every((id) => isReplaced(copy, id));
      });
    const replacing = copies[0]?.hashes();
    const undone = new Set<string>();
    const watch = setInterval(() => {
      for (const copy of copies) for (const id of ids.slice(0, 40)) if (copy.rows().get(id) !== true) undone.add(id);
      for (const copy of copies) for (const id of rotated) if (!isReplaced(copy, id)) undone.add(id);
    }, 20);
    test.after(() => clearInterval(watch));
    await primary.kill();
    await standby.promote();
    const other = openStore(test, cluster.url());
    await until(
      'the new history has each revocation',
      async () =>
        [...(await other.read('keys')).entries.values()].filter(({ value }) => value?.includes('revoked_at')).length ===
        40,
    );
    for (const id of ids.slice(40, 50)) await revoke(other, id);
    for (const copy of copies)
      await until('changes after the promotion are seen', () => ids.slice(0, 50).every((id) => copy.rows().get(id)));
    await until('the new history has each rotation', async () => {
      const { entries } = await other.read('keys', rotated);
      return rotated.every((id) => JSON.parse(entries.get(id)?.value ?? '{}').hash === replacing?.get(id));
    });
    assert.deepEqual([...undone], []);
    assert.ok(copies.some(({ events }) => events.includes('store-rows-older')));
    assert.ok(copies.some(({ events }) => events.includes('store-rotation-restored')));
    assert.ok(copies.some(({ events }) => events.includes('store-revocation-restored')));
  });

  it('detects a silently cut connection, and is complete after the reconnect', async (test) => {
    const cluster = await openCluster(test, 0);
    const [primary] = cluster.servers as [Server];
    const proxy = await startProxy(primary.port);
    test.after(() => proxy.close());
    const copy = await openCopy(test, cluster.url([proxy]));
    const store = openStore(test, cluster.url());
    proxy.cut();
    const ids = await addRows(store, 5);
    await until('the store is away', () => copy.state().awayReason !== null);
    assert.equal(copy.rows().size, 0);
    proxy.heal();
    await until('the copy is complete', () => ids.every((id) => copy.rows().has(id)));
  });

  it('is away while the server is frozen or out of connections', async (test) => {
    const cluster = await openCluster(test, 0);
    const [primary] = cluster.servers as [Server];
    await primary.sql('create user machine');
    await primary.sql('grant usage on schema gatefold to machine');
    await primary.sql('grant select, insert, update, delete on all tables in schema gatefold to machine');
    const url = cluster.url().replace('postgres@', 'machine@');
    const copy = await openCopy(test, url);
    const isAway = () => copy.state().awayReason !== null;
    primary.freeze();
    await until('the store is away while the server is frozen', isAway);
    const looksBefore = copy.looks();
    await until('the store-host makes more attempts', () => copy.looks() > looksBefore + 1);
    assert.equal(copy.events.filter((event) => event === 'store-away').length, 1);
    primary.thaw();
    await until('the store is back', () => !isAway());

    await primary.sql('alter user machine connection limit 0');
    await primary.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'machine'");
    await until('the store reports no free connection', () =>
      /no free connection/.test(String(copy.state().awayReason)),
    );
    const ids = await addRows(openStore(test, cluster.url()), 1);
    await primary.sql('alter user machine connection limit -1');
    await until('the copy is complete', () => ids.every((id) => copy.rows().has(id)));
    assert.equal(isAway(), false);
  });

  it('logs in by SCRAM, and reports a changed password', async (test) => {
    const cluster = await openCluster(test, 0);
    const [primary] = cluster.servers as [Server];
    await primary.sql("create user guarded superuser password 'first word'");
    writeFileSync(
      join(primary.folder, 'pg_hba.conf'),
      'host all guarded 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n',
    );
    await primary.sql('select pg_reload_conf()');
    const url = cluster.url().replace('postgres@', 'guarded:first%20word@');
    const copy = await openCopy(test, url);
    await primary.sql("alter user guarded password 'second word'");
    await primary.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'guarded'");
    await until('the password is refused', () =>
      /refuses the user or the password/.test(String(copy.state().awayReason)),
    );
    await assert.rejects(openStore(test, url).read('keys'), /refuses the user or the password/);
    const ids = await addRows(openStore(test, cluster.url()), 1);
    await primary.sql("alter user guarded password 'first word'");
    await until('the copy is complete', () => ids.every((id) => copy.rows().has(id)));
  });

  it('serves while the database is full or read-only, and refuses writes with the reason', async (test) => {
    const cluster = await openCluster(test, 0);
    const [primary] = cluster.servers as [Server];
    const copy = await openCopy(test, cluster.url());
    const store = openStore(test, cluster.url());
    const [id = ''] = await addRows(store, 1);
    for (const [name, state, reason] of [
      ['full', '53100', /disk is full/],
      ['read-only', '25006', /read-only/],
    ] as const) {
      // A trigger simulates the full disk, because filling the real disk would fill this machine's.
      await primary.sql(`create function refuse() returns trigger language plpgsql as $$ begin raise sqlstate '${state}'; end $$;
        create trigger refuse before update on gatefold.head execute function refuse()`);
      await assert.rejects(
        updateRows(store, [id], (table) => revokeRow(table, id, 0), 200),
        reason,
        name,
      );
      assert.equal(copy.state().awayReason, null);
      await primary.sql('drop trigger refuse on gatefold.head; drop function refuse()');
    }
    await revoke(store, id);
    await until('the copy has the revocations', () => copy.rows().get(id) === true);
  });

  it('reads every change without notifications', async (test) => {
    const cluster = await openCluster(test, 0);
    const [primary] = cluster.servers as [Server];
    const proxy = await startProxy(primary.port, withoutNotifications);
    test.after(() => proxy.close());
    const copy = await openCopy(test, cluster.url([proxy]));
    const store = openStore(test, cluster.url());
    const ids = await addRows(store, 3);
    await until('the copy has the rows', () => ids.every((id) => copy.rows().has(id)));
    await until('the missing notifications are logged', () => copy.events.includes('store-bell-missing'));
    for (const id of ids) await revoke(store, id);
    await until('the copy has the revocations', () => ids.every((id) => copy.rows().get(id)));
  });
});

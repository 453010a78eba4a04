// A long run of the store: machines use a PostgreSQL with two standbys, one of them synchronous. Primaries are killed,
// connections are cut, and machines and their store-hosts end. No request may fail, and no confirmed change may be
// lost.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRow, revokeRow } from '../../src/callers/credentials/write/changes.ts';
import { updateRows } from '../../src/operate/store/update.ts';
import { type Server, startCluster, startProxy } from '../support/postgres-cluster.ts';
import { noPostgres, openStore } from '../support/store-bench.ts';
import { findStoreHost, type Machine, startMachine, until } from '../support/store-machines.ts';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 5);
const MACHINES = Number(process.env.SOAK_MACHINES ?? 3);

const memoryOf = (pid?: number) =>
  Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);

test(`${MACHINES} machines fail no request and undo no revocation in ${MINUTES} minutes of faults`, {
  skip: noPostgres,
}, async (suite) => {
  const cluster = await startCluster(2, 'synchronous_standby_names=ANY 1 (*)', 'synchronous_commit=on');
  suite.after(() => cluster.close());
  let [primary, next, last] = cluster.servers as [Server, Server, Server];
  const store = openStore(suite, cluster.url());
  await store.init();
  // One proxy for each pair of machine and server, so that each machine can be cut off alone.
  const proxies = await Promise.all(
    Array.from({ length: MACHINES }, () => Promise.all(cluster.servers.map(({ port }) => startProxy(port)))),
  );
  suite.after(() => {
    for (const proxy of proxies.flat()) proxy.close();
  });
  const machines = await Promise.all(proxies.map((list) => startMachine(suite, cluster.url(list))));
  await until('each machine has a store-host', () => machines.every((machine) => findStoreHost(machine) !== undefined));
  const memoryBefore = machines.map((machine) => memoryOf(findStoreHost(machine)));

  const live = new Map<string, string>();
  const revoked = new Map<string, string>();
  /** Tokens that a machine has refused after their revocation. The machine must not accept them again. */
  const refused = machines.map(() => new Set<string>());
  const counts = { requests: 0, failed: 0, undone: 0, issued: 0, revoked: 0 };
  const faults = new Map<string, number>();
  const kept = createRow({ name: 'kept', groups: '*' }, Date.now());
  await updateRows(store, [], (table) => table.append(kept.row));
  for (const machine of machines)
    await until('the kept key is accepted', async () => (await machine.ask(kept.token.token)) === 200);

  const end = performance.now() + MINUTES * 60_000;
  const isOver = () => performance.now() > end;

  async function change(): Promise<void> {
    while (!isOver()) {
      const { row, token } = createRow({ name: 'soak', groups: '*' }, Date.now());
      await updateRows(store, [], (table) => table.append(row), 120_000);
      live.set(token.id, token.token);
      counts.issued++;
      const [id] = live.keys();
      if (live.size > 200 && id !== undefined) {
        await updateRows(store, [id], (table) => revokeRow(table, id, Date.now()), 120_000);
        revoked.set(id, String(live.get(id)));
        live.delete(id);
        counts.revoked++;
      }
      await sleep(30);
    }
  }

  async function ask(machine: Machine, index: number): Promise<void> {
    while (!isOver()) {
      counts.requests++;
      if ((await machine.ask(kept.token.token).catch(() => 0)) !== 200) counts.failed++;
      const list = [...revoked.values()];
      const token = list[Math.floor(Math.random() * list.length)];
      if (token !== undefined) {
        const status = await machine.ask(token).catch(() => 0);
        if (status === 401) refused[index]?.add(token);
        else if (refused[index]?.has(token)) counts.undone++;
      }
      await sleep(20);
    }
  }

  const kinds: Record<string, () => Promise<void>> = {
    async 'primary killed'() {
      const received = async (server: Server) =>
        BigInt(await server.sql("select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"));
      await primary.kill();
      if ((await received(last)) > (await received(next))) [next, last] = [last, next];
      await next.promote();
      await last.kill();
      await cluster.follow(last, next);
      await cluster.follow(primary, next);
      [primary, next, last] = [next, last, primary];
    },
    async 'primary stopped'() {
      primary.freeze();
      await sleep(4000);
      primary.thaw();
    },
    async 'connection cut'() {
      const list = proxies[Math.floor(Math.random() * MACHINES)] ?? [];
      for (const proxy of list) proxy.cut();
      await sleep(8000);
      for (const proxy of list) proxy.heal();
    },
    async 'store-host killed'() {
      const pid = findStoreHost(machines[Math.floor(Math.random() * MACHINES)] as Machine);
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    },
  };

  async function disturb(): Promise<void> {
    for (let round = 0; !isOver(); round++) {
      const [name, fault] = Object.entries(kinds)[round % 4] as [string, () => Promise<void>];
      await fault();
      faults.set(name, (faults.get(name) ?? 0) + 1);
      await sleep(2000);
    }
  }

  await Promise.all([change(), change(), disturb(), ...machines.map(ask)]);
  const begun = performance.now();
  for (const machine of machines) {
    for (const token of revoked.values())
      await until('the revoked key is refused', async () => (await machine.ask(token)) === 401);
    for (const token of live.values())
      await until('the live key is accepted', async () => (await machine.ask(token)) === 200);
  }
  const memory = machines.map((machine, index) => `${memoryBefore[index]} → ${memoryOf(findStoreHost(machine))}`);
  suite.diagnostic(JSON.stringify({ ...counts, faults: Object.fromEntries(faults) }));
  suite.diagnostic(
    `all checked in ${Math.round(performance.now() - begun)} ms; MiB of a store-host: ${memory.join(', ')}`,
  );
  assert.deepEqual([counts.failed, counts.undone], [0, 0]);
});

// The store-host: the process that talks to the store for the supervisor of one machine. While it does not run, the
// machine cannot use the store. It writes the replica, which is the machine's copy of the credentials table. Workers
// read the replica, so a request with a known credential never waits for this process.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import { createLog } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { isLoopback, type StoreAddress } from '../base/store-address.ts';
import { refuseRegistration } from '../credentials/write/changes.ts';
import { loadPostgres } from './connection.ts';
import { createFollower } from './follower.ts';
import type { Answer, FromHost, Request, ToHost } from './messages.ts';
import { createPostgresStore } from './postgres.ts';
import { openReplica, type Replica } from './replica.ts';
import { createSeal } from './seal.ts';
import { syncSessionKey } from './session-key.ts';
import { type Store, StoreAway } from './store.ts';
import { retryWhileAway } from './update.ts';

export interface HostOptions {
  readonly settings: Settings & { readonly store: StoreAddress };
  readonly send: (message: FromHost) => void;
}

export interface Host {
  receive(message: ToHost): void;
  close(): Promise<void>;
}

/** Milliseconds between two reports that this machine is alive. */
const REPORT_INTERVAL = 5000;
/** Milliseconds between two reads of the session key from the store. */
const SESSION_KEY_INTERVAL = 30_000;
/** Milliseconds between two removals of the rates that have all their tokens again. */
const SWEEP_INTERVAL = 60_000;
/** Milliseconds for which a registration is retried. The limit is short because the client waits for the answer. */
const REGISTRATION_PATIENCE = 5000;

export async function startHost({ settings, send }: HostOptions): Promise<Host> {
  const { dataDir, controllersDir, store: address, storeKey } = settings;
  // The supervisor writes the lines of this log, so that only one process writes to the output.
  const log = createLog({
    level: settings.logLevel,
    sink: { write: (line) => send({ kind: 'log', line }), flush() {} },
  });
  const load = () => loadPostgres([controllersDir, process.cwd()]);
  // A missing package is a mistake of the installation. So the start fails here, even when a replica exists.
  await load();
  const store = createPostgresStore({ address, load, name: 'gatefold' });
  const replica = openReplica(dataDir, log);
  const seal = storeKey.length === 0 ? undefined : createSeal(storeKey);
  const dueAt = { report: 0, sessionKey: 0, sweep: performance.now() + SWEEP_INTERVAL };
  let machines = 1;
  let looks = 0;
  let lastChoreFailure = '';
  const follower = createFollower({
    store,
    replica,
    log,
    onPublished: () => send({ kind: 'published' }),
    onLook() {
      looks++;
      sendState();
      void doChores();
    },
  });
  sendState();
  if (address.tls === 'off' && !address.hosts.every(({ host }) => isLoopback(host)))
    log.warn('store-unencrypted', { effect: 'who reads the network reads hashes of keys, and may change rows' });

  function sendState(): void {
    const { away = null, ...status } = follower.status();
    const age = replica.age();
    send({
      kind: 'state',
      state: {
        ...{ ...status, away, machines, looks },
        hasTable: replica.hasTable(),
        age: Number.isFinite(age) ? age : null,
        rows: replica.rows().size,
      },
    });
  }

  /**
   * Does the periodic work that is due, after each look (a query for changes). If the look has failed, only the next
   * read of the session key becomes due.
   */
  async function doChores(): Promise<void> {
    if (follower.status().away !== undefined) {
      dueAt.sessionKey = 0;
      return;
    }
    const now = performance.now();
    const isDue = (name: keyof typeof dueAt, interval: number) => {
      if (now < dueAt[name]) return false;
      dueAt[name] = now + interval;
      return true;
    };
    try {
      if (isDue('report', REPORT_INTERVAL)) machines = await store.reportMachine();
      if (isDue('sweep', SWEEP_INTERVAL)) await store.sweepRates();
      if (
        seal !== undefined &&
        isDue('sessionKey', SESSION_KEY_INTERVAL) &&
        (await syncSessionKey(store, seal, dataDir))
      )
        send({ kind: 'published' });
      lastChoreFailure = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastChoreFailure) log.warn('store-refused', { reason: message });
      lastChoreFailure = message;
    }
  }

  async function answer(request: Request): Promise<Answer> {
    switch (request.kind) {
      case 'look':
        await follower.look();
        return {};
      case 'register':
        return register(store, replica, follower.look, request);
      case 'spend':
        if (follower.status().away !== undefined) throw new StoreAway('the store is away');
        return { tokens: (await store.spend(request.spendings)).tokens };
    }
  }

  return {
    receive({ call, request }) {
      answer(request)
        .catch((error: unknown) => ({ error: (error as Error).message }))
        .then((result) => send({ kind: 'answer', call, answer: result }));
    },
    async close() {
      follower.close();
      await store.close();
    },
  };
}

type Registration = Extract<Request, { kind: 'register' }>;

/**
 * Registers an application. The write succeeds only if no row has changed since the check of the limits. Otherwise both
 * are repeated.
 */
async function register(
  store: Store,
  replica: Replica,
  look: () => Promise<void>,
  { row, owner, name }: Registration,
): Promise<Answer> {
  const id = crypto().randomUUID();
  const subject = JSON.stringify(owner.subject);
  const { id: rowName } = row as { readonly id: string };
  const change = { name: rowName, expectedVersion: '', value: JSON.stringify(row) };
  const attempt = async (): Promise<Answer | undefined> => {
    await look();
    if (replica.rows().has(rowName)) return {};
    const candidates = [...replica.rows().values()].filter((text) => text.includes(subject));
    const code = refuseRegistration(
      candidates.map((text) => JSON.parse(text) as unknown),
      owner,
      name,
      Date.now(),
    );
    if (code !== undefined) return { error: code, code };
    if (!(await store.write('keys', [change], id, replica.version()))) return undefined;
    await look().catch(() => {});
    return {};
  };
  for (const deadline = performance.now() + REGISTRATION_PATIENCE; ; ) {
    const result = await retryWhileAway(attempt, deadline - performance.now());
    if (result !== undefined) return result;
    if (performance.now() > deadline) throw new StoreAway('other machines write all the time');
    await sleep(10 * Math.random());
  }
}

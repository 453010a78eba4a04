// The store-host. Workers read the replica that it writes, so a request with a known credential never waits for this
// process or for the store.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { createLog } from '../../base/log.ts';
import type { Settings } from '../../base/settings.ts';
import { isLoopback, type StoreAddress } from '../../base/store-address.ts';
import { FILLING_BYTES, MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { refuseRegistration } from '../../callers/credentials/write/changes.ts';
import { loadPostgres } from './connection.ts';
import { createFollower } from './follower.ts';
import { readMachine, writeMachine } from './machine.ts';
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

/** Milliseconds between two reports to the store that this machine is alive. */
const REPORT_INTERVAL_MS = 5000;
/** Seconds. Each machine checks by its own clock whether a key or a session has expired. */
const MAX_CLOCK_DIFFERENCE = 5;
/** Milliseconds between two reads of the session key from the store. */
const SESSION_KEY_INTERVAL_MS = 30_000;
/** Milliseconds between two removals of rate limits that have all their tokens again. */
const SWEEP_INTERVAL_MS = 60_000;
/** Milliseconds for which a registration is retried. The time is short because the client waits for the answer. */
const REGISTRATION_PATIENCE_MS = 5000;

export async function startHost({ settings, send }: HostOptions) {
  const { dataDir, controllersDir, store: address, storeKeys } = settings;
  // The supervisor writes the lines of this log, so that only one process writes to the output.
  const log = createLog({ level: settings.logLevel, sink: { write: (line) => send({ kind: 'log', line }) } });
  const load = () => loadPostgres([controllersDir, process.cwd()]);
  // Without the package `postgres`, the start fails here, even when the machine could serve from its replica.
  await load();
  const { id: machineId, machines: lastMachines } = readMachine(dataDir);
  const store = createPostgresStore({ address, load, name: 'gatefold', machineId, onBell: () => follower.onBell() });
  const replica = openReplica(dataDir, log);
  const seal = storeKeys.length === 0 ? undefined : createSeal(storeKeys);
  /** When each chore is due next, by `performance.now()`. */
  const dueAt = { report: 0, sessionKey: 0, sweep: performance.now() + SWEEP_INTERVAL_MS };
  let machines = lastMachines;
  /** The number of machines in the file. */
  let writtenMachines = 0;
  let secondsAhead = 0;
  let isClockWrong = false;
  let isFilling = false;
  /** The message of the chores' last failure, which is not logged again; empty after a success. */
  let lastChoreFailure = '';
  const follower = createFollower({
    store,
    replica,
    log,
    onPublished: () => send({ kind: 'files-changed' }),
    onChanged: (changed) => send({ kind: 'rows-changed', changed }),
    onLook() {
      sendState();
      logIfFilling();
      void doChores();
    },
  });
  sendState();
  if (address.tls === 'off' && !address.hosts.every(({ host }) => isLoopback(host)))
    log.warn('store-unencrypted', { effect: 'who reads the network reads hashes of keys, and may change rows' });

  function sendState(): void {
    const facts = { tableBytes: replica.bytes(), tableLimit: MAX_BYTES, secondsAhead, machines };
    const state = { ...follower.status(), ...facts, hasTable: replica.hasTable(), age: replica.age() };
    send({ kind: 'state', state });
  }

  function logIfFilling(): void {
    const [bytes, wasFilling] = [replica.bytes(), isFilling];
    isFilling = bytes > FILLING_BYTES;
    if (isFilling && !wasFilling) log.warn('store-table-fills', { bytes, limit: MAX_BYTES });
  }

  /** Does the periodic work that is due. Called after each look, which is a query for changes. */
  async function doChores(): Promise<void> {
    if (follower.status().awayReason !== null) {
      // While the store is away, other machines may change the key there. So the key is read when the store is back.
      dueAt.sessionKey = 0;
      return;
    }
    const now = performance.now();
    /** Returns whether the chore is due. A chore that is due is done now, and is due again after the interval. */
    const takeTurn = (name: keyof typeof dueAt, interval: number) => {
      if (now < dueAt[name]) return false;
      dueAt[name] = now + interval;
      return true;
    };
    try {
      if (takeTurn('report', REPORT_INTERVAL_MS)) await report();
      if (takeTurn('sweep', SWEEP_INTERVAL_MS)) await store.sweepRates();
      const isKeyDue = seal !== undefined && takeTurn('sessionKey', SESSION_KEY_INTERVAL_MS);
      if (isKeyDue && (await syncSessionKey(store, seal, dataDir))) send({ kind: 'files-changed' });
      lastChoreFailure = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastChoreFailure) log.warn('store-refused', { reason: message });
      lastChoreFailure = message;
    }
  }

  async function report(): Promise<void> {
    const seen = await store.reportMachine();
    ({ machines, secondsAhead } = seen);
    if (machines !== writtenMachines) writeMachine(dataDir, { id: machineId, machines });
    writtenMachines = machines;
    const wasClockWrong = isClockWrong;
    isClockWrong = Math.abs(secondsAhead) - seen.uncertainty > MAX_CLOCK_DIFFERENCE;
    const effect = 'keys and sessions expire too early or too late here';
    if (isClockWrong && !wasClockWrong)
      log.warn('store-clock-differs', { store_seconds_ahead: Math.round(secondsAhead), effect });
  }

  async function answer(request: Request): Promise<Answer> {
    switch (request.kind) {
      case 'look':
        await follower.look();
        return {};
      case 'register':
        return register(store, replica, follower.look, request);
      case 'tasks': {
        const { service, version, text } = request;
        if (version !== undefined) {
          const change = { name: service, expectedVersion: version, value: text };
          return { isWritten: await store.write('tasks', [change], crypto().randomUUID()) };
        }
        const entry = (await store.read('tasks', [service])).entries.get(service);
        return { tasks: { version: entry?.version ?? '', text: entry?.value ?? '' } };
      }
      case 'spend':
        return { tokens: await store.spend(request.spendings) };
    }
  }

  return {
    receive({ call, request }: ToHost): void {
      answer(request)
        .catch((error: unknown) => ({ error: (error as Error).message }))
        .then((result) => send({ kind: 'answer', call, answer: result }));
    },
    async close(): Promise<void> {
      follower.close();
      await store.close();
    },
  };
}

/**
 * Adds the row of an application. The write succeeds only if no row has changed since the check of the limits.
 * Otherwise the check and the write are repeated.
 *
 * @throws StoreAway when there is no success within REGISTRATION_PATIENCE_MS
 */
async function register(
  store: Store,
  replica: Replica,
  look: () => Promise<void>,
  { row, owner, name }: Extract<Request, { kind: 'register' }>,
): Promise<Answer> {
  const writeId = crypto().randomUUID();
  const subject = JSON.stringify(owner.subject);
  const { id } = row as { readonly id: string };
  const change = { name: id, expectedVersion: '', value: JSON.stringify(row) };
  const attempt = async (): Promise<Answer | undefined> => {
    await look();
    // The row is there when an earlier attempt has written it and the answer was lost.
    if (replica.rows().has(id)) return {};
    // Only rows with the text of the subject can belong to the owner, so other rows are not parsed.
    const rows = [...replica.rows().values()]
      .filter((text) => text.includes(subject))
      .map((text): unknown => JSON.parse(text));
    const code = refuseRegistration(rows, owner, name, Date.now());
    if (code !== undefined) return { error: code, code };
    if (!(await store.write('keys', [change], writeId, replica.version()))) return undefined;
    // Workers read the replica, so it should have the row before the client gets its answer.
    await look().catch(() => {});
    return {};
  };
  const deadline = performance.now() + REGISTRATION_PATIENCE_MS;
  while (performance.now() < deadline) {
    const result = await retryWhileAway(attempt, deadline - performance.now());
    if (result !== undefined) return result;
    await sleep(10 * Math.random());
  }
  throw new StoreAway('other machines write all the time');
}

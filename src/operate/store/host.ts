// The store-host. A request with a known credential needs only its replica, and waits neither for it nor the store.
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { createLog } from '../../base/log.ts';
import type { Settings } from '../../base/settings.ts';
import { isLoopback, type StoreAddress } from '../../base/store-address.ts';
import { parseObject } from '../../base/values.ts';
import { FILLING_BYTES, MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { refuseRegistration } from '../../callers/credentials/write/changes.ts';
import { loadPostgres } from './connection.ts';
import { createFollower } from './follower.ts';
import type { Answer, FromHost, Request, ToHost } from './messages.ts';
import { createPostgresStore } from './postgres.ts';
import { openReplica, proofPathOf, type Replica } from './replica.ts';
import { createSeal } from './seal.ts';
import { syncSessionKey } from './session-key.ts';
import { type Store, StoreAway } from './store.ts';
import { retryWhileAway } from './update.ts';

export interface HostOptions {
  readonly settings: Settings & { readonly store: StoreAddress };
  readonly send: (message: FromHost) => void;
}

const REPORT_INTERVAL_MS = 5000;
/** Seconds. Each machine checks by its own clock whether a key or a session has expired. */
const MAX_CLOCK_DIFFERENCE = 5;
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
  let writtenMachines = 0;
  let secondsAhead = 0;
  let isClockWrong = false;
  let isFilling = false;
  /** The message of each chore's last failure, without the chores that have succeeded since. It is logged once. */
  const failures = new Map<string, string>();
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
    await doChore('report', REPORT_INTERVAL_MS, report);
    await doChore('sweep', SWEEP_INTERVAL_MS, () => store.sweepRates());
    if (seal === undefined) return;
    await doChore('sessionKey', SESSION_KEY_INTERVAL_MS, async () => {
      if (await syncSessionKey(store, seal, dataDir)) send({ kind: 'files-changed' });
    });
  }

  /** Does the chore if it is due. Then it is due again after the interval. Chores often fail for the same reason. */
  async function doChore(name: keyof typeof dueAt, interval: number, work: () => Promise<unknown>): Promise<void> {
    const now = performance.now();
    if (now < dueAt[name]) return;
    dueAt[name] = now + interval;
    try {
      await work();
      failures.delete(name);
    } catch (error) {
      const { message } = error as Error;
      if (![...failures.values()].includes(message)) log.warn('store-refused', { reason: message });
      failures.set(name, message);
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
 * Adds the row of an application. A change of any row since the check of the limits repeats the check and the write.
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

/**
 * Reads the id of this machine and the number of machines. With a new id after a restart, a machine would count twice,
 * and each would allow less than its part of a rate. A file from a machine with another name is of no use.
 */
function readMachine(dataDir: string) {
  // There may be no file, or this user may not read it.
  const text = attempt(() => readFileSync(proofPathOf(dataDir), 'utf8'), '');
  const { id, name, machines } = parseObject(text) ?? {};
  if (typeof id === 'string' && name === hostname() && Number.isSafeInteger(machines))
    return { id, machines: Math.max(1, Number(machines)) };
  return { id: crypto().randomUUID(), machines: 1 };
}

/** Called just after a look, because it also sets the time of the file. */
function writeMachine(dataDir: string, { id, machines }: ReturnType<typeof readMachine>): void {
  const text = `${JSON.stringify({ id, name: hostname(), machines })}\n`;
  // On a full disk, this machine counts twice for 15 s after its next restart.
  attempt(() => writeFileSync(proofPathOf(dataDir), text), undefined);
}

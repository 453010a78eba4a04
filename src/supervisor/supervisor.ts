// The supervisor: hears what happens to the folder and to the workers, and chooses what is done next, one step at a
// time. How a generation is rolled out, a worker replaced or what failed probed, the files beside it know.

import type { Log } from '../base/log.ts';
import type { LoadedFile } from '../groups/module-loader.ts';
import { parseFileName } from '../groups/naming.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { SecureState } from '../https/serve/secure-state.ts';
import type { Spending } from '../limits/rate-limiter.ts';
import type { FolderWatch } from './folder/watch.ts';
import { createLoader } from './generation.ts';
import { createGroupTable } from './group-table.ts';
import { createNewGroups } from './new-groups.ts';
import { createPoisonList } from './poison-list.ts';
import { replace } from './replacement.ts';
import { createRetries } from './retries.ts';
import { rollOut } from './rollout.ts';
import { RETRY, type Service, secure } from './service.ts';
import { describeService, type SupervisorStatus } from './status.ts';
import type { Pool } from './workers/pool.ts';
import type { Port } from './workers/port.ts';
import { createProbe } from './workers/probe.ts';
import type { Death, WorkerEvents, WorkerProcess } from './workers/worker-handle.ts';

export interface SupervisorOptions {
  /** How many workers serve. */
  readonly workers: number;
  readonly dir: string;
  /** Every worker of every generation shares its socket. */
  readonly port: Port;
  /** Milliseconds. */
  readonly drainTimeout: number;
  /** Milliseconds that a service which stops still accepts connections. */
  readonly acceptFor: number;
  readonly log: Log;
  /** What a worker needs to serve HTTPS; undefined: HTTP without TLS. */
  readonly secureState?: (() => SecureState) | undefined;
  /** The groups that serve from now on; also when one was imported in place. */
  readonly onGroups?: ((groups: Iterable<GroupLoad>) => void) | undefined;
  /** Callers with a rate limit have called a worker. */
  readonly onSpent?: (worker: WorkerProcess, spendings: readonly Spending[]) => void;
  /** What a worker has counted. */
  readonly onMetrics?: (worker: WorkerProcess, metrics: unknown) => void;
  /** Processes, and the watch over the disk: handed in, so that a test needs neither. */
  readonly createPool: (events: WorkerEvents) => Pool;
  readonly createWatch: (onChange: (what: string) => void) => FolderWatch;
  readonly now?: () => number;
}

export interface Supervisor {
  /** Resolves when the first generation serves. @throws StartError when it cannot. */
  start(): Promise<void>;
  /** A new generation, whether or not the folder has changed. */
  renew(): void;
  /** `secureState` has changed: tells every worker. */
  secure(): void;
  /** Drains every worker; resolves when the last one is gone. */
  stop(): Promise<void>;
  /** Ends every worker at once. */
  kill(): void;
  status(): SupervisorStatus;
}

type Step =
  | { readonly kind: 'generation'; readonly cause: string }
  | { readonly kind: 'replacement'; readonly count: number }
  | { readonly kind: 'probe' }
  /** Nothing is due for as many milliseconds, if ever. */
  | { readonly kind: 'wait'; readonly time: number };

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds: a step that the system did not let us make is made again. */
const STEP_RETRY = 1000;

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { dir, log, workers, drainTimeout, port, now = () => performance.now() } = options;
  const poison = createPoisonList(dir);
  const retries = createRetries(workers, now);
  const pool = options.createPool({
    left: onLost,
    died: onDied,
    gone: turn,
    faulty: onFaulty,
    imported: onImported,
    // One that is on its way out may have read what is out of date.
    read: (worker, files) => isCurrent(worker) && watch.read(files),
    spent: (worker, spendings) => options.onSpent?.(worker, spendings),
    metrics: (worker, metrics) => options.onMetrics?.(worker, metrics),
  });
  const watch = options.createWatch(onChange);
  const loader = createLoader({ dir, pool, poison, look: watch.look });
  const newGroups = createNewGroups(pool.all);
  const table = createGroupTable(newGroups.isPending);
  const service: Service = {
    ...{ dir, workers, drainTimeout, port, log, pool, watch, loader, table, poison, retries, now },
    secureState: options.secureState,
    onGroups: options.onGroups,
    tally: { served: 0, rejected: 0, died: 0, replaced: 0 },
    counter: 0,
    isStopping: false,
    wantedFor: undefined,
    rejection: undefined,
    isKeptOut: false,
  };
  const probe = createProbe(service);
  let isStepping = false;
  let timer: NodeJS.Timeout | undefined;

  return {
    async start() {
      await rollOut(service, 'start');
      watch.start();
      turn();
    },
    renew: () => want('signal'),
    secure: () => secure(service, pool.all()),
    stop,
    kill() {
      for (const worker of pool.all()) worker.kill('the supervisor was told to end at once');
    },
    status: () => describeService(service),
  };

  async function stop(): Promise<void> {
    service.isStopping = true;
    watch.stop();
    clearTimeout(timer);
    loader.abort();
    // This copy of the socket first: nobody accepts on it, and what connects while it is the last one would be reset.
    port.close();
    for (const worker of pool.all()) {
      if (worker.state === 'serving') worker.drain(drainTimeout, options.acceptFor);
      else worker.quit();
    }
    const left = await pool.close();
    if (left.length > 0) log.error('workers-left', { workers: left.map(({ pid }) => pid) });
  }

  // What happens from outside. Each leaves a note of what is wanted, and lets the next step be chosen.

  function onChange(what: string): void {
    if (loader.isLoading() && !probe.isRunning()) loader.outdated();
    else want(what);
  }

  function want(cause: string): void {
    service.wantedFor = cause;
    probe.interrupt();
    turn();
  }

  function onLost(): void {
    if (service.isStopping || table.current.number === 0) return;
    retries.failed('death');
    probe.interrupt();
    turn();
  }

  function onDied(worker: WorkerProcess, { reason, during, importing }: Death): void {
    if (service.isStopping) return;
    const facts = {
      worker: worker.pid,
      generation: worker.generation,
      reason,
      file: worker.loadingFile ?? importing[0],
    };
    // What ends its process does so in every probe. It is known, and no request was near.
    if (probe.isRunning() && during === 'loading') return log.info('trial-died', facts);
    service.tally.died++;
    log.error('worker-died', facts);
    for (const file of importing) condemn(worker, file, reason);
    if (during === 'serving') onLost();
  }

  /** A new file has ended a worker that served: no other must import it. */
  function condemn(worker: WorkerProcess, file: string, reason: string): void {
    const group = parseFileName(file)?.group;
    if (group === undefined) return;
    poison.add(file, reason, watch.look());
    for (const other of pool.all()) other.send({ kind: 'skip', file, reason });
    const load = { group, file, ok: false, error: reason };
    onImported(worker, load, []);
    log.error('group-not-loadable', load);
  }

  function onFaulty(worker: WorkerProcess): void {
    retries.failed('death');
    if (worker.state === 'serving') {
      log.warn('worker-faulty', { worker: worker.pid, effect: 'it drains as soon as its replacement serves' });
      probe.interrupt();
    }
    turn();
  }

  function onImported(worker: WorkerProcess, load: GroupLoad, files: readonly LoadedFile[]): void {
    // One that is on its way out still imports what its open connections ask for, but its other files may be out of
    // date.
    if (isCurrent(worker)) {
      watch.imported(load, files);
      table.note(worker.generation, load);
      options.onGroups?.(table.current.groups.values());
    }
    if (load.ok) newGroups.imported(worker, load.group);
    else turn();
  }

  function isCurrent({ generation }: WorkerProcess): boolean {
    return generation >= table.current.number;
  }

  // One step at a time: the next one is chosen when the last one has ended, or when something has happened.

  function turn(): void {
    if (isStepping || service.isStopping || table.current.number === 0) return;
    isStepping = true;
    clearTimeout(timer);
    void run();
  }

  async function run(): Promise<void> {
    let pause = NEVER;
    try {
      for (let step = nextStep(); !service.isStopping; step = nextStep()) {
        if (step.kind === 'wait') {
          pause = step.time;
          break;
        }
        await make(step);
      }
    } catch (error) {
      log.error('supervisor-step-failed', { error: String(error) });
      pause = STEP_RETRY;
    }
    isStepping = false;
    if (Number.isFinite(pause) && !service.isStopping) timer = setTimeout(turn, pause);
  }

  /** What is most wanted. */
  function nextStep(): Step {
    const { wantedFor, rejection } = service;
    if (wantedFor !== undefined) return { kind: 'generation', cause: wantedFor };
    const retry =
      rejection === undefined ? NEVER : retries.remaining(rejection.error === undefined ? 'generation' : 'start');
    if (retry === 0) return { kind: 'generation', cause: RETRY };
    const serving = pool.serving();
    const count = workers - serving.filter(({ isFaulty }) => !isFaulty).length;
    if (count <= 0) {
      const time = rejection === undefined ? probe.remaining() : retry;
      return time === 0 ? { kind: 'probe' } : { kind: 'wait', time };
    }
    const isNoneLeft = serving.length === 0;
    // While a generation is refused, no replacement would equal those that serve.
    const admitted = isNoneLeft ? 0 : rejection === undefined ? retries.remaining('replacement') : NEVER;
    const time = Math.max(retries.remaining('death'), admitted);
    if (time > 0) return { kind: 'wait', time: Math.min(time, retry) };
    return isNoneLeft ? { kind: 'generation', cause: 'no worker is left' } : { kind: 'replacement', count };
  }

  async function make(step: Exclude<Step, { kind: 'wait' }>): Promise<void> {
    if (step.kind === 'replacement') return replace(service, step.count);
    if (step.kind === 'probe') return probe.run();
    await rollOut(service, step.cause).catch((error: unknown) => {
      service.wantedFor ??= step.cause;
      throw error;
    });
  }
}

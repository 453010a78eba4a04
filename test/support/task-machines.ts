// Machines whose runners share one state of tasks, in memory and without processes. A test sets every clock.
import { type Cell, Lease } from '../../src/live/tasks/lease.ts';
import { TaskRunner } from '../../src/live/tasks/runner.ts';
import type { TaskFacts } from '../../src/live/tasks/task.ts';
import type { TaskEnd, TaskOrder } from '../../src/live/tasks/task-host.ts';
import { createMemoryLog } from './memory-log.ts';

/** A state that all machines share. `away` refuses every read and write; `lag` makes a promotion lose writes. */
export function createSharedCell() {
  let [version, text] = [0, ''];
  const history: [number, string][] = [];
  const shared = {
    isAway: false,
    /** Called after each write, and may throw: the answer to the write is lost then. */
    onWritten: () => {},
    /** Loses the last writes, as an asynchronous standby can that becomes the primary. */
    promote(lost: number) {
      [version, text] = history.at(-1 - lost) ?? [0, ''];
    },
    text: () => text,
  };
  let refusals = 0;
  const check = () => {
    if (shared.isAway) throw new Error(++refusals % 2 === 0 ? 'the database is away' : 'the connection was closed');
  };
  const cell: Cell = {
    async read() {
      check();
      return { version: String(version), text };
    },
    async write(expected, next) {
      check();
      if (expected !== String(version)) return false;
      [version, text] = [version + 1, next];
      history.push([version, text]);
      shared.onWritten();
      return true;
    },
  };
  return { ...shared, shared, cell };
}

export interface FakeRun {
  readonly machine: string;
  readonly pid: number;
  readonly task: string;
  readonly run: number;
  readonly dueAt: number | undefined;
  aborted: boolean;
  ended: boolean;
  hold(time: number): void;
}

type RunOrder = Extract<TaskOrder, { kind: 'run-task' }>;

/** A run whose worker counts the time of the lease itself. */
function createRun(machine: string, pid: number, { task, run, dueAt, time }: RunOrder, clocks: Clocks): FakeRun {
  let [isAborted, until] = [false, clocks.steady + time];
  return {
    ...{ machine, pid, task, run, dueAt, ended: false },
    get aborted() {
      isAborted ||= clocks.steady >= until;
      return isAborted;
    },
    set aborted(value) {
      isAborted = value;
    },
    hold(time) {
      if (!this.aborted) until = clocks.steady + time;
    },
  };
}

/** Time for all machines: a wall clock, which may jump, and a clock that never goes back. */
export interface Clocks {
  wall: number;
  steady: number;
}

export function createMachine(name: string, cell: Cell, clocks: Clocks, runs: FakeRun[]) {
  const { log, lines } = createMemoryLog();
  const lease = new Lease(cell, () => clocks.steady, `1-1-${name}`);
  // No process has these ids.
  let pid = 100_000_000 + 1000 * Number(name.slice(1) || 9);
  const createWorker = () => {
    const worker = {
      pid: pid++,
      send(order: TaskOrder) {
        if (order.kind === 'run-task') runs.push(createRun(name, worker.pid, order, clocks));
        if (order.kind === 'hold-task')
          for (const run of runs) if (run.machine === name && run.run === order.run) run.hold(order.time);
      },
    };
    return worker;
  };
  let workers = [createWorker(), createWorker()];
  const runner = new TaskRunner({
    ...{ lease, log },
    workers: () => workers,
    clock: () => clocks.wall,
    now: () => clocks.steady,
  });
  const all = new Map(workers.map((worker) => [worker.pid, worker]));
  return {
    ...{ name, lines, runner, lease },
    mine: () => runs.filter((run) => run.machine === name),
    open: () => runs.filter((run) => run.machine === name && !run.ended),
    end(run: FakeRun, end: Partial<TaskEnd> = {}) {
      run.ended = true;
      const worker = all.get(run.pid);
      if (worker !== undefined)
        runner.ended(worker, { kind: 'task-ended', run: run.run, aborted: run.aborted, ...end });
    },
    /** New workers serve, and the old ones drain. */
    roll() {
      workers = [createWorker(), createWorker()];
      for (const worker of workers) all.set(worker.pid, worker);
    },
    /** A worker ends at once, with its runs. */
    kill(run: FakeRun) {
      run.ended = true;
      const worker = all.get(run.pid);
      workers = workers.map((other) => (other === worker ? createWorker() : other));
      for (const other of workers) all.set(other.pid, other);
      if (worker !== undefined) runner.ended(worker, undefined);
    },
    setWorkers(count: number) {
      workers = Array.from({ length: count }, createWorker);
      for (const worker of workers) all.set(worker.pid, worker);
    },
  };
}

export type Machine = ReturnType<typeof createMachine>;

/** Waits until all promises have settled that need no timer. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Moves all clocks on, a second at a time. */
export async function pass(
  seconds: number,
  clocks: Clocks,
  machines: readonly Machine[],
  each: () => void = () => {},
): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    clocks.wall += 1000;
    clocks.steady += 1000;
    for (const { runner } of machines) runner.step();
    await settle();
    each();
    await settle();
  }
}

export const every = (name: string, seconds: number, catchUp = true): TaskFacts => ({
  name,
  plan: { every: seconds * 1000 },
  catchUp,
});

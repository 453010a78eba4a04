// Runs `start` and the tasks of the service file in a worker. The supervisor says when, and hears how each run ended.
import type { ServiceOptions } from '../../api/controller/service.ts';
import type { ErrorFacts } from '../../base/events.ts';
import { describeError, type Log } from '../../base/log.ts';
import { createTaskLog } from '../../base/operation-log.ts';
import { withTimeLimit } from '../../base/time.ts';
import type { Task } from './task.ts';

export type TaskOrder =
  /** Run `start` of the service file, because the generation of this worker serves. */
  | { readonly kind: 'start' }
  | ({ readonly kind: 'run-task'; readonly task: string; readonly dueAt?: number | undefined } & Hold)
  | ({ readonly kind: 'hold-task' } & Hold);

/**
 * After `time` milliseconds, the signal of the run is aborted, unless another order has come. The worker counts them
 * itself, because another machine begins the task also where this supervisor hangs.
 */
interface Hold {
  readonly run: number;
  readonly time: number;
}

interface Run {
  readonly facts: { readonly task: string; readonly due_at?: string };
  readonly controller: AbortController;
  timer: NodeJS.Timeout | undefined;
}

export interface TaskEnd {
  readonly kind: 'task-ended';
  readonly run: number;
  /** Whether the signal was aborted before the end. */
  readonly aborted: boolean;
  /** Undefined when the run has returned. */
  readonly failure?: ErrorFacts | undefined;
}

export interface TaskHostOptions {
  readonly start?: ServiceOptions['start'];
  readonly tasks?: ReadonlyMap<string, Task>;
  readonly log: Log;
  /** Reports the end of a run. Calls back when the report is sent. */
  readonly send: (end: TaskEnd, onSent: () => void) => void;
  /** Called for a run that continues although its signal was aborted. */
  readonly onStuck: () => void;
}

export type TaskHost = ReturnType<typeof createTaskHost>;

/** Milliseconds in which a run must end when its signal is aborted. Then its worker is faulty. */
const ABORT_LIMIT = 5000;
/** Milliseconds for the function that `start` has returned. */
const STOP_LIMIT = 5000;

/** Returns the pause in milliseconds after so many failures in a row. */
export const pauseAfter = (failures: number): number => Math.min(60_000, 500 * 2 ** failures);

export function dueIn(dueAt: number | undefined): { due_at?: string } {
  return dueAt === undefined ? {} : { due_at: new Date(dueAt).toISOString() };
}

export function createTaskHost({ start, tasks, log, send, onStuck }: TaskHostOptions) {
  const draining = new AbortController();
  const runs = new Map<number, Run>();
  let starting: Promise<unknown> | undefined;

  async function runStart(): Promise<unknown> {
    const { signal } = draining;
    for (let failures = 1; start !== undefined && !signal.aborted; failures++) {
      try {
        return await start({ signal, log: createTaskLog(log, 'start') });
      } catch (error) {
        if (signal.aborted) return undefined;
        const retry_in_ms = pauseAfter(failures);
        log.error('start-failed', { retry_in_ms, ...describeError(error) });
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, retry_in_ms);
          signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
        });
      }
    }
    return undefined;
  }

  function hold({ run: id, time }: Hold): void {
    const run = runs.get(id);
    if (run === undefined) return;
    clearTimeout(run.timer);
    const abort = () => {
      if (!runs.has(id) || run.timer !== timer) return;
      if (!run.controller.signal.aborted) log.warn('task-lease-lost', { ...run.facts, worker: process.pid });
      run.controller.abort();
      setTimeout(() => runs.has(id) && onStuck(), ABORT_LIMIT).unref();
    };
    // After code that has blocked this worker, Node calls timers before it reads the orders that have come meanwhile.
    const timer = setTimeout(() => setImmediate(abort), time).unref();
    run.timer = timer;
  }

  async function run({ task, run: id, dueAt, time }: Extract<TaskOrder, { kind: 'run-task' }>): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    runs.set(id, { facts: { task, ...dueIn(dueAt) }, controller, timer: undefined });
    hold({ run: id, time });
    if (draining.signal.aborted) controller.abort();
    let failure: ErrorFacts | undefined;
    try {
      signal.throwIfAborted();
      const due = dueAt === undefined ? {} : { dueAt: new Date(dueAt) };
      const found = tasks?.get(task);
      if (found === undefined) throw new Error('this worker has no such task');
      await found.run({ signal, log: createTaskLog(log, task), ...due });
    } catch (error) {
      failure = describeError(error);
    }
    // The worker must not end before the supervisor has heard of the end: it would count as an interruption.
    send({ kind: 'task-ended', run: id, aborted: signal.aborted, failure }, () => runs.delete(id));
  }

  return {
    receive(order: TaskOrder): void {
      if (order.kind === 'start') starting ??= runStart();
      else if (order.kind === 'run-task') void run(order);
      else hold(order);
    },
    drain(): void {
      draining.abort();
      for (const { controller } of runs.values()) controller.abort();
    },
    /** The number of runs whose end is not reported yet. */
    pending: () => runs.size,
    /** Runs the function that `start` has returned. Never rejects. */
    async finish(): Promise<void> {
      const stop = async (): Promise<unknown> => {
        const returned = await starting;
        return typeof returned === 'function' ? returned() : undefined;
      };
      const timeout = () => new Error(`it took longer than ${STOP_LIMIT} ms`);
      await withTimeLimit(stop(), STOP_LIMIT, timeout).catch((error: unknown) => {
        log.warn('service-not-stopped', describeError(error));
      });
    },
  };
}

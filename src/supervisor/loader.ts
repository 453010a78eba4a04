// Runs one load of a generation at a time, and can give it up: for a shutdown, or for a newer state of the folder when the
// load seems to be stuck. What a load is, is generation.ts; when one is wanted, the supervisor says.

import type { Snapshot } from './folder/snapshot.ts';
import { type GenerationOptions, type GenerationOutcome, list, loadGeneration } from './generation.ts';
import type { PoisonList } from './poison-list.ts';
import type { Pool } from './pool.ts';
import type { WorkerState } from './worker-handle.ts';

export interface Loader {
  /** @param files names in the folder; default: all that are controllers */
  load(number: number, count: number, files?: () => readonly string[]): Promise<GenerationOutcome>;
  /** One worker loads the folder, with what has ended or hung its process earlier, and goes. */
  probe(number: number): Promise<GenerationOutcome>;
  isLoading(): boolean;
  /** What is being loaded is out of date. It goes on, unless it seems to be stuck. */
  outdated(): void;
  abort(): void;
}

export interface LoaderOptions {
  readonly dir: string;
  readonly crew: Pick<Pool, 'take' | 'fork' | 'all'>;
  readonly poison: PoisonList;
  readonly look: () => Snapshot | undefined;
}

/** A generation that is out of date is given up for the next when a worker has been as long at one file, or at its start. */
const SLOW: Readonly<Partial<Record<WorkerState, number>>> = { loading: 700, booting: 3000 };

export function createLoader({ dir, crew, poison, look }: LoaderOptions): Loader {
  let running: AbortController | undefined;
  /** Never two in a row: a folder that is slow to load and always changing must be loaded some time. */
  let gaveUpLast = false;
  const add = (file: string, reason: string) => poison.add(file, reason, look());
  const all = () => [...list(dir).values()];

  async function run(options: Omit<GenerationOptions, 'signal'>): Promise<GenerationOutcome> {
    running = new AbortController();
    try {
      return await loadGeneration({ ...options, signal: running.signal });
    } finally {
      running = undefined;
    }
  }

  return {
    async load(number, count, files = all) {
      const outcome = await run({ number, count, files, takeWorker: crew.take, skip: poison.active(), onPoison: add });
      if (outcome.kind !== 'aborted') gaveUpLast = false;
      return outcome;
    },
    async probe(number) {
      const harmless = new Set(poison.active().keys());
      const onPoison = (file: string, reason: string) => {
        harmless.delete(file);
        add(file, reason);
      };
      const outcome = await run({ number, count: 1, files: all, takeWorker: crew.fork, skip: new Map(), onPoison });
      if (outcome.kind !== 'loaded') return outcome;
      for (const worker of outcome.workers) worker.quit();
      for (const file of harmless) poison.remove(file);
      return outcome;
    },
    isLoading: () => running !== undefined,
    outdated() {
      if (gaveUpLast || !crew.all().some(({ state, stepFor }) => stepFor > (SLOW[state] ?? Number.POSITIVE_INFINITY))) return;
      gaveUpLast = true;
      running?.abort();
    },
    abort: () => running?.abort(),
  };
}

// Trials: what has not loaded may load by now, because a database is there that was away, or what it imports is mended. One
// worker tries the whole folder, as a generation would, and goes; the others serve on. It knows when one is due; what comes of it, the
// supervisor decides.
import type { Groups } from './comparison.ts';
import type { Snapshot } from './folder/snapshot.ts';
import type { GenerationOutcome } from './generation.ts';
import type { Loader } from './loader.ts';
import type { PoisonList } from './poison-list.ts';
import { createRetryPauses } from './retry-pauses.ts';

export interface Trials {
  /** Milliseconds until one is due; infinite when everything loads. Files that were not the last ones start anew. */
  remaining(serving: Groups): number;
  run(generation: number, serving: Groups): Promise<GenerationOutcome>;
  /** A group loaded in the trial, and did not in the generation that was made for it. */
  futile(): void;
  isRunning(): boolean;
  /** Something else is wanted, and does not wait. */
  interrupt(): void;
}

export interface TrialsOptions {
  readonly loader: Pick<Loader, 'probe' | 'abort'>;
  readonly poison: Pick<PoisonList, 'active' | 'remove' | 'suspect'>;
  readonly look: () => Snapshot | undefined;
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

export function createTrials({ loader, poison, look, now = () => performance.now() }: TrialsOptions): Trials {
  const pauses = createRetryPauses();
  let known = '';
  let due = 0;
  let running = false;

  return {
    remaining(serving) {
      const files = Array.from(serving.values()).flatMap(({ ok, file }) => (ok ? [] : [file]));
      const text = files.sort().join('\n');
      if (text !== known) {
        known = text;
        pauses.reset();
        due = now() + pauses.next(0);
      }
      if (isPoisonMended()) return 0;
      return files.length === 0 ? Number.POSITIVE_INFINITY : Math.max(0, due - now());
    },
    async run(generation, serving) {
      const begun = now();
      running = true;
      try {
        const outcome = await loader.probe(generation);
        if (outcome.kind !== 'aborted') due = now() + pauses.next(now() - begun);
        return outcome;
      } finally {
        running = false;
        // Whatever this worker met: what serves is tried in each generation and in each replacement.
        for (const { file, ok } of serving.values()) if (ok) poison.remove(file);
      }
    },
    futile() {
      pauses.rarer();
      due = now() + pauses.next(0);
    },
    isRunning: () => running,
    interrupt() {
      if (running) loader.abort();
    },
  };

  /** A file that ended its process stands as it was, but something else has changed: what it imports may be mended. */
  function isPoisonMended(): boolean {
    const seen = poison.active().size === 0 ? undefined : look();
    return seen !== undefined && poison.suspect(seen) !== undefined;
  }
}

// Controller files that ended or hung the process that imported them: the next attempt leaves them out, so that one
// such file never takes the service down. An entry lasts as long as the file stays as it was; nothing else is known of
// it.
import { join } from 'node:path';
import { fingerprint } from '../base/fingerprint.ts';
import { firstDifference, type Snapshot } from './folder/snapshot.ts';

interface Poison {
  readonly fingerprint: string;
  readonly reason: string;
  /** The folder when the file last did harm: when anything in it has changed since, the harm may be mended. */
  seen: Snapshot | undefined;
}

export interface PoisonList {
  add(file: string, reason: string, seen: Snapshot | undefined): void;
  remove(file: string): void;
  /** File name → reason, of the files that are still as they were. */
  active(): Map<string, string>;
  /** A file that deserves another trial although it has not changed itself. */
  suspect(now: Snapshot): string | undefined;
}

export function createPoisonList(dir: string): PoisonList {
  const poisons = new Map<string, Poison>();
  return {
    add: (file, reason, seen) => {
      poisons.set(file, { reason, seen, fingerprint: fingerprint(join(dir, file)) });
    },
    remove: (file) => {
      poisons.delete(file);
    },
    active() {
      for (const [file, poison] of poisons)
        if (fingerprint(join(dir, file)) !== poison.fingerprint) poisons.delete(file);
      return new Map(Array.from(poisons, ([file, poison]) => [file, poison.reason]));
    },
    suspect(now) {
      for (const [file, { seen }] of poisons)
        if (seen !== undefined && firstDifference(seen, now, true) !== undefined) return file;
      return undefined;
    },
  };
}

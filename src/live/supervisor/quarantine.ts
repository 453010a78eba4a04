// The quarantine has the controller files that ended or hung the process which imported them. The next load skips these
// files, so that one such file cannot take the service down. A file leaves the quarantine when it changes, or when the
// supervisor releases it.
import { join } from 'node:path';
import { fingerprint } from '../../base/fingerprint.ts';
import { firstDifference, type Snapshot } from '../folder/snapshot.ts';

interface Entry {
  readonly fingerprint: string;
  readonly reason: string;
  readonly snapshot: Snapshot | undefined;
}

export interface Quarantine {
  /** @param snapshot the folder as it was before the file was imported */
  add(file: string, reason: string, snapshot: Snapshot | undefined): void;
  release(file: string): void;
  /** Releases the files that have changed. @returns the files that remain: file name → reason */
  releaseChanged(): Map<string, string>;
  /** Whether a file is worth another try, because something in the folder has changed since the file was added. */
  hasRetryable(snapshot: Snapshot): boolean;
}

export function createQuarantine(dir: string): Quarantine {
  const entries = new Map<string, Entry>();
  return {
    add: (file, reason, snapshot) => {
      entries.set(file, { reason, snapshot, fingerprint: fingerprint(join(dir, file)) });
    },
    release: (file) => {
      entries.delete(file);
    },
    releaseChanged() {
      for (const [file, entry] of entries) if (fingerprint(join(dir, file)) !== entry.fingerprint) entries.delete(file);
      return new Map(Array.from(entries, ([file, { reason }]) => [file, reason]));
    },
    hasRetryable: (current) =>
      Array.from(entries.values()).some(
        ({ snapshot }) => snapshot !== undefined && firstDifference(snapshot, current, true) !== undefined,
      ),
  };
}

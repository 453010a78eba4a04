// Whether workers may take the place of others that died or are faulty: only as equals of those that serve, on the same code
// and with the same groups. It holds what was loaded against what serves, and says when to try again; it starts nothing.

import type { Log } from '../base/log.ts';
import type { GroupLoad, LoadedFile } from '../worker/messages.ts';
import type { Backoff } from './backoff.ts';
import { isThereNow, lossesOf, unseenOf } from './comparison.ts';
import { createRetryPauses } from './retry-pauses.ts';
import type { Serving } from './status.ts';

export interface Admission {
  /** Milliseconds until a replacement may be tried; infinite while a generation is refused, whose retry comes first. */
  remaining(): number;
  /** No replacement before a generation serves. */
  close(): void;
  /** A generation serves. */
  open(): void;
  /** `other code`: they read what those that serve did not, and nothing of it is broken, so it is due. */
  judge(serving: Serving, loaded: Replacement): 'equal' | 'unequal' | 'other code';
}

export interface Replacement {
  readonly groups: readonly GroupLoad[];
  readonly files: readonly LoadedFile[];
  /** Milliseconds that they took to load. */
  readonly took: number;
}

export interface AdmissionOptions {
  readonly dir: string;
  readonly log: Log;
  readonly backoff: Backoff;
  /** Whether these files are those that serve. */
  readonly agrees: (files: readonly LoadedFile[]) => boolean;
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

export function createAdmission({ dir, log, backoff, agrees, now = () => performance.now() }: AdmissionOptions): Admission {
  const pauses = createRetryPauses();
  let isClosed = false;
  let due = 0;
  /** It has been logged why nobody is let in. */
  let isTold = false;

  return {
    remaining: () => (isClosed ? Number.POSITIVE_INFINITY : Math.max(backoff.remaining(), due - now())),
    close() {
      isClosed = true;
    },
    open: reset,
    judge(serving, { groups, files, took }) {
      const lost = lossesOf(serving.groups, groups);
      const isSameCode = agrees(files);
      if (lost.length > 0 || !isSameCode) {
        tell(serving, lost);
        // It may be a database that is down, and no change of the folder will say that it is back.
        due = now() + pauses.next(took);
        return lost.length === 0 ? 'other code' : 'unequal';
      }
      const gone = unseenOf(serving.groups, groups);
      if (gone.length === 0) {
        reset();
        return 'equal';
      }
      // A group came in the meantime, a new generation is due, or the folder is away: it is tried again, with growing pauses.
      backoff.failed();
      if (!isThereNow(gone, dir)) tell(serving, gone);
      return 'unequal';
    },
  };

  function reset(): void {
    isClosed = isTold = false;
    due = 0;
    pauses.reset();
  }

  function tell({ number }: Serving, groups: readonly GroupLoad[]): void {
    if (isTold) return;
    isTold = true;
    log.warn('replacement-kept-out', { generation: number, groups, effect: 'fewer workers serve until the folder loads again' });
  }
}

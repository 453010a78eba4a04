// Recognises failures of a load that are not a mistake in the file:
// - The file is still being written, or the process has run out of descriptors or memory. The next load can succeed.
// - The import takes too long (HungLoad). Such a file is not imported again until it changes.
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint } from '../../base/fingerprint.ts';
import { isInspected } from '../../base/inspector.ts';
import { LoadClock } from '../../base/load-clock.ts';
import { LoadRefusal } from '../../base/load-refusal.ts';
import { SourceChanged } from './source-texts.ts';

/** Milliseconds within which a file that is still being written is expected to change again. */
const WRITE_PAUSE_MS = 200;

/** @param earlierFingerprint the fingerprint of the file from before its load */
export async function isBeingWritten(path: string, earlierFingerprint: string): Promise<boolean> {
  await sleep(WRITE_PAUSE_MS);
  return fingerprint(path) !== earlierFingerprint;
}

/** Whether the next request may load the file again, although it has not changed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof SourceChanged) return true;
  const code = (error as { code?: unknown } | null)?.code;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM' || code === 'EAGAIN';
}

export class HungLoad extends LoadRefusal {
  constructor(limitMs: number, reason: string) {
    super('LOAD_TIMEOUT', `it did not finish loading within ${limitMs} ms of CPU (LOAD_TIMEOUT): ${reason}`);
  }
}

/** @throws HungLoad. The import continues then */
export async function withinLoadTimeout<T>(work: Promise<T>, limit: number): Promise<T> {
  let clock = new LoadClock(limit);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      if (isInspected()) clock = new LoadClock(limit);
      const reason = clock.check(': does a top-level await never end?');
      if (reason !== undefined) reject(new HungLoad(limit, reason));
    }, limit / 10);
  });
  return Promise.race([work, late]).finally(() => clearInterval(timer));
}

// Failures of a load that may pass: a file that is still being written, an import that takes too long, a process out of
// descriptors.
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint } from '../base/fingerprint.ts';
import { SourceChanged } from './source-texts.ts';

/** A file that fails is given this long to stop changing: it may be half copied. */
const UNSETTLED_MS = 200;

/** Whether a file that did not load is still being written. */
export async function isUnsettled(path: string, before: string): Promise<boolean> {
  await sleep(UNSETTLED_MS);
  return fingerprint(path) !== before;
}

/** Nothing is remembered against the file. */
export function isTransient(error: unknown): boolean {
  if (error instanceof SourceChanged) return true;
  const code = (error as { code?: unknown } | null)?.code;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM' || code === 'EAGAIN';
}

export class HungLoad extends Error {
  constructor(limit: number) {
    super(`it did not finish loading within ${limit} ms: does a top-level await never settle?`);
  }
}

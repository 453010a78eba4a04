// Failures of a load whose cause may be gone at the next load:
// - The file is still being written.
// - The import of the file takes too long.
// - The process has run out of descriptors or memory.
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint } from '../base/fingerprint.ts';
import { SourceChanged } from './source-texts.ts';

/** Milliseconds after which a file that is being copied has changed again. */
const WRITE_PAUSE = 200;

/**
 * Says whether a file that did not load is still being written: it has changed since its load began.
 *
 * @param before the fingerprint of the file from before its load
 */
export async function isBeingWritten(path: string, before: string): Promise<boolean> {
  await sleep(WRITE_PAUSE);
  return fingerprint(path) !== before;
}

/** Says whether a load failed for a reason that is not in the file. The next request then tries the file again. */
export function isTransient(error: unknown): boolean {
  if (error instanceof SourceChanged) return true;
  const code = (error as { code?: unknown } | null)?.code;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM' || code === 'EAGAIN';
}

export class HungLoad extends Error {
  constructor(limit: number) {
    super(`it did not finish loading within ${limit} ms: does a top-level await never end?`);
  }
}

// Failures of a load that may pass: a file that is still being written, an import that takes too long, a process out of descriptors.
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

export class HungLoad extends Error {}

/** @throws HungLoad after so many milliseconds; the import itself cannot be ended */
export async function withTimeLimit<T>(work: Promise<T>, limit: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new HungLoad(`it did not finish loading within ${limit} ms: does a top-level await never settle?`)),
      limit,
    );
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

// Describes failed system calls in messages for people: `permission denied` for EACCES. The caller adds the path.
import { isNativeError } from 'node:util/types';

/** Matches the beginning of a stack's first place. With `\s+`, line breaks of a message would take quadratic time. */
export const FIRST_PLACE = /\n +at /;

const SENTENCES: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of the path is not a folder',
  EEXIST: 'something else has this name',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic links go round in a circle',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EADDRINUSE: 'it is in use by another process',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  EFBIG: 'the file would be larger than is allowed',
  EMFILE: 'too many files are open',
  // ESTALE of Linux, for which Node has no name.
  'Unknown system error -116': 'its network disk was replaced: mount it again',
};

/** An error of Node is of another realm than the code of a test in Jest, so `instanceof` alone does not find it. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isNativeError(value);
}

export function errorCode(error: unknown): string | undefined {
  const code = isError(error) ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : undefined;
}

export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** Returns the result of `work`, or `fallback` when `work` throws. */
export function attempt<T, F>(work: () => T, fallback: F): T | F {
  try {
    return work();
  } catch {
    return fallback;
  }
}

/** Returns the result of `read`, or `fallback` when there is no such file. @throws any other error of `read` */
export function unlessMissing<T, F>(read: () => T, fallback: F): T | F {
  try {
    return read();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return fallback;
    throw error;
  }
}

/** Returns the result of `work`. @throws Error of one line: what cannot be done, such as `Cannot write /x`, and why */
export function explainFailure<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(`${what}: ${describeFailure(error)}`);
  }
}

/**
 * Returns one line: the sentence for the code, else the code, else the first line of the message. Node's own message
 * would also name the path and the system call: `EACCES: permission denied, open '/data/session.key'`.
 */
export function describeFailure(error: unknown): string {
  const code = errorCode(error);
  const sentence = code === undefined ? undefined : SENTENCES[code];
  // Node's message names the missing flag: `Use --allow-fs-write`.
  const known = sentence ?? (code === 'ERR_ACCESS_DENIED' ? undefined : code);
  return known ?? (isError(error) ? (error.message.split('\n', 1)[0] as string) : 'an unknown failure');
}

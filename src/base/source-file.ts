// Reads source files: regular files of a bounded size. A pipe, a device or a huge file could block the process for
// ever.
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { attempt } from './failure.ts';

/** Bytes of the largest source file. Reading its types takes up to 4 s, and a worker that blocks for 10 s is killed. */
const MAX_BYTES = 4 * 1024 * 1024;
const SOURCE_NAME = /\.[cm]?[jt]s$/;

/**
 * Refuses a file that must not be read as source. A missing file is not refused, because its import fails with a better
 * message. Files of packages, and files that are no JavaScript or TypeScript, may have any size.
 *
 * @throws Error that names the file and what to do
 */
export function checkSource(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) checkStat(path, stat);
}

/** @throws Error of the system, or an Error that names the file and what to do */
export function readSource(path: string): string {
  // The check comes before the opening, because opening a device may have an effect.
  checkSource(path);
  // With O_NONBLOCK, opening does not wait for a writer if a pipe has replaced the file since the check.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    checkStat(path, fstatSync(descriptor));
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** Returns an empty text when the file cannot be read. For a text that is only shown to people. */
export function readSourceOrEmpty(path: string): string {
  return attempt(() => readSource(path), '');
}

function checkStat(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new Error(`${path} is ${kindOf(stat)} and is not read: put a file in its place`);
  if (stat.size <= MAX_BYTES || !SOURCE_NAME.test(path) || /[\\/]node_modules[\\/]/.test(path)) return;
  const [size, limit] = [stat.size, MAX_BYTES].map((bytes) => bytes.toLocaleString('en'));
  throw new Error(
    `${path} has ${size} bytes and is not read: a source file may have ${limit}; split it, or make a package of it`,
  );
}

/** Returns the kind of a file that is not a regular file, for a message: `a socket`. */
export function kindOf(entry: Pick<Stats, 'isFIFO' | 'isSocket' | 'isDirectory' | 'isSymbolicLink'>): string {
  if (entry.isFIFO()) return 'a named pipe';
  if (entry.isSocket()) return 'a socket';
  if (entry.isDirectory()) return 'a folder';
  return entry.isSymbolicLink() ? 'a link that leads to no file' : 'a device';
}

// Which files are read as source: regular files of a bounded size. A name in a folder may lead to a pipe, a device or a
// file without measure, and a process that reads one of those does nothing else any more.
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';

/**
 * Reading the types of one MiB takes up to a second on a busy machine. A worker counts as stuck after ten
 * (worker-limits.ts).
 */
const MOST_BYTES = 4 * 1024 * 1024;
const SOURCE = /\.[cm]?[jt]s$/;

/**
 * Passes a file that is not there: the import has a better message for that. Packages and data may be of any size.
 *
 * @throws Error that names the file and what to do
 */
export function checkSource(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) checkStat(path, stat);
}

/** @throws Error of the system, or one that names the file and what to do */
export function readSource(path: string): string {
  // A device may act when it is opened.
  checkSource(path);
  // A pipe that has taken its place meanwhile is opened without waiting for a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    checkStat(path, fstatSync(file));
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/** Is `readSource` for what is only shown: empty where the file cannot be read. */
export function readSourceOrEmpty(path: string): string {
  try {
    return readSource(path);
  } catch {
    return '';
  }
}

function checkStat(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new Error(`${path} is ${kindOf(stat)} and is not read: put a file in its place`);
  if (stat.size <= MOST_BYTES || !SOURCE.test(path) || /[\\/]node_modules[\\/]/.test(path)) return;
  const [has, most] = [stat.size, MOST_BYTES].map((bytes) => bytes.toLocaleString('en'));
  throw new Error(
    `${path} has ${has} bytes and is not read: a source file may have ${most}; split it, or make a package of it`,
  );
}

/** Names the kind of an entry that is no file. */
export function kindOf(entry: Pick<Stats, 'isFIFO' | 'isSocket' | 'isDirectory' | 'isSymbolicLink'>): string {
  if (entry.isFIFO()) return 'a named pipe';
  if (entry.isSocket()) return 'a socket';
  if (entry.isDirectory()) return 'a folder';
  return entry.isSymbolicLink() ? 'a link that leads to no file' : 'a device';
}

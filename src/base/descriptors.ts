// How many connections this process can have: each is a file descriptor, and out of them the system cuts new
// connections without looking who has idled longest. Some are kept for files, pipes and what controllers open.
import { readFileSync } from 'node:fs';

/** Kept for everything but connections: at least so many, and of a high limit one of so many. */
const FEWEST_KEPT = 32;
const KEPT_OF = 8;
/** A port of the supervisor has one of so many of the connections that a port of a worker would have. */
const SIDE_SHARE = 4;

/** @param limit descriptors of the process; undefined where nobody tells */
export function mostConnections(wanted: number, limit: number | undefined = descriptorLimit()): number {
  if (limit === undefined) return wanted;
  return Math.max(1, Math.min(wanted, limit - Math.max(FEWEST_KEPT, Math.ceil(limit / KEPT_OF))));
}

/**
 * For a port of the supervisor, which also needs descriptors for its workers, the folder's watches and files.
 *
 * @param limit as above
 */
export function mostSideConnections(wanted: number, limit: number | undefined = descriptorLimit()): number {
  return Math.max(1, Math.floor(mostConnections(wanted * SIDE_SHARE, limit) / SIDE_SHARE));
}

/**
 * Node has raised it to what it may be, `ulimit -Hn`. Undefined on systems without /proc, and where there is no limit.
 */
function descriptorLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    const [, soft] = /^Max open files +(\d+) /m.exec(limits) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

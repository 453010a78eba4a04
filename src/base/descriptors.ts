// Computes how many connections the limit of file descriptors allows. When none is left, the kernel drops new
// connections, and the service cannot end the one that has idled longest instead.
import { readFileSync } from 'node:fs';

/** The fewest descriptors that stay free for files, pipes and what controllers open. */
const FEWEST_RESERVED = 32;
/** The share of a high limit that stays free for them: an eighth. */
const RESERVED_SHARE = 8;
/** The share of a worker's connections that a port of the supervisor may have: a quarter. */
const SIDE_SHARE = 4;

/**
 * Returns how many of the wanted connections a port of a worker may have.
 *
 * @param limit descriptors of the process; undefined: unlimited or unknown
 */
export function maxConnections(wanted: number, limit: number | undefined = descriptorLimit()): number {
  if (limit === undefined) return wanted;
  return Math.max(1, Math.min(wanted, limit - Math.max(FEWEST_RESERVED, Math.ceil(limit / RESERVED_SHARE))));
}

/**
 * Returns the same for a port of the supervisor, which also needs descriptors for its workers, watches and files.
 *
 * @param limit descriptors of the process; undefined: unlimited or unknown
 */
export function maxSideConnections(wanted: number, limit: number | undefined = descriptorLimit()): number {
  return Math.max(1, Math.floor(maxConnections(wanted * SIDE_SHARE, limit) / SIDE_SHARE));
}

/**
 * Returns the soft limit of open files, which Node raises to the hard limit (`ulimit -Hn`) when it starts. Undefined:
 * it is unlimited, or the system has no /proc.
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

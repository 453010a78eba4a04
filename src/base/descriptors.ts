// Computes how many connections the limits of the heap and of descriptors allow. At the limit of descriptors, the
// kernel drops new connections before the service could end the one that has idled longest.
import { readFileSync, statSync } from 'node:fs';
import { attempt } from './failure.ts';
import { readHeap } from './heap.ts';

/** Maximum number of connections when MAX_CONNECTIONS is not set. */
const MAX_DEFAULT_CONNECTIONS = 10_000;
/** Bytes of the heap for one connection when MAX_CONNECTIONS is not set. The longest head of a request takes 70 KB. */
const CONNECTION_COST = 96 * 1024;
/** Bytes of the heap that no connection uses then. The service and its controllers need them. */
const OTHER_COST = 32 * 1024 * 1024;
/** Minimum number of connections then, however small the heap is. */
const MIN_DEFAULT_CONNECTIONS = 100;

/** Minimum number of descriptors that no connection uses. Files, pipes and controllers need them. */
const MIN_FREE = 32;
/** When an eighth of the limit is more than `MIN_FREE`, no connection uses this eighth. */
const FREE_DIVISOR = 8;
/** A port of the supervisor may have a fourth of the connections that a port of a worker may have. */
const SUPERVISOR_DIVISOR = 4;

/**
 * Returns how many of the wanted connections a port of a worker may have: at least 1.
 *
 * @param wanted the default follows the limit of the heap
 * @param limit the maximum number of file descriptors of the process; undefined when it is unlimited or unknown
 */
export function maxConnections(wanted = defaultConnections(), limit = descriptorLimit()): number {
  if (limit === undefined) return wanted;
  return Math.max(1, Math.min(wanted, limit - Math.max(MIN_FREE, Math.ceil(limit / FREE_DIVISOR))));
}

export function defaultConnections(heap = readHeap().limit): number {
  const most = Math.floor((heap - OTHER_COST) / CONNECTION_COST);
  return Math.min(MAX_DEFAULT_CONNECTIONS, Math.max(MIN_DEFAULT_CONNECTIONS, most));
}

/** Returns at least 1. The supervisor also needs descriptors for its workers, watches and files. */
export function maxSupervisorConnections(wanted: number, limit: number | undefined = descriptorLimit()): number {
  return Math.max(1, Math.floor(maxConnections(wanted * SUPERVISOR_DIVISOR, limit) / SUPERVISOR_DIVISOR));
}

/** Returns the limit of open files, which Node has raised to `ulimit -Hn`; undefined without a limit or /proc. */
export function descriptorLimit(): number | undefined {
  const limits = attempt(() => readFileSync('/proc/self/limits', 'latin1'), '');
  const [, soft] = /^Max open files +(\d+) /m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** Descriptors that no connection takes, so that files can be read although something has leaked all others. */
const LAST_FREE = 16;

/** Returns the highest descriptor that a connection may have. A new descriptor is always the lowest free one. */
export function maxDescriptor(limit: number | undefined = descriptorLimit()): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : Math.max(LAST_FREE, limit - LAST_FREE);
}

/** Returns how many descriptors this process has open. Linux has had the number as the size of a folder since 6.2. */
export function openDescriptors(): number {
  return attempt(() => statSync('/proc/self/fd').size, 0);
}

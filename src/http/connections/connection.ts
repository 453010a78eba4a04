// The state of one connection, stored as a property of its socket. A sweep is one check of all connections, every
// SWEEP_INTERVAL. Times are numbers of sweeps, because counting sweeps costs less than reading a clock.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.ts';

export interface Connection {
  /** The index of the connection's socket in the list of sockets. */
  readonly slot: number;
  /** The exchange of the request that began last. */
  exchange: Exchange | undefined;
  /** The number of pipelined requests that wait until `exchange` has its answer. */
  waitingCount: number;
  /** The response of the last request that had to wait. */
  lastWaitingResponse: ServerResponse | undefined;
  /**
   * The number of the sweep at which the connection was last in use: at its start, at the end of an answer, or when a
   * sweep found unsent bytes.
   */
  idleSince: number;
  /** Counts the starts and the ends of answers of all connections. A lower number means an older last use. */
  activityOrder: number;
  /**
   * The bytes that had been received at the last call of `closeIdleConnections` (connections.ts); -1 before the first
   * call.
   */
  lastReadBytes: number;
  /** The bytes that the kernel had taken at the last sweep that found unsent bytes; -1 before the first such sweep. */
  lastSentBytes: number;
  /**
   * The number of the sweep that first found the value of `lastSentBytes`. The client has read nothing since then.
   */
  stalledSince: number;
}

/**
 * The key of the property that holds the connection. A look-up in a Map for each request would cost more.
 */
const CONNECTION = Symbol('connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

export function attachConnection(socket: TrackedSocket, slot: number, sweep: number, activityOrder: number): void {
  socket[CONNECTION] = {
    slot,
    exchange: undefined,
    waitingCount: 0,
    lastWaitingResponse: undefined,
    idleSince: sweep,
    activityOrder,
    lastReadBytes: -1,
    lastSentBytes: -1,
    stalledSince: sweep,
  };
}

/** Returns undefined for a socket that was refused at once, and for a socket of another server. */
export function findConnection(socket: object): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** Returns the connection of a socket that the server tracks. */
export function connectionOf(socket: object): Connection {
  return (socket as TrackedSocket)[CONNECTION] as Connection;
}

/**
 * Milliseconds between two sweeps. A time limit takes effect up to two sweeps late.
 */
export const SWEEP_INTERVAL = 500;

/** Returns the number of sweeps, at least one, that cover the milliseconds. */
export function sweepsIn(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / SWEEP_INTERVAL));
}

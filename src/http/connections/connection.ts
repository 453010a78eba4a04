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
  /** The number of requests that wait until `exchange` has its answer. */
  waiting: number;
  /** The response of the last request that had to wait. */
  lastWaiting: ServerResponse | undefined;
  /**
   * The number of the sweep at the last answer. Before the first answer, the number of the sweep at the start of the
   * connection.
   */
  idleSince: number;
  /**
   * The rank of the connection's last answer, or of its start, among those of all connections. A lower number is older.
   */
  order: number;
  /**
   * The bytes that had been received when a draining worker last called `closeIdleConnections`; -1 before the first
   * call.
   */
  readBefore: number;
  /** The bytes that the kernel had taken at the last sweep that found unsent bytes; -1 before the first such sweep. */
  sentBefore: number;
  /**
   * The number of the sweep that first found the bytes in `sentBefore`. Since that sweep, the client has read nothing.
   */
  stalledSince: number;
}

/**
 * The key of the property that holds the connection. A Map look-up for each request would cost more than this property.
 */
const CONNECTION = Symbol('connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

export function attachConnection(socket: TrackedSocket, slot: number, sweep: number, order: number): void {
  socket[CONNECTION] = {
    slot,
    exchange: undefined,
    waiting: 0,
    lastWaiting: undefined,
    idleSince: sweep,
    order,
    readBefore: -1,
    sentBefore: -1,
    stalledSince: sweep,
  };
}

/**
 * Returns the connection of any socket. The result is undefined when the socket was refused or belongs to another
 * server.
 */
export function findConnection(socket: object): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** Returns the connection of a socket that the server tracks. */
export function connectionOf(socket: object): Connection {
  return (socket as TrackedSocket)[CONNECTION] as Connection;
}

/**
 * Milliseconds between two sweeps. A time limit may take effect up to one second late, and two sweeps fit into that
 * second.
 */
export const SWEEP_INTERVAL = 500;

export function sweepsIn(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / SWEEP_INTERVAL));
}

// The state of one connection, stored as a property of its socket. A sweep is one check of all connections, every
// SWEEP_INTERVAL. Times are numbers of sweeps, because counting sweeps costs less than reading a clock. An exchange is
// one request with its answer.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.ts';

export class Connection {
  /** The index of the connection's socket in the list of sockets. */
  readonly slot: number;
  /** The exchange of the request that began last. */
  exchange: Exchange | undefined;
  /** The number of pipelined requests that wait until `exchange` has its answer. */
  waitingCount = 0;
  /** The response of the last request that had to wait. */
  lastWaitingResponse: ServerResponse | undefined;
  /** The sweep at which the connection began, last completed an answer, or last had unsent bytes. */
  idleSince: number;
  /** Grows with each new connection and each complete answer. The connection with the lowest number is idle longest. */
  activityOrder: number;
  /** The bytes received until the last call of `closeIdleConnections` (connections.ts); -1 before the first call. */
  lastReadBytes = -1;
  /** The bytes that the kernel had taken at the last sweep that found unsent bytes; -1 before the first such sweep. */
  lastSentBytes = -1;
  /** The sweep that first found the present value of `lastSentBytes`. Since then, the client has read nothing. */
  stalledSince: number;

  constructor(slot: number, sweep: number, activityOrder: number) {
    this.slot = slot;
    this.idleSince = sweep;
    this.activityOrder = activityOrder;
    this.stalledSince = sweep;
  }
}

/** The key of the property that holds the connection. A look-up in a Map for each request would cost more. */
const CONNECTION = Symbol('connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

export function attachConnection(socket: TrackedSocket, connection: Connection): void {
  socket[CONNECTION] = connection;
}

/** Returns undefined for a socket that `maxConnections` refused, and for a socket of another server. */
export function findConnection(socket: object): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** Returns the connection of a socket that the server tracks. */
export function connectionOf(socket: object): Connection {
  return (socket as TrackedSocket)[CONNECTION] as Connection;
}

/** Milliseconds between two sweeps. A time limit takes effect up to two sweeps late. */
export const SWEEP_INTERVAL = 500;

/** Returns the number of sweeps, at least one, that cover the milliseconds. */
export function sweepsIn(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / SWEEP_INTERVAL));
}

// The state of one connection, stored as a property of its socket. A sweep is one check of all connections, every
// SWEEP_INTERVAL. The server numbers its sweeps. A time in this file is the number of a sweep, because to count costs
// less than to read a clock.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.ts';

export class Connection {
  /** The index of the connection's socket in the list of sockets. */
  readonly slot: number;
  /** The exchange of the request that was started last; undefined after the close, and once a sweep finds it done. */
  lastExchange: Exchange | undefined;
  /** Whether a request was started. */
  isUsed = false;
  /** The number of pipelined requests that wait until `lastExchange` has its answer. */
  waitingCount = 0;
  /** The response to the last request that waits; undefined when none does. */
  lastWaitingResponse: ServerResponse | undefined;
  /** The latest of these times: the connection was opened, an answer was complete, a sweep found unsent bytes. */
  idleSince: number;
  /** The server counts openings and complete answers. This is the count after the latest one of this connection. */
  activityOrder: number;
  /** The request whose body was incomplete at the last sweep that found one, or its answer if that is complete. */
  incomplete: object | undefined;
  /** The number of the first sweep that found `incomplete`. */
  incompleteSince = 0;
  /** `socket.bytesRead` at the last call of `closeIdleConnections` (connections.ts); -1 before the first call. */
  lastBytesRead = -1;
  /** The number of calls of `closeIdleConnections` in a row that found the connection idle, without new bytes. */
  quietLooks = 0;
  /** The total of bytes that the kernel had taken at the last sweep that found unsent bytes; -1 before such a sweep. */
  lastBytesSent = -1;
  /** The time since which the client has read nothing: `lastBytesSent` has not changed since that sweep. */
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

/** @returns undefined for a socket that was refused because of `maxConnections`, or that another server accepted */
export function findConnection(socket: object): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

export function connectionOf(socket: object): Connection {
  return (socket as TrackedSocket)[CONNECTION] as Connection;
}

/**
 * Says whether the connection belongs to an earlier request: requests wait for their answers, an answer is not sent to
 * its last byte, or an answer ends the connection.
 */
export function isTaken(socket: object): boolean {
  const { waitingCount = 0, lastExchange }: Partial<Connection> = findConnection(socket) ?? {};
  const { response } = lastExchange ?? {};
  return waitingCount > 0 || (response !== undefined && (response.socket !== null || !response.shouldKeepAlive));
}

/** Milliseconds between two sweeps. A time limit takes effect up to two sweeps late. */
export const SWEEP_INTERVAL = 500;

/** Returns the number of sweeps, at least one, that take at least so many milliseconds. */
export function sweepsIn(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / SWEEP_INTERVAL));
}

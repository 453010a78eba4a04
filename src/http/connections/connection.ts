// The state of one connection, kept as a property of its socket. A sweep is one look at all connections; times are
// numbers of sweeps, which cost less than clocks.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.ts';

export interface Connection {
  /** The index of its socket in the list of sockets. */
  readonly slot: number;
  /** The exchange that began last. */
  exchange: Exchange | undefined;
  /** The number of requests that wait behind that exchange. */
  waiting: number;
  /** The response of the last request that had to wait. */
  lastWaiting: ServerResponse | undefined;
  /** The sweep at the last answer, or at the start of the connection. */
  idleSince: number;
  /** The number of that answer or start, counted over all connections. A lower number is older. */
  order: number;
  /** The bytes that had come when a draining worker last asked for idle connections. */
  readBefore: number;
  /** The bytes that the kernel had taken at the last sweep with an unsent rest; -1 before there was one. */
  sentBefore: number;
  /** The sweep that first saw that number of bytes. */
  stalledSince: number;
}

/** A Map look-up for each request would cost more than this property. */
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

/** The connection of any socket. Undefined: the socket was refused, or belongs to another server. */
export function findConnection(socket: object): Connection | undefined {
  return (socket as TrackedSocket)[CONNECTION];
}

/** The connection of a socket that the server tracks. */
export function connectionOf(socket: object): Connection {
  return (socket as TrackedSocket)[CONNECTION] as Connection;
}

/** Milliseconds between two sweeps. Two of them fit into the second that a limit may be late. */
export const SWEEP_INTERVAL = 500;

export function sweepsIn(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / SWEEP_INTERVAL));
}

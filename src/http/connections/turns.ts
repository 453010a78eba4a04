// The turns of pipelined requests: a connection has one request under way. Later requests wait, unread where possible,
// until the last byte of the answer before theirs is out. So no client fills the memory or a turn of the event loop
// with one write, and no connection ends between a request and its answer (RFC 9112, 9.3.2, for unsafe methods).

import type { ServerResponse } from 'node:http';
import { onTurn } from '../../base/node-internals.ts';
import type { Exchange } from '../exchange.ts';
import { type Connection, connectionOf, type TrackedSocket } from './connection.ts';

/**
 * Requests that may wait in one process. Each takes about 3 KB. One read of 64 KiB may bring 2,500 before reading
 * stops. A connection that brings more than this is cut.
 */
export const MAX_WAITING = 10_000;

export interface Turns {
  /** Keeps a request back until the requests before it on its connection have their answers; then calls `start`. */
  defer(response: ServerResponse, start: () => void): void;
  /** Forgets the waiting requests of a connection that has closed. */
  forget(connection: Connection): void;
}

export function createTurns(): Turns {
  let waiting = 0;
  return {
    defer(response, start) {
      const socket = response.req.socket as TrackedSocket;
      const connection = connectionOf(socket);
      if (socket.destroyed) return;
      if (waiting >= MAX_WAITING) return void socket.destroy();
      if (connection.lastWaiting === undefined) socket.on('resume', pauseWhileWaiting);
      connection.lastWaiting = response;
      connection.waiting++;
      waiting++;
      socket.pause();
      // Node gives a response its socket when the last byte of the answer before it is out. Each turn of the event loop
      // starts one request, so that other clients are served in between.
      onTurn(response, () =>
        setImmediate(() => {
          if (socket.destroyed) return;
          waiting--;
          if (--connection.waiting === 0) socket.resume();
          start();
        }),
      );
    },
    forget(connection) {
      waiting -= connection.waiting;
      connection.waiting = 0;
      connection.lastWaiting = undefined;
    },
  };
}

/** Whether requests wait behind this one. */
export function isFollowed(exchange: Exchange): boolean {
  return connectionOf(exchange.request.socket).waiting > 0;
}

/** Node resumes the socket to read the body of a request, even when later requests have already come. */
function pauseWhileWaiting(this: TrackedSocket): void {
  if (connectionOf(this).waiting > 0) this.pause();
}

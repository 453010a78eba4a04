// Serves the pipelined requests of a connection one after another. Later requests wait until the last byte of the
// answer before theirs is sent. Where possible, the server does not read them until then. There are two reasons:
// - With one write, a client can fill neither the memory nor a turn of the event loop.
// - No connection ends between a request and its answer (RFC 9112, 9.3.2, for unsafe methods).

import type { ServerResponse } from 'node:http';
import { onTurn } from '../../base/node-internals.ts';
import type { Exchange } from '../exchange.ts';
import { type Connection, connectionOf, type TrackedSocket } from './connection.ts';

/**
 * Maximum number of requests that may wait in one process. Each request takes about 3 KB. One read of 64 KiB may bring
 * 2,500 requests before reading stops. A connection that brings one request more than the maximum is cut.
 */
export const MAX_WAITING = 10_000;

export interface Turns {
  /** Holds a request back until the earlier requests on its connection have their answers, and then calls `start`. */
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

/** Says whether later requests wait behind this one on its connection. */
export function isFollowed(exchange: Exchange): boolean {
  return connectionOf(exchange.request.socket).waiting > 0;
}

/**
 * Pauses the socket again while requests wait. Node resumes the socket to read the body of a request, even when later
 * requests have already come.
 */
function pauseWhileWaiting(this: TrackedSocket): void {
  if (connectionOf(this).waiting > 0) this.pause();
}

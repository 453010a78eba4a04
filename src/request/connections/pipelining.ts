// Serves pipelined requests (sent before the earlier answers came) one after another. A request waits until the last
// byte of the previous answer is sent. While requests wait, their socket is paused. The wait prevents two things:
// - A client would fill the memory, or a whole turn of the event loop, by one write of many requests.
// - A request would run whose answer is lost because an earlier answer ends the connection (RFC 9112, 9.3.2).
import type { ServerResponse } from 'node:http';
import { onTurn } from '../../base/node-internals.ts';
import type { Exchange } from '../exchange.ts';
import { connectionOf, type TrackedSocket } from './connection.ts';

/** Maximum number of requests of one connection that wait. A further one ends the connection. */
const MAX_WAITING = 50;

/** Holds a request back until the earlier requests on its connection have their answers, and then calls `start`. */
export function defer(response: ServerResponse, start: () => void): void {
  const socket = response.req.socket as TrackedSocket;
  const connection = connectionOf(socket);
  if (socket.destroyed) return;
  if (connection.waitingCount === MAX_WAITING) return void socket.destroy();
  if (connection.lastWaitingResponse === undefined) socket.on('resume', pauseWhileWaiting);
  connection.lastWaitingResponse = response;
  connection.waitingCount++;
  socket.pause();
  // Node gives a response its socket when the last byte of the previous answer is sent. Each turn of the event loop
  // starts one request of the connection, so that other clients are served in between.
  onTurn(response, () =>
    setImmediate(() => {
      if (socket.destroyed) return;
      if (--connection.waitingCount === 0) {
        connection.lastWaitingResponse = undefined;
        socket.off('resume', pauseWhileWaiting).resume();
      }
      start();
    }),
  );
}

/** Says whether later requests on the connection wait for the answer of this exchange. */
export function hasWaitingRequests(exchange: Exchange): boolean {
  return connectionOf(exchange.socket).waitingCount > 0;
}

/** Pauses the socket again while requests wait: to read the body of an earlier request, Node resumes the socket. */
function pauseWhileWaiting(this: TrackedSocket): void {
  if (connectionOf(this).waitingCount > 0) this.pause();
}

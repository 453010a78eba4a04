// Drains a worker: it stops accepting connections, answers the requests that are under way or still arrive, and closes
// idle connections last. In this order no request is lost. This file does not know why the worker ends.
import type { Server } from 'node:http';
import { stopListening } from '../../base/node-internals.ts';
import type { App } from '../../request/app.ts';

/** `pendingWork` counts the work that operations continue after their answers, and `giveUpWork` logs and leaves it. */
export type Drainable = Pick<App, 'server' | 'setDraining' | 'pendingWork' | 'giveUpWork'>;

export interface DrainOptions {
  /** Milliseconds after which open connections are cut. */
  readonly timeout: number;
  /**
   * Milliseconds to keep accepting connections, or null when other workers accept on the same socket. Without another
   * worker, the end of accepting resets the connections that still wait in the kernel.
   */
  readonly acceptFor: number | null;
  /** Called when no connection and no work is left, or the time is over. */
  readonly onDrained: () => void;
}

/** Milliseconds between two looks at the connections. Those that are idle at 30 looks in a row are closed. */
const SWEEP_INTERVAL = 50;
/** Milliseconds after `timeout` for which draining still waits for open connections, which are cut at `timeout`. */
const CUT_GRACE = 200;
/** Number of turns of the event loop without a new connection, after which no connection is waiting to be accepted. */
const QUIET_TURNS = 3;
/** Maximum milliseconds to wait for `QUIET_TURNS` such turns in a row. */
const QUIET_LIMIT = 400;

export function drain(
  { server, setDraining, pendingWork, giveUpWork }: Drainable,
  { timeout, acceptFor, onDrained }: DrainOptions,
): void {
  const startedAt = performance.now();
  let hasStopped = false;
  // The port is closed first. A client that got `Connection: close` before that would reconnect to this worker.
  const stopAccepting = () => {
    // The close() of http.Server would also cut idle connections, on which a request can be on its way.
    if (server.listening) stopListening(server);
    setDraining();
    hasStopped = true;
  };
  if (acceptFor === null) stopAccepting();
  else setTimeout(() => whenQuiet(server, stopAccepting), Math.min(acceptFor, timeout / 2));
  let isTimeoutOver = false;
  const sweep = setInterval(() => {
    const now = performance.now();
    const wasTimeoutOver = isTimeoutOver;
    isTimeoutOver = now - startedAt >= timeout;
    // A socket in a TLS handshake is not cut by closeAllConnections(). The end of the process closes it.
    const isGraceOver = now - startedAt >= timeout + CUT_GRACE;
    if (isTimeoutOver) server.closeAllConnections();
    // Requests that were cut just now reach the log and the metrics before the next look.
    if (!hasStopped || isTimeoutOver !== wasTimeoutOver) return;
    server.closeIdleConnections();
    server.getConnections((_error, count) => {
      if ((count > 0 && !isGraceOver) || (pendingWork() > 0 && !isTimeoutOver)) return;
      clearInterval(sweep);
      giveUpWork();
      onDrained();
    });
  }, SWEEP_INTERVAL);
}

/**
 * Calls back when no connection waits to be accepted. The kernel completes connections before the process accepts them,
 * and closing the socket resets those that wait. Between the last quiet turn of the event loop and the close, only
 * microseconds are left in which a connection can come and be reset.
 */
function whenQuiet(server: Server, callback: () => void): void {
  let arrivals = 0;
  const count = () => arrivals++;
  server.on('connection', count);
  const startedAt = performance.now();
  let arrivalsBefore = 0;
  let quietTurns = 0;
  const turn = () => {
    quietTurns = arrivals === arrivalsBefore ? quietTurns + 1 : 0;
    arrivalsBefore = arrivals;
    if (quietTurns < QUIET_TURNS && performance.now() - startedAt < QUIET_LIMIT) return void setImmediate(turn);
    server.off('connection', count);
    callback();
  };
  setImmediate(turn);
}

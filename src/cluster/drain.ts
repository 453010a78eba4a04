// How a worker leaves its clients: it stops accepting, answers everything that is under way or still arrives, and closes
// idle connections last. Zero requests are lost by the order of these steps. It knows nothing of why the worker ends.
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';

/** What draining asks of the app. */
export interface Drainable {
  readonly server: Server;
  /** From now on every answer carries `Connection: close`. */
  setDraining(): void;
}

export interface DrainOptions {
  /** Milliseconds; what is still open then is cut. */
  readonly timeout: number;
  /** Open connections that the server does not count as its own. */
  readonly takenOver: () => number;
  /** No connection is left. */
  readonly onDrained: () => void;
}

/**
 * A request may be on its way on a connection that looks idle to us. Whoever uses its connection this often gets one
 * more answer with `Connection: close`, and nothing is lost; only then is a connection taken for abandoned.
 */
const IDLE_GRACE = 1500;
const SWEEP_INTERVAL = 50;

export function drain({ server, setDraining }: Drainable, { timeout, takenOver, onDrained }: DrainOptions): void {
  setDraining();
  // Not http.Server's close, which cuts idle connections at once, and with them the requests that are on the wire.
  if (server.listening) NetServer.prototype.close.call(server);
  const begun = performance.now();
  const sweep = setInterval(() => {
    const elapsed = performance.now() - begun;
    // Every answer since has ended its connection, so what is idle now has been idle all the time.
    if (elapsed >= IDLE_GRACE) server.closeIdleConnections();
    if (elapsed >= timeout) server.closeAllConnections();
    server.getConnections((_error, count) => {
      if (count + takenOver() > 0) return;
      clearInterval(sweep);
      onDrained();
    });
  }, SWEEP_INTERVAL);
}

// How a worker leaves its clients: it stops accepting, answers everything that is under way or still arrives, and
// closes idle connections last. Zero requests are lost by the order of these steps. It knows nothing of why the worker
// ends.
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';

/** What draining asks of the app. */
export interface Drainable {
  readonly server: Server;
  /** From now on every answer carries `Connection: close`. */
  setDraining(): void;
  /** Work that goes on after its answer. */
  pendingWork(): number;
  /** Its time is over. */
  giveUpWork(): void;
}

export interface DrainOptions {
  /** Milliseconds; what is still open then is cut. */
  readonly timeout: number;
  /**
   * Milliseconds to accept on, where nobody else does on the same socket: what has connected by the time that it is
   * closed, and is not accepted, is reset. Null: others accept.
   */
  readonly acceptFor: number | null;
  /** No connection is left, or the time is over. */
  readonly onDrained: () => void;
}

/**
 * A request may be on its way on a connection that looks idle to us. Whoever uses its connection this often gets one
 * more answer with `Connection: close`, and nothing is lost; only then is a connection taken for abandoned.
 */
const IDLE_GRACE = 1500;
const SWEEP_INTERVAL = 50;
/** From then on whatever is still open: what is cut is closed a turn later. */
const CUT_GRACE = 200;
/**
 * Turns of the event loop without a new connection, after which the socket is taken for empty; and how long to wait for
 * them.
 */
const QUIET_TURNS = 3;
const QUIET_LIMIT = 400;

export function drain(
  { server, setDraining, pendingWork, giveUpWork }: Drainable,
  { timeout, acceptFor, onDrained }: DrainOptions,
): void {
  const begun = performance.now();
  let left: number | undefined;
  // First the port, then the word to the clients: told before, each of them would come back at once with a new
  // connection.
  const leave = () => {
    stopAccepting(server);
    setDraining();
    left = performance.now();
  };
  if (acceptFor === null) leave();
  else setTimeout(() => whenQuiet(server, leave), Math.min(acceptFor, timeout / 2));
  const sweep = setInterval(() => {
    const now = performance.now();
    const isLate = now - begun >= timeout;
    // Such as a handshake of TLS, which no server knows as a connection: it ends with the process.
    const isOver = now - begun >= timeout + CUT_GRACE;
    if (isLate) server.closeAllConnections();
    if (left === undefined) return;
    // Every answer since has ended its connection, so what is idle now has been idle all the time.
    if (now - left >= IDLE_GRACE) server.closeIdleConnections();
    server.getConnections((_error, count) => {
      if ((count > 0 && !isOver) || (pendingWork() > 0 && !isLate)) return;
      clearInterval(sweep);
      giveUpWork();
      onDrained();
    });
  }, SWEEP_INTERVAL);
}

/** Not http.Server's close, which cuts idle connections at once, and with them the requests that are on the wire. */
function stopAccepting(server: Server): void {
  if (server.listening) NetServer.prototype.close.call(server);
}

/**
 * The kernel completes connections before anybody accepts them, and a socket that is closed resets those. The moment to
 * close it is right after a look that found none; between the two lie microseconds.
 */
function whenQuiet(server: Server, then: () => void): void {
  let arrivals = 0;
  const count = () => arrivals++;
  server.on('connection', count);
  const begun = performance.now();
  let before = 0;
  let quiet = 0;
  const turn = () => {
    quiet = arrivals === before ? quiet + 1 : 0;
    before = arrivals;
    if (quiet < QUIET_TURNS && performance.now() - begun < QUIET_LIMIT) return void setImmediate(turn);
    server.off('connection', count);
    then();
  };
  setImmediate(turn);
}

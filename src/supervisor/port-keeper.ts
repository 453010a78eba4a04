// The port when no worker holds it any more. node:cluster closes the shared socket with the last worker that had it; then
// this process listens itself, and shares its own socket with every worker from there on. Whoever connects while there is
// no worker waits, unread, instead of being refused. It knows nothing of why the workers are gone.
import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import { describeListenError } from './port.ts';
import type { WorkerProcess } from './worker-handle.ts';

export interface PortKeeper {
  /** The last worker that held the port is gone. */
  keep(): void;
  /** Puts loaded workers to work: they accept on the socket that all share. Resolves to one line when none of them can. */
  open(workers: readonly WorkerProcess[]): Promise<string | undefined>;
  /** The worker has the connection that was sent to it last, or died with it. */
  took(worker: WorkerProcess): void;
  close(): void;
}

export interface PortKeeperOptions {
  readonly port: number;
  readonly host: string | undefined;
  readonly log: Log;
  /** The workers that connections can be handed to. */
  readonly serving: () => readonly WorkerProcess[];
}

const MOST_WAITING = 10_000;

export function createPortKeeper({ port, host, log, serving }: PortKeeperOptions): PortKeeper {
  let server: Server | undefined;
  const waiting: Socket[] = [];
  /**
   * The connection that each worker is being given: one at a time, so that what waits is not lost with a worker that dies. It stays
   * open here until the worker says that it has it: Node never closes, nor tells of, a handle whose receiver died on the way.
   */
  const inFlight = new Map<WorkerProcess, Socket>();

  return {
    keep() {
      if (server !== undefined) return;
      // Paused: not a byte is read here, the worker gets the request from its first one on.
      server = createServer({ pauseOnConnect: true }, accept);
      server.on('error', (error) => {
        // A worker that was just being put to work may have been quicker, and that is as good.
        log.debug('port-not-kept', { port, error: error.message });
        close();
      });
      server.listen({ port, host });
    },
    async open(workers) {
      const error = await listen(workers);
      // The last worker that served may have gone just then, and this process have taken the port.
      return server === undefined || error === undefined ? error : listen(workers);
    },
    took(worker) {
      const socket = inFlight.get(worker);
      if (socket === undefined) return;
      inFlight.delete(worker);
      socket.destroy();
      handOver();
    },
    close,
  };

  /** Giving the port back to node:cluster would take milliseconds in which a connection is refused. It is never given back. */
  async function listen(workers: readonly WorkerProcess[]): Promise<string | undefined> {
    const outcomes = await Promise.all(workers.map((worker) => worker.listen(port, host, server)));
    handOver();
    const failures = outcomes.filter((outcome) => outcome !== 'listening');
    const [first] = failures;
    return first === undefined || failures.length < workers.length ? undefined : describeListenError(port, host, first.code);
  }

  /** What this process accepts because it was quicker than the workers; everything, while there are none. */
  function accept(socket: Socket): void {
    socket.on('error', () => {});
    if (waiting.length >= MOST_WAITING) return void socket.destroy();
    waiting.push(socket);
    handOver();
  }

  function handOver(): void {
    for (const worker of serving()) {
      if (inFlight.has(worker)) continue;
      const socket = nextWaiting();
      if (socket === undefined) return;
      inFlight.set(worker, socket);
      worker.send({ kind: 'connection' }, socket);
    }
  }

  /** Whoever hung up in the meantime needs no worker. */
  function nextWaiting(): Socket | undefined {
    for (;;) {
      const socket = waiting.shift();
      if (socket === undefined || !socket.destroyed) return socket;
    }
  }

  function close(): void {
    server?.close();
    server = undefined;
    for (const socket of waiting.splice(0)) socket.destroy();
  }
}

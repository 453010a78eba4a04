// The connections of one server: which request each is busy with, and the sweep that ends those that idle too long or
// whose client does not read. One sweep a second for all of them: Node's own keep-alive timer is set and cleared on every
// request, which costs 4 percent of it (bench/NOTES.md).
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './exchange.ts';

interface Connection {
  /** Where in the list of sockets it is. */
  readonly slot: number;
  /** The exchange last begun. */
  exchange: Exchange | undefined;
  /** Requests begun and not answered: pipelined ones are under way together. */
  open: number;
  /** The sweep's count when the last answer was given, or when the connection came. */
  idleSince: number;
  /** Its client reads slowly: Node's own timer, which knows of progress within one write, watches it. */
  slow: boolean;
}

export interface ConnectionLimits {
  /** Milliseconds a connection may be idle between two requests. */
  readonly keepAliveTimeout: number;
  /** Milliseconds a client may leave an answer lying without reading on. */
  readonly readTimeout: number;
  /** Of the server: it brings what a request has for its `socket`, which with TLS is not what was accepted. */
  readonly event?: string;
}

export interface Connections {
  begin(exchange: Exchange): void;
  end(exchange: Exchange): void;
  /** The exchange last begun on a connection, undefined when it has been answered to the last byte. */
  exchangeOn(socket: object): Exchange | undefined;
}

/** Milliseconds between two sweeps: what the decided second allows. */
const SWEEP = 500;

/** A property of ours on Node's socket: a Map look-up a request costs more. */
const CONNECTION = Symbol('connection');
type Tracked = Socket & { [CONNECTION]?: Connection };

export function trackConnections(server: Server, { keepAliveTimeout, readTimeout, event = 'connection' }: ConnectionLimits): Connections {
  // Slots that are used again, and not a Set: one that is added to and deleted from without end leaves its outgrown tables in
  // the old generation, and each keeps the connections that were in it alive until the next full collection.
  const sockets: (Tracked | undefined)[] = [];
  const freeSlots: number[] = [];
  const idleSweeps = Math.max(1, Math.ceil(keepAliveTimeout / SWEEP));
  let sweeps = 0;
  let timer: NodeJS.Timeout | undefined;

  server.on(event, (socket: Tracked) => {
    const slot = freeSlots.pop() ?? sockets.length;
    sockets[slot] = socket;
    socket[CONNECTION] = { slot, exchange: undefined, open: 0, idleSince: sweeps, slow: false };
    socket.on('close', forget);
    timer ??= setInterval(sweep, SWEEP).unref();
  });

  function forget(this: Tracked): void {
    const connection = this[CONNECTION] as Connection;
    const { slot, exchange } = connection;
    // What a closed connection holds, the engine goes on copying from one collection to the next, on Node 24 and later at times
    // all of it: up to 10 µs of a connection's cost (bench/NOTES.md).
    connection.exchange = undefined;
    sockets[slot] = undefined;
    freeSlots.push(slot);
    if (freeSlots.length === sockets.length) {
      clearInterval(timer);
      timer = undefined;
    }
    // Only the last request can still be arriving; nobody is left to take its answer.
    if (exchange?.onLost === undefined) return;
    exchange.response.destroy();
    exchange.onLost();
  }

  function sweep(): void {
    sweeps++;
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = socket[CONNECTION] as Connection;
      const slow = socket.writableLength > 0;
      if (slow !== connection.slow) socket.setTimeout(slow ? readTimeout : 0);
      connection.slow = slow;
      if (slow) connection.idleSince = sweeps;
      else if (connection.open === 0 && connection.exchange !== undefined && sweeps - connection.idleSince > idleSweeps) {
        // A connection without any request yet is Node's to cut, at HEADERS_TIMEOUT.
        socket.destroy();
      }
    }
  }

  return {
    begin(exchange) {
      const connection = (exchange.request.socket as Tracked)[CONNECTION] as Connection;
      connection.exchange = exchange;
      connection.open++;
    },
    end(exchange) {
      const connection = (exchange.request.socket as Tracked)[CONNECTION] as Connection;
      connection.open--;
      connection.idleSince = sweeps;
    },
    exchangeOn(socket) {
      const exchange = (socket as Tracked)[CONNECTION]?.exchange;
      return exchange?.response.writableFinished ? undefined : exchange;
    },
  };
}

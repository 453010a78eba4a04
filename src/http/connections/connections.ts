// The open connections of one server: limits their number and ends idle ones. A sweep (a regular check of all
// connections) replaces Node's own keep-alive timer. Node sets and clears its timer on every request, which costs 4
// percent of the request (docs/PERFORMANCE.md).
import type { Server } from 'node:http';
import type { Exchange } from '../exchange.ts';
import {
  attachConnection,
  Connection,
  connectionOf,
  SWEEP_INTERVAL,
  sweepsIn,
  type TrackedSocket,
} from './connection.ts';
import { createSlowReaders, type SlowReaderLimits } from './slow-readers.ts';
import { createTurns, type Turns } from './turns.ts';

export interface ConnectionLimits extends SlowReaderLimits {
  /** Milliseconds that a connection may be idle between two requests. */
  readonly keepAliveTimeout: number;
  /**
   * Maximum number of connections at a time. When a new connection exceeds the maximum, the first of these is closed:
   * - the oldest connection that has sent no request
   * - the connection that has been idle for longest
   * - the new connection itself
   */
  readonly maxConnections: number;
}

export interface Connections extends Pick<Turns, 'defer'> {
  /** Tracks each socket that the server emits with `event`, and limits their number. */
  watch(server: Server, event: 'connection' | 'secureConnection'): void;
  /** @returns false when the request must not be served, because an earlier answer ends the connection */
  begin(exchange: Exchange): boolean;
  /** Called when the answer is complete. The idle time of the connection then begins. */
  end(exchange: Exchange): void;
  /** Returns the exchange that began last on each connection. */
  exchanges(): Iterable<Exchange>;
}

export function createConnections({
  keepAliveTimeout,
  maxConnections,
  ...readerLimits
}: ConnectionLimits): Connections {
  // This is a list with free slots and not a Set. A Set sometimes replaces its internal table. An old table stays in
  // memory until the next full garbage collection, and keeps closed connections in memory, too.
  const sockets: (TrackedSocket | undefined)[] = [];
  const freeSlots: number[] = [];
  const idleSweeps = sweepsIn(keepAliveTimeout);
  const cutSlowReaders = createSlowReaders(readerLimits);
  const turns = createTurns();
  let sweepCount = 0;
  let nextActivityOrder = 0;
  let timer: NodeJS.Timeout | undefined;

  function add(socket: TrackedSocket): void {
    if (sockets.length - freeSlots.length >= maxConnections && !destroyOldest()) return void socket.destroy();
    const slot = freeSlots.pop() ?? sockets.length;
    sockets[slot] = socket;
    attachConnection(socket, new Connection(slot, sweepCount, nextActivityOrder++));
    socket.on('close', remove);
    timer ??= setInterval(sweep, SWEEP_INTERVAL).unref();
  }

  function remove(this: TrackedSocket): void {
    const connection = connectionOf(this);
    const { slot, exchange } = connection;
    // While a closed connection is in memory, each garbage collection of V8 would copy all that it refers to, which
    // takes up to 10 µs for each connection on Node 24 and later. So the references are removed here.
    connection.exchange = undefined;
    turns.forget(connection);
    sockets[slot] = undefined;
    freeSlots.push(slot);
    if (freeSlots.length === sockets.length) {
      clearInterval(timer);
      timer = undefined;
    }
    // If the last request has `onLost`, its body was still arriving. Nobody can read the answer, so both end now.
    if (exchange?.onLost === undefined) return;
    exchange.response.destroy();
    exchange.onLost();
  }

  function sweep(): void {
    sweepCount++;
    const unsentSockets: TrackedSocket[] = [];
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      if (socket.writableLength > 0) {
        connection.idleSince = sweepCount;
        // A socket that is being closed has no handle, so the counters of the kernel cannot be read.
        if (!socket.destroyed) unsentSockets.push(socket);
      } else if (
        connection.exchange !== undefined &&
        isIdle(connection) &&
        sweepCount - connection.idleSince > idleSweeps
      )
        // A connection that has sent no request is not ended here: Node itself ends it at HEADERS_TIMEOUT.
        socket.destroy();
    }
    cutSlowReaders(unsentSockets, sweepCount);
  }

  /**
   * Ends the idle connections of a worker that drains (completes its requests and then exits). The worker calls this
   * function repeatedly. A connection that has received bytes since the last call is not ended, because these bytes can
   * be the start of a request. Node's own function would also end a connection whose client is reading its answer.
   */
  function closeIdleConnections(): void {
    for (const socket of sockets) {
      const connection = socket && connectionOf(socket);
      if (socket === undefined || connection?.exchange === undefined) continue;
      if (!isIdle(connection) || socket.writableLength > 0) continue;
      if (socket.bytesRead === connection.lastReadBytes) socket.destroy();
      connection.lastReadBytes = socket.bytesRead;
    }
  }

  /**
   * Ends the oldest connection that has sent no request, or else the one that has been idle for longest. The search
   * takes 0.1 ms for 10,000 connections.
   *
   * @returns false when no connection could be ended
   */
  function destroyOldest(): boolean {
    let oldest: TrackedSocket | undefined;
    let lowest = Number.POSITIVE_INFINITY;
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      // A connection that came after the last sweep is probably about to send its request, so it is not silent yet.
      const isSilent = connection.exchange === undefined && connection.idleSince < sweepCount;
      const rank = isSilent ? connection.activityOrder - nextActivityOrder : connection.activityOrder;
      if (rank >= lowest || !isIdle(connection) || socket.writableLength > 0 || socket.destroyed) continue;
      oldest = socket;
      lowest = rank;
    }
    oldest?.destroy();
    return oldest !== undefined;
  }

  return {
    watch(server, event) {
      server.on(event, add);
      server.closeIdleConnections = closeIdleConnections;
    },
    begin(exchange) {
      const connection = connectionOf(exchange.request.socket);
      if (connection.exchange?.response.shouldKeepAlive === false) return false;
      connection.exchange = exchange;
      return true;
    },
    end(exchange) {
      const connection = connectionOf(exchange.request.socket);
      connection.idleSince = sweepCount;
      connection.activityOrder = nextActivityOrder++;
    },
    defer: turns.defer,
    *exchanges() {
      for (const socket of sockets) {
        const exchange = socket && connectionOf(socket).exchange;
        if (exchange !== undefined) yield exchange;
      }
    },
  };
}

function isIdle({ exchange, waitingCount }: Connection): boolean {
  return waitingCount === 0 && (exchange === undefined || exchange.isAnswered);
}

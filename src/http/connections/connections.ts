// The open connections of one server: limits their number and ends idle ones. A sweep (a regular check of all
// connections) replaces Node's own keep-alive timer, because Node sets and clears its timer on every request. That
// costs 4 percent of the request (docs/PERFORMANCE.md).
import type { Server, ServerResponse } from 'node:http';
import type { Exchange } from '../exchange.ts';
import {
  attachConnection,
  type Connection,
  connectionOf,
  findConnection,
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
   * Maximum number of connections at a time. When a new connection exceeds the maximum, one connection is closed, in
   * this order of preference:
   * - the oldest connection that has sent no request
   * - the connection that has been idle for longest
   * - the new connection itself
   */
  readonly maxConnections: number;
}

export interface Connections extends Pick<Turns, 'defer'> {
  /** Tracks each socket that the server emits with `event`, and limits their number. */
  watch(server: Server, event: 'connection' | 'secureConnection'): void;
  /** @returns false when an earlier answer ends the connection, so the request of the exchange must not be served */
  begin(exchange: Exchange): boolean;
  /** Called when the answer is complete: the idle time of the connection begins. */
  end(exchange: Exchange): void;
  stateOf(socket: object): ConnectionState;
  /** Returns the exchange that began last on each connection. */
  exchanges(): Iterable<Exchange>;
}

export interface ConnectionState {
  /** The exchange that began last. */
  readonly exchange: Exchange | undefined;
  /** The response of the last request, which can still be waiting for the answers before it. */
  readonly lastResponse: ServerResponse | undefined;
  /** True when pipelined requests wait for earlier answers, so the server does not read the socket. */
  readonly hasWaitingRequests: boolean;
}

export function createConnections({
  keepAliveTimeout,
  maxConnections,
  ...readerLimits
}: ConnectionLimits): Connections {
  // This is a list with free slots and not a Set. A Set replaces its internal table while entries are added and
  // deleted, and the replaced tables stay in the old generation of the heap. Each such table keeps closed connections
  // in memory until the next full garbage collection.
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
    attachConnection(socket, slot, sweepCount, nextActivityOrder++);
    socket.on('close', remove);
    timer ??= setInterval(sweep, SWEEP_INTERVAL).unref();
  }

  function remove(this: TrackedSocket): void {
    const connection = connectionOf(this);
    const { slot, exchange } = connection;
    // V8 would copy what a closed connection refers to at each garbage collection: up to 10 µs for each connection on
    // Node 24 and later (docs/PERFORMANCE.md). So the references are removed here.
    connection.exchange = undefined;
    turns.forget(connection);
    sockets[slot] = undefined;
    freeSlots.push(slot);
    if (freeSlots.length === sockets.length) {
      clearInterval(timer);
      timer = undefined;
    }
    // With `onLost`, the body of the last request was still arriving. Nobody can read its answer, so it ends now.
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
        // Connections without any request are not ended here, because Node itself ends them at HEADERS_TIMEOUT.
        socket.destroy();
    }
    cutSlowReaders(unsentSockets, sweepCount);
  }

  /**
   * Ends the idle connections of a worker that drains (completes its requests and then exits). The worker repeats the
   * call. Node's own function would also end a connection whose client is still reading its answer. A connection that
   * has received bytes since the last call is spared, because these bytes can be the start of a request.
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
    stateOf(socket) {
      const connection = findConnection(socket);
      return {
        exchange: connection?.exchange,
        lastResponse: connection?.waitingCount ? connection.lastWaitingResponse : connection?.exchange?.response,
        hasWaitingRequests: connection !== undefined && connection.waitingCount > 0,
      };
    },
  };
}

function isIdle({ exchange, waitingCount }: Connection): boolean {
  return waitingCount === 0 && (exchange === undefined || exchange.isAnswered);
}

// The open connections of one server: their number, their last exchange, and the sweep that ends idle connections. One
// sweep (a regular check of all connections) replaces Node's own keep-alive timer. Node sets and clears its timer on
// every request, which costs 4 percent of the request (docs/PERFORMANCE.md). This file does not decide what a request
// gets.
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
  /** Tracks each socket that the server emits with this event. */
  watch(server: Server, event: 'connection' | 'secureConnection'): void;
  /** @returns false when the answer to an earlier request ends the connection: the new request is then not served */
  begin(exchange: Exchange): boolean;
  end(exchange: Exchange): void;
  stateOf(socket: object): ConnectionState;
  /** Returns the exchange that began last on each connection. */
  exchanges(): Iterable<Exchange>;
}

export interface ConnectionState {
  /** The exchange that began last. */
  readonly exchange: Exchange | undefined;
  /** The response of the last request, which may still wait for its turn. */
  readonly last: ServerResponse | undefined;
  /** True when requests wait for their turn, so the server does not read the socket. */
  readonly isHeld: boolean;
}

export function createConnections({
  keepAliveTimeout,
  maxConnections,
  ...readerLimits
}: ConnectionLimits): Connections {
  // A list with free slots is used instead of a Set. A Set replaces its internal table while entries are added and
  // deleted, and the replaced tables stay in the old generation of the heap. Each such table keeps closed connections
  // in memory until the next full garbage collection.
  const sockets: (TrackedSocket | undefined)[] = [];
  const freeSlots: number[] = [];
  const idleSweeps = sweepsIn(keepAliveTimeout);
  const cutSlowReaders = createSlowReaders(readerLimits);
  const turns = createTurns();
  let sweeps = 0;
  let lastOrder = 0;
  let timer: NodeJS.Timeout | undefined;

  function add(socket: TrackedSocket): void {
    if (sockets.length - freeSlots.length >= maxConnections && !endOldest()) return void socket.destroy();
    const slot = freeSlots.pop() ?? sockets.length;
    sockets[slot] = socket;
    attachConnection(socket, slot, sweeps, lastOrder++);
    socket.on('close', remove);
    timer ??= setInterval(sweep, SWEEP_INTERVAL).unref();
  }

  function remove(this: TrackedSocket): void {
    const connection = connectionOf(this);
    const { slot, exchange } = connection;
    // At each garbage collection, V8 copies everything to which a closed connection still refers. On Node 24 and later,
    // the copying costs up to 10 µs for each connection (docs/PERFORMANCE.md). So the references are removed here.
    connection.exchange = undefined;
    turns.forget(connection);
    sockets[slot] = undefined;
    freeSlots.push(slot);
    if (freeSlots.length === sockets.length) {
      clearInterval(timer);
      timer = undefined;
    }
    // Here the body of the last request is still arriving. No client is left to read its answer, so the request ends
    // now.
    if (exchange?.onLost === undefined) return;
    exchange.response.destroy();
    exchange.onLost();
  }

  function sweep(): void {
    sweeps++;
    const writing: TrackedSocket[] = [];
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      if (socket.writableLength > 0) {
        connection.idleSince = sweeps;
        // A socket that is being closed has no handle, so the counters of the kernel cannot be read.
        if (!socket.destroyed) writing.push(socket);
      } else if (connection.exchange !== undefined && isIdle(connection) && sweeps - connection.idleSince > idleSweeps)
        // Connections without any request are not ended here, because Node itself ends them at HEADERS_TIMEOUT.
        socket.destroy();
    }
    cutSlowReaders(writing, sweeps);
  }

  /**
   * Ends the idle connections of a worker that drains (completes its requests and then exits). Such a worker calls this
   * function again and again. Node's own function would also end a connection whose client is still reading its answer.
   * A connection that has received bytes since the last call is spared, because a request may be on its way.
   */
  function closeIdleConnections(): void {
    for (const socket of sockets) {
      const connection = socket && connectionOf(socket);
      if (socket === undefined || connection?.exchange === undefined) continue;
      if (!isIdle(connection) || socket.writableLength > 0) continue;
      if (socket.bytesRead === connection.readBefore) socket.destroy();
      connection.readBefore = socket.bytesRead;
    }
  }

  /**
   * Ends the oldest connection without a request, or else the one that was idle for longest. The search takes 0.1 ms at
   * 10,000 connections.
   *
   * @returns whether there was such a connection
   */
  function endOldest(): boolean {
    let oldest: TrackedSocket | undefined;
    let lowest = Number.POSITIVE_INFINITY;
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      // A connection that came after the last sweep may be about to send its request, so it does not count as silent.
      const isSilent = connection.exchange === undefined && connection.idleSince < sweeps;
      const rank = isSilent ? connection.order - lastOrder : connection.order;
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
      connection.idleSince = sweeps;
      connection.order = lastOrder++;
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
        last: connection?.waiting ? connection.lastWaiting : connection?.exchange?.response,
        isHeld: connection !== undefined && connection.waiting > 0,
      };
    },
  };
}

function isIdle({ exchange, waiting }: Connection): boolean {
  return waiting === 0 && (exchange === undefined || exchange.isAnswered);
}

// Limits the number of open connections of one server, and ends idle ones. A sweep (a regular check of all connections)
// replaces Node's own keep-alive timers. To set and clear such a timer costs 4 percent of each request
// (docs/PERFORMANCE.md).
import type { Server } from 'node:http';
import { descriptorOf } from '../../base/node-internals.ts';
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

export interface ConnectionLimits extends SlowReaderLimits {
  /** Milliseconds that a connection may be idle between two requests. */
  readonly keepAliveTimeout: number;
  /**
   * Maximum number of connections at a time. A new connection beyond this maximum closes one connection: the oldest
   * that has sent no request, or else the one that has been idle for longest, or else the new connection itself.
   */
  readonly maxConnections: number;
  /** The highest descriptor of a connection. Beyond it, a new connection is treated as one beyond `maxConnections`. */
  readonly maxDescriptor?: number | undefined;
}

/** The looks of a drain, 50 ms apart, at which a connection may be idle: together 1.5 s. */
const DRAIN_LOOKS = 30;

export function createConnections({
  keepAliveTimeout,
  maxConnections,
  maxDescriptor = Number.POSITIVE_INFINITY,
  ...readerLimits
}: ConnectionLimits) {
  // This is a list with free slots and not a Set. A Set sometimes replaces its internal table. An old table stays in
  // memory until the next full garbage collection, and keeps closed connections in memory, too.
  const sockets: (TrackedSocket | undefined)[] = [];
  const freeSlots: number[] = [];
  /** The requests that still have no complete answer, and whose connection is closed. */
  const lostExchanges = new Set<Exchange>();
  const idleSweeps = sweepsIn(keepAliveTimeout);
  const cutSlowReaders = createSlowReaders(readerLimits);
  let sweepCount = 0;
  let refusedCount = 0;
  let nextActivityOrder = 0;
  let timer: NodeJS.Timeout | undefined;
  let refuseLate: (socket: TrackedSocket) => void = () => {};

  function add(socket: TrackedSocket): void {
    // Node keeps the address from the first read on. Without this one, work that outlasts its client would find none.
    void socket.remoteAddress;
    if (sockets.length - freeSlots.length >= maxConnections || descriptorOf(socket) > maxDescriptor) {
      const oldest = findOldest();
      if (oldest === undefined || !connectionOf(oldest).isUsed) refusedCount++;
      (oldest ?? socket).destroy();
      if (oldest === undefined) return;
    }
    const slot = freeSlots.pop() ?? sockets.length;
    sockets[slot] = socket;
    attachConnection(socket, new Connection(slot, sweepCount, nextActivityOrder++));
    socket.on('close', remove);
    timer ??= setInterval(sweep, SWEEP_INTERVAL).unref();
  }

  function remove(this: TrackedSocket): void {
    const connection = connectionOf(this);
    const { slot, lastExchange } = connection;
    if (lastExchange?.answer.isComplete === false) lostExchanges.add(lastExchange);
    // While a closed connection is in memory, each garbage collection of V8 would copy everything that the connection
    // refers to. This takes up to 10 µs a connection on Node 24 and later. So the references are removed here.
    connection.lastExchange = undefined;
    connection.incomplete = undefined;
    connection.lastWaitingResponse = undefined;
    sockets[slot] = undefined;
    freeSlots.push(slot);
    if (freeSlots.length === sockets.length) {
      clearInterval(timer);
      timer = undefined;
    }
    // If `onLost` is set, the body of the last request was still arriving, and its reader now gets an error. Nobody
    // can read the answer any more, so the response ends, too.
    if (lastExchange?.body.onLost === undefined) return;
    lastExchange.response.destroy();
    lastExchange.body.onLost();
  }

  function sweep(): void {
    sweepCount++;
    const unsentSockets: TrackedSocket[] = [];
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      if (isBodyLate(connection, sweepCount, readerLimits.readTimeout)) refuseLate(socket);
      const isIdleTooLong = isIdle(connection) && sweepCount - connection.idleSince > idleSweeps;
      if (socket.writableLength > 0) {
        connection.idleSince = sweepCount;
        // A socket that is being closed has no handle, so the counters of the kernel cannot be read.
        if (!socket.destroyed) unsentSockets.push(socket);
      }
      // A connection that has sent no request is not ended here: Node itself ends it at HEADERS_TIMEOUT.
      else if (isIdleTooLong && connection.isUsed) socket.destroy();
      // Otherwise, 10,000 idle connections would keep as many heads in memory.
      else if (isDone(connection.lastExchange)) connection.lastExchange = connection.incomplete = undefined;
    }
    cutSlowReaders(unsentSockets, sweepCount);
  }

  /**
   * Ends the idle connections of a worker that drains. The worker calls this function every 50 ms. The bytes that a
   * connection receives can be the start of a request. The head of a long answer can be older than the drain, and says
   * nothing of it. So the client of each connection has DRAIN_LOOKS to send its next request. This function
   * replaces Node's, which also ends connections with unsent bytes.
   */
  function closeIdleConnections(): void {
    for (const socket of sockets) {
      const connection = socket && connectionOf(socket);
      if (socket === undefined || !connection?.isUsed) continue;
      const hasReceived = socket.bytesRead !== connection.lastBytesRead;
      connection.lastBytesRead = socket.bytesRead;
      const isQuiet = isIdle(connection) && socket.writableLength === 0 && !hasReceived;
      connection.quietLooks = isQuiet ? connection.quietLooks + 1 : 0;
      if (connection.quietLooks >= DRAIN_LOOKS) socket.destroy();
    }
  }

  /**
   * Finds the oldest connection that has sent no request, or else the one that has been idle for longest; undefined
   * when none may be ended. The search takes 0.1 ms for 10,000 connections.
   */
  function findOldest(): TrackedSocket | undefined {
    let oldest: TrackedSocket | undefined;
    let lowestRank = Number.POSITIVE_INFINITY;
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = connectionOf(socket);
      // A connection that came after the last sweep is probably about to send its request, so it is not silent yet. A
      // silent connection has a negative rank, so it is ended before those that have been idle for longest.
      const isSilent = !connection.isUsed && connection.idleSince < sweepCount;
      const rank = isSilent ? connection.activityOrder - nextActivityOrder : connection.activityOrder;
      if (rank >= lowestRank || !isIdle(connection) || socket.writableLength > 0 || socket.destroyed) continue;
      oldest = socket;
      lowestRank = rank;
    }
    return oldest;
  }

  return {
    /** Returns the number of connections that were closed for want of room before their first request. */
    refused: () => refusedCount,
    /** Tracks each socket that the server emits with `event`, and limits their number. */
    watch(server: Server, event: 'connection' | 'secureConnection'): void {
      server.on(event, add);
      // As Node reports its own limits: answer/client-error.ts answers.
      refuseLate = (socket) =>
        server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
      server.closeIdleConnections = closeIdleConnections;
      // Node's function would leave the sockets of upgrades open.
      server.closeAllConnections = () => {
        for (const socket of sockets) socket?.destroy();
      };
    },
    /** @returns false when the request must not be served, because an earlier answer ends the connection */
    begin(exchange: Exchange): boolean {
      const connection = connectionOf(exchange.socket);
      if (connection.lastExchange?.response.shouldKeepAlive === false) return false;
      connection.lastExchange = exchange;
      connection.isUsed = true;
      return true;
    },
    /** Called when the answer is complete. The idle time of the connection begins with this call. */
    end(exchange: Exchange): void {
      const { socket } = exchange;
      if (socket.destroyed) lostExchanges.delete(exchange);
      // The time limit of `request.setTimeout` would hold for the next requests of the connection, too.
      if (socket.timeout) socket.setTimeout(0);
      const connection = connectionOf(socket);
      connection.idleSince = sweepCount;
      connection.activityOrder = nextActivityOrder++;
    },
    lostExchanges,
    *exchanges(): Generator<Exchange> {
      for (const socket of sockets) {
        const exchange = socket && connectionOf(socket).lastExchange;
        if (exchange !== undefined) yield exchange;
      }
    },
  };
}

function isIdle({ lastExchange, waitingCount }: Connection): boolean {
  return waitingCount === 0 && (lastExchange === undefined || lastExchange.answer.isComplete);
}

/** Says whether the connection needs an exchange no more: request and answer are complete, and another may come. */
function isDone(exchange: Exchange | undefined): boolean {
  if (exchange?.answer.isComplete !== true || !exchange.request.complete) return false;
  return exchange.response.writableFinished && exchange.response.shouldKeepAlive;
}

/**
 * Returns whether the body of the last request takes too long. The time begins with the first sweep that finds the body
 * incomplete, so a request without a body has no part in it. A body that is read as a stream is limited by its rate
 * (body/streamed-uploads.ts). The rest of a body whose request is answered has a time of its own.
 *
 * @param requestTimeout the limit in milliseconds unless the operation has its `bodyTimeout`
 */
function isBodyLate(connection: Connection, sweep: number, requestTimeout: number): boolean {
  const { lastExchange: exchange } = connection;
  if (exchange === undefined || exchange.request.complete || !exchange.hasBody) return false;
  const { answer, body, choice } = exchange;
  const incomplete = answer.isComplete ? answer : exchange;
  if (connection.incomplete !== incomplete) Object.assign(connection, { incomplete, incompleteSince: sweep });
  const streamTimeout = body.isStreamed || answer.isStreaming ? Number.POSITIVE_INFINITY : requestTimeout;
  const { bodyTimeout = streamTimeout } = choice?.operation?.settings ?? {};
  const timeout = answer.isComplete ? Math.min(requestTimeout, bodyTimeout) : bodyTimeout;
  return sweep - connection.incompleteSince >= sweepsIn(timeout);
}

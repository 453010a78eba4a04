// The connections of one server: which request each is busy with, which wait behind it, and the sweep that ends those
// that idle too long or whose client does not read. One sweep a second for all of them: Node's own keep-alive timer is
// set and cleared on every request, which costs 4 percent of it (docs/PERFORMANCE.md).
//
// A connection has one request under way. Those that a client sends before it has its answer wait, unread as far as may
// be, until the last byte of the answer before theirs is out: so nobody fills the memory or a turn of the event loop by
// one write, and a connection that ends never ends between a request and its answer (RFC 9112, 9.3.2 wants this of
// unsafe methods anyway).
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './exchange.ts';

interface Connection {
  /** Where in the list of sockets it is. */
  readonly slot: number;
  /** The exchange last begun. */
  exchange: Exchange | undefined;
  /** Requests that wait for theirs. */
  waiting: number;
  /** The response of the request that came last, if it waits or has waited. */
  lastWaiting: ServerResponse | undefined;
  /** The sweep's count when the last answer was given, or when the connection came. */
  idleSince: number;
  /** Among all of them, when that was: each such moment has the next number. */
  order: number;
  /** Bytes that the kernel had taken at the last sweep that found some left; -1 before there was one. */
  sentBefore: number;
  /** The sweep's count when it was first seen to have taken so many. */
  stalledSince: number;
  /** Bytes that had come when it was to be closed if it idles. */
  readBefore: number;
}

export interface ConnectionLimits {
  /** Milliseconds a connection may be idle between two requests. */
  readonly keepAliveTimeout: number;
  /** Milliseconds a client may leave an answer lying without reading on. */
  readonly readTimeout: number;
  /**
   * Bytes of answers that clients have not read, of all connections: beyond it those are cut that do not read on,
   * longest answer first.
   */
  readonly maxUnread: number;
  /** Of the server: it brings what a request has for its `socket`, which with TLS is not what was accepted. */
  readonly event?: string;
  /** Beyond it one that has not sent a request or has idled longest is ended, or if there is none the new one. */
  readonly maxConnections: number;
}

export interface Connections {
  /** @returns whether it is to be served: nothing behind a request whose answer ends the connection is */
  begin(exchange: Exchange): boolean;
  end(exchange: Exchange): void;
  /** Keeps a request back until those ahead of it on its connection have their answers; then calls `start`. */
  defer(response: ServerResponse, start: () => void): void;
  /** Whether requests wait behind this one. */
  isFollowed(exchange: Exchange): boolean;
  of(socket: object): ConnectionState;
  /** The exchange last begun on each connection. */
  exchanges(): Iterable<Exchange>;
}

export interface ConnectionState {
  /** The exchange last begun. */
  readonly exchange: Exchange | undefined;
  /** The response of the request that came last, which may not have begun. */
  readonly last: ServerResponse | undefined;
  /** Requests wait, so reading has stopped. */
  readonly isHeld: boolean;
}

/** Milliseconds between two sweeps: what the decided second allows. */
const SWEEP = 500;
/**
 * Requests that wait in this process, each some 3 KB. One read of 64 KiB may bring 2,500 to a connection before reading
 * stops; the connection that brings more than this in all is cut.
 */
export const MOST_WAITING = 10_000;

/** A property of ours on Node's socket: a Map look-up a request costs more. */
const CONNECTION = Symbol('connection');
type Tracked = Socket & { [CONNECTION]?: Connection };

export function trackConnections(
  server: Server,
  { keepAliveTimeout, readTimeout, maxUnread, maxConnections, event = 'connection' }: ConnectionLimits,
): Connections {
  // Slots that are used again, and not a Set: one that is added to and deleted from without end leaves its outgrown
  // tables in the old generation, and each keeps the connections that were in it alive until the next full collection.
  const sockets: (Tracked | undefined)[] = [];
  const freeSlots: number[] = [];
  const idleSweeps = Math.max(1, Math.ceil(keepAliveTimeout / SWEEP));
  const readSweeps = Math.max(1, Math.ceil(readTimeout / SWEEP));
  let sweeps = 0;
  let moments = 0;
  let waiting = 0;
  let timer: NodeJS.Timeout | undefined;

  server.on(event, (socket: Tracked) => {
    if (sockets.length - freeSlots.length >= maxConnections && !endOldest()) return void socket.destroy();
    const slot = freeSlots.pop() ?? sockets.length;
    sockets[slot] = socket;
    socket[CONNECTION] = {
      slot,
      exchange: undefined,
      waiting: 0,
      lastWaiting: undefined,
      idleSince: sweeps,
      order: moments++,
      sentBefore: -1,
      stalledSince: sweeps,
      readBefore: -1,
    };
    socket.on('close', forget);
    timer ??= setInterval(sweep, SWEEP).unref();
  });

  function forget(this: Tracked): void {
    const connection = this[CONNECTION] as Connection;
    const { slot, exchange } = connection;
    // What a closed connection holds, the engine goes on copying from one collection to the next, on Node 24 and later
    // at times all of it: up to 10 µs of a connection's cost (docs/PERFORMANCE.md).
    connection.exchange = undefined;
    connection.lastWaiting = undefined;
    waiting -= connection.waiting;
    connection.waiting = 0;
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
    let unread = 0;
    const stalled: Tracked[] = [];
    for (const socket of sockets) {
      if (socket === undefined) continue;
      const connection = socket[CONNECTION] as Connection;
      if (socket.writableLength > 0) {
        connection.idleSince = sweeps;
        // A socket that is being closed has no handle any more: what it said last still holds.
        if (socket.destroyed) continue;
        if (connection.exchange !== undefined) connection.exchange.unsent = unsentBytes(socket);
        const sent = sentBytes(socket);
        if (sent !== connection.sentBefore) {
          connection.sentBefore = sent;
          connection.stalledSince = sweeps;
        } else if (sweeps - connection.stalledSince >= readSweeps) {
          socket.destroy();
          continue;
        } else stalled.push(socket);
        unread += socket.writableLength;
        continue;
      }
      // A connection without any request yet is Node's to cut, at HEADERS_TIMEOUT.
      if (connection.exchange !== undefined && isIdle(connection) && sweeps - connection.idleSince > idleSweeps)
        socket.destroy();
    }
    if (unread > maxUnread) cutUnread(stalled, unread - maxUnread);
  }

  /** An answer is kept whole until its last byte is out. */
  function cutUnread(stalled: Tracked[], tooMany: number): void {
    let left = tooMany;
    for (const socket of stalled.sort((a, b) => b.writableLength - a.writableLength)) {
      if (left <= 0) return;
      left -= socket.writableLength;
      socket.destroy();
    }
  }

  function isIdle({ exchange, waiting }: Connection): boolean {
    return waiting === 0 && (exchange === undefined || exchange.settled);
  }

  /**
   * For a worker that drains, and asks time and again. Node's own takes an answer that has been made, but that its
   * client is still reading, for the end of it. A connection on which something has come since the last time may have a
   * request on its way.
   */
  server.closeIdleConnections = () => {
    for (const socket of sockets) {
      const connection = socket?.[CONNECTION];
      if (socket === undefined || connection?.exchange === undefined) continue;
      if (!isIdle(connection) || socket.writableLength > 0) continue;
      if (socket.bytesRead === connection.readBefore) socket.destroy();
      connection.readBefore = socket.bytesRead;
    }
  };

  /**
   * The oldest of those whose first request does not come, else who has idled longest. A look through all of them, for
   * each connection that is one too many: 0.1 ms at 10,000.
   */
  function endOldest(): boolean {
    let oldest: Tracked | undefined;
    let since = Number.POSITIVE_INFINITY;
    for (const socket of sockets) {
      const connection = socket?.[CONNECTION];
      if (socket === undefined || connection === undefined) continue;
      // One that has just come may well be about to.
      const isSilent = connection.exchange === undefined && connection.idleSince < sweeps;
      const age = isSilent ? connection.order - moments : connection.order;
      if (age >= since || !isIdle(connection) || socket.writableLength > 0 || socket.destroyed) continue;
      oldest = socket;
      since = age;
    }
    oldest?.destroy();
    return oldest !== undefined;
  }

  /** Reading the body of one request resumes the socket, also when the next ones have come already. */
  function hold(this: Tracked): void {
    if ((this[CONNECTION] as Connection).waiting > 0) this.pause();
  }

  return {
    begin(exchange) {
      const connection = (exchange.request.socket as Tracked)[CONNECTION] as Connection;
      if (connection.exchange?.response.shouldKeepAlive === false) return false;
      connection.exchange = exchange;
      return true;
    },
    end(exchange) {
      const connection = (exchange.request.socket as Tracked)[CONNECTION] as Connection;
      connection.idleSince = sweeps;
      connection.order = moments++;
    },
    defer(response, start) {
      const socket = response.req.socket as Tracked;
      const connection = socket[CONNECTION] as Connection;
      if (socket.destroyed) return;
      if (waiting >= MOST_WAITING) return void socket.destroy();
      if (connection.lastWaiting === undefined) socket.on('resume', hold);
      connection.lastWaiting = response;
      connection.waiting++;
      waiting++;
      socket.pause();
      // Node gives a response its socket when the last byte of the one before it is out. One request a turn of the
      // event loop: whoever else has sent something comes between.
      response.once('socket', () =>
        setImmediate(() => {
          if (socket.destroyed) return;
          waiting--;
          if (--connection.waiting === 0) socket.resume();
          start();
        }),
      );
    },
    *exchanges() {
      for (const socket of sockets) {
        const exchange = socket?.[CONNECTION]?.exchange;
        if (exchange !== undefined) yield exchange;
      }
    },
    isFollowed: (exchange) => ((exchange.request.socket as Tracked)[CONNECTION] as Connection).waiting > 0,
    of(socket) {
      const connection = (socket as Tracked)[CONNECTION];
      return {
        exchange: connection?.exchange,
        last: connection?.waiting ? connection.lastWaiting : connection?.exchange?.response,
        isHeld: connection !== undefined && connection.waiting > 0,
      };
    },
  };
}

/**
 * What was written and the kernel has not taken. With TLS a write is never done at once, so the socket below is asked.
 */
export function unsentBytes(socket: Socket): number {
  if (socket.writableLength === 0) return 0;
  return handleOf(socket)?.writeQueueSize ?? socket.writableLength;
}

/** What the kernel has taken since the connection came: it grows whenever the client reads, also within one write. */
function sentBytes(socket: Socket): number {
  return (handleOf(socket)?.bytesWritten ?? socket.bytesWritten) - unsentBytes(socket);
}

function handleOf(socket: Socket): Handle | undefined {
  const handle = (socket as { _handle?: Handle })._handle;
  return handle?._parent ?? handle;
}

/** Of Node's own; where a later one has it no more, an answer counts as unsent until Node says otherwise. */
interface Handle {
  /** Of `bytesWritten`, those that the kernel has not taken. */
  readonly writeQueueSize?: number;
  readonly bytesWritten?: number;
  readonly _parent?: Handle;
}

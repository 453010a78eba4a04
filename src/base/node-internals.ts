// Every place where Gatefold uses a private or undocumented part of Node, a function each. A new release of Node may
// change any of them: test/base/node-internals.test.ts calls each function and runs on each supported release.
// Tried on Node 20.20, 22.23, 24.21 and 26.10, except where a function names others. This file owns no policy: why a
// part is needed is explained where its function is called.
import { executionAsyncResource } from 'node:async_hooks';
import { constants, openSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type Net from 'node:net';
import querystring from 'node:querystring';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

/** Loads on first use, because `import` of node:net costs 20 ms, and a command opens no socket. */
const require = createRequire(import.meta.url);

/** A bound TCP socket as libuv has it. `worker.send()` passes it to a worker, and `server.listen()` accepts on it. */
export interface BoundSocket {
  close(): void;
}

type ListeningHandle = BoundSocket & { getsockname(address: { port?: number }): number };

/**
 * Binds a TCP socket on which this process does not accept. Uses `net._createServerHandle`, with which node:cluster
 * binds. On a Node without this function the service cannot start: Node documents no other way.
 *
 * @param address an IP address; null: all interfaces
 * @returns the socket and its port (undefined: the port is in use), or the number of the system's error
 */
export function bindSocket(
  address: string | null,
  port: number,
  family: number,
): { readonly socket: BoundSocket; readonly port: number | undefined } | number {
  const { _createServerHandle: createHandle } = require('node:net') as {
    _createServerHandle(address: string | null, port: number, family: number): ListeningHandle | number;
  };
  const handle = createHandle(address, port, family);
  if (typeof handle === 'number') return handle;
  const bound: { port?: number } = {};
  // libuv reports a busy port only to a process that listens. Until then the socket is bound to no port.
  const status = handle.getsockname(bound);
  return { socket: handle, port: status === 0 && bound.port ? bound.port : undefined };
}

/**
 * Stops a server's listening and leaves its connections open. Uses `net.Server.prototype.close`, since `close()` of
 * node:http also cuts idle connections. On a Node without this method, the call throws.
 */
export function stopListening(server: Net.Server): void {
  const { Server: NetServer } = require('node:net') as typeof Net;
  NetServer.prototype.close.call(server);
}

/** The counters of a socket's handle. Node 20 to 26 have all of them. */
interface Handle {
  /** The bytes of `bytesWritten` that the kernel has not taken. */
  readonly writeQueueSize?: number;
  readonly bytesWritten?: number;
  /** The TCP handle below a TLS handle. */
  readonly _parent?: Handle;
}

/**
 * Returns how many bytes were written to the TCP socket, and how many of them the kernel has not taken. Uses
 * `socket._handle`: `writableLength` counts a write as a whole until all of it is taken. On a Node without
 * `_handle`, both fields are undefined, as they are for a closed socket.
 */
export function tcpCounters(socket: Net.Socket): Pick<Handle, 'writeQueueSize' | 'bytesWritten'> {
  const { _handle: handle } = socket as { _handle?: Handle | null };
  return handle?._parent ?? handle ?? {};
}

/** Returns the socket below a TLS socket. Uses `socket._parent`; returns the argument where `_parent` is absent. */
export function tcpSocketOf<S extends Duplex>(socket: S): S {
  return (socket as { _parent?: S | null })._parent ?? socket;
}

/**
 * Makes the end of a connection a reset. Sets the flag that `resetAndDestroy()` sets, since that method sends a FIN
 * first where nothing is left to write. On a Node that ignores the flag, the connection ends with a FIN.
 */
export function resetOnClose(socket: Net.Socket): void {
  Object.assign(tcpSocketOf(socket), { resetAndClosing: true });
}

/**
 * Calls `listener` when the response of a pipelined request may be written: when the answers before it are sent. Uses
 * the event `socket` of a ServerResponse, which Node documents for requests of a client alone. On a Node
 * without this event, a pipelined request gets no answer.
 */
export function onTurn(response: ServerResponse, listener: () => void): void {
  response.once('socket', listener);
}

/**
 * Makes Node's parser drop what follows a request in the bytes that it is reading. Sets `request.upgrade`, on which the
 * parser stops. Node itself sets it to false afterwards, so the property ignores that. On a Node whose
 * parser ignores `upgrade`, the parser goes to the end of those bytes.
 */
export function stopParsingAfter(request: IncomingMessage): void {
  Object.defineProperty(request, 'upgrade', { get: () => true, set: () => {}, configurable: true });
}

type Headers = Readonly<Record<string, unknown>>;

/**
 * Answers Node's own reads of `request.headers`, which it makes before a request is handed over. Replaces the getter
 * `headers` of IncomingMessage. A Node that has no such getter keeps its headers.
 *
 * @param read returns the headers, or undefined for those of Node
 */
export function overrideHeaders<R extends IncomingMessage>(
  prototype: R,
  read: (request: R) => object | undefined,
): void {
  const inherited = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(prototype), 'headers');
  const { get } = inherited ?? {};
  if (get === undefined) return;
  Object.defineProperty(prototype, 'headers', {
    ...inherited,
    get(this: R): Headers {
      return (read(this) as Headers | undefined) ?? get.call(this);
    },
  });
}

/**
 * Answers OpenSSL's question for the keys of a session ticket. The first element of the result is 0 (the key is not
 * ours), 1 (it is ours) or 2 (it is ours, and the client gets a new ticket). The key's parts follow.
 */
export type OnTicket = (name: Buffer, iv: Buffer, isNew: boolean) => readonly (number | Buffer)[];

interface TicketContext {
  onticketkeycallback?: OnTicket;
  enableTicketKeyCallback?(): void;
}

/**
 * Has `onTicket` choose the key of each session ticket, until the server's next `setSecureContext()`. Uses the
 * server's `_sharedCreds.context`. On a Node without that object, the option `ticketKeys` applies, with one key alone.
 */
export function setTicketCallback(server: Net.Server, onTicket: OnTicket): void {
  const context = (server as { _sharedCreds?: { context?: TicketContext } })._sharedCreds?.context;
  if (context?.enableTicketKeyCallback === undefined) return;
  context.onticketkeycallback = onTicket;
  context.enableTicketKeyCallback();
}

export type AlpnCallback = (
  this: Partial<TLSSocket>,
  hello: { readonly servername: string; readonly protocols: readonly string[] },
) => string | undefined;

/**
 * Changes the application protocol that a TLS server accepts on new connections: one name, or what a callback chooses.
 * Sets `ALPNProtocols` and `ALPNCallback`, which Node documents as options and reads for each new connection. Without
 * them the server keeps the protocol of its options.
 */
export function setProtocol(server: Net.Server, protocol: string | AlpnCallback): void {
  const isName = typeof protocol === 'string';
  Object.assign(server, {
    ALPNCallback: isName ? undefined : protocol,
    // RFC 7301, 3.1: each name follows a byte with its length.
    ALPNProtocols: isName ? Buffer.from([protocol.length, ...Buffer.from(protocol)]) : undefined,
  });
}

/**
 * Decodes %XX in the bytes of a text. Uses `querystring.unescapeBuffer`, which never throws: an exception for each
 * malformed field of `decodeURIComponent` takes 0.2 s for 100 KB. On a Node without this function, the call throws.
 *
 * @param text a byte a character (latin1)
 * @param isPlusSpace decodes a plus as a space
 */
export function unescapeBytes(text: string, isPlusSpace: boolean): Buffer {
  return unescapeBuffer(text, isPlusSpace);
}

const { unescapeBuffer } = querystring as unknown as { unescapeBuffer(text: string, isPlusSpace: boolean): Buffer };

/**
 * Opens a descriptor's file again, for writes that fail with EAGAIN where they would wait. Uses Linux' /proc/self/fd.
 *
 * @returns the new descriptor; undefined for a socket, another user's pipe, or a system without /proc, such as macOS
 */
export function reopenWithoutWaiting(fd: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return undefined;
  }
}

/**
 * Returns a function that lets writes to standard error fail with EAGAIN where they would wait, for each process that
 * shares the descriptor. Uses `process.stderr._handle.setBlocking`; without it, returns undefined.
 */
export function stderrUnblocker(): (() => void) | undefined {
  const { _handle: handle } = process.stderr as { _handle?: { setBlocking?(isBlocking: boolean): number } };
  return handle?.setBlocking === undefined ? undefined : () => void handle.setBlocking?.(false);
}

type ResolveFilename = (request: string, ...rest: readonly unknown[]) => string;

/**
 * Answers a `require` that finds no file. Replaces `Module._resolveFilename`; a Node without it keeps the error.
 *
 * @param find returns the path of a file, or undefined for the error of Node
 */
export function onMissingRequire(find: (request: string, error: unknown) => string | undefined): void {
  const Module = require('node:module') as { _resolveFilename?: ResolveFilename };
  const { _resolveFilename: resolveFilename } = Module;
  if (resolveFilename === undefined) return;
  Module._resolveFilename = function resolve(request, ...rest) {
    try {
      return resolveFilename.call(this, request, ...rest);
    } catch (error) {
      const path = find(request, error);
      if (path === undefined) throw error;
      return path;
    }
  };
}

/**
 * Keeps the hidden class of the objects that `process.nextTick()` queues alive. Node before 24 makes them by a literal
 * with computed keys. V8 forgets such a class at a full garbage collection in which no tick is queued, and every later
 * tick is slow. Loading a folder is such a moment: requests cost 30 percent more (bench/NOTES.md). One object of the
 * class is enough to keep it. Inside a tick, `executionAsyncResource()` returns that object; if it does not, ticks may
 * be slow. Call this before there is garbage.
 */
export function keepTickShape(): void {
  process.nextTick(() => {
    queuedTick = executionAsyncResource();
  });
}

/** Exported, because V8 may collect what no code can read. */
export let queuedTick: object | undefined;

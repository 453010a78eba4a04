// Every private or undocumented part of Node that is used, each in a function. A new release of Node may change any of
// them, so test/base/node-internals.test.ts calls each function on each supported release: 20.20, 22.23, 24.21 and
// 26.10 so far. The callers explain why they need it.
import { executionAsyncResource } from 'node:async_hooks';
import { constants, openSync } from 'node:fs';
import type Http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type Net from 'node:net';
import querystring from 'node:querystring';
import { type Duplex, Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { attempt } from './failure.ts';

// The functions load node:net by `require` when they are called. An `import` of node:net takes 20 ms, and commands such
// as `gatefold routes` open no socket.
const require = createRequire(import.meta.url);

/** A TCP socket of libuv, bound to a port. `worker.send()` passes it to a worker, `server.listen()` accepts on it. */
export interface BoundSocket {
  close(): void;
}

type ListeningHandle = BoundSocket & { getsockname(address: { port?: number; address?: string }): number };

/** @returns the handle of libuv, or the number of the system's error */
type CreateHandle = (address: string | null, port: number, family: number, fd?: number) => ListeningHandle | number;

const createHandle: CreateHandle = (...args) =>
  (require('node:net') as { _createServerHandle: CreateHandle })._createServerHandle(...args);

/**
 * Binds a TCP socket, but accepts no connection on it in this process. Uses `net._createServerHandle`, the function
 * with which node:cluster binds. Node documents no other way, so the service cannot start on a Node without this
 * function.
 *
 * @param address an IP address, or null for all interfaces
 * @param family 4 or 6, the version of IP
 * @returns the socket and its port, or the number of the system's error. The port is undefined when it is busy.
 */
export function bindSocket(
  address: string | null,
  port: number,
  family: number,
): { readonly socket: BoundSocket; readonly port: number | undefined } | number {
  const handle = createHandle(address, port, family);
  if (typeof handle === 'number') return handle;
  // When the port is busy, libuv reports the error only later, to a process that listens. Until then the socket is
  // bound to no port.
  return { socket: handle, port: localAddressOf(handle).port || undefined };
}

/**
 * Takes a listening TCP socket that another program has opened. Like `bindSocket`, this function accepts no connection:
 * `listen({ fd })` would accept some in this process. Uses `net._createServerHandle`.
 *
 * @returns undefined when the descriptor is no TCP socket
 */
export function adoptSocket(fd: number) {
  const handle = createHandle(null, 0, -1, fd);
  if (typeof handle === 'number') return undefined;
  const { port, address } = localAddressOf(handle);
  return port === undefined || address === undefined ? undefined : { socket: handle, port, address };
}

/** @returns no address when the system refuses, or when the handle is no TCP socket */
function localAddressOf(handle: ListeningHandle): { port?: number; address?: string } {
  const address: { port?: number; address?: string } = {};
  return attempt(() => handle.getsockname(address), -1) === 0 ? address : {};
}

/**
 * Stops a server from accepting connections, and leaves its open connections alone. Uses `net.Server.prototype.close`,
 * because `close()` of node:http also cuts idle connections. On a Node without this method, the call throws.
 */
export function stopListening(server: Net.Server): void {
  const { Server: NetServer } = require('node:net') as typeof Net;
  NetServer.prototype.close.call(server);
}

/** The counters of a socket's handle, libuv's object for the socket. Node 20 to 26 have all of them. */
interface Handle {
  /** The number of the descriptor; -1 or undefined on Windows. */
  readonly fd?: number;
  /** The number of bytes in `bytesWritten` that the kernel has not taken yet. */
  readonly writeQueueSize?: number;
  readonly bytesWritten?: number;
  /** The TCP handle below a TLS handle. */
  readonly _parent?: Handle;
}

/**
 * Returns two counts of a TCP socket: the bytes that were written to it, and the bytes that the kernel has not taken
 * yet. Uses `socket._handle`. The public `writableLength` is not enough, because it counts a whole write until the
 * kernel has taken all of that write. Both fields are undefined for a closed socket, and on a Node without `_handle`.
 */
export function tcpCounters(socket: Net.Socket): Pick<Handle, 'writeQueueSize' | 'bytesWritten'> {
  return tcpHandleOf(socket);
}

function tcpHandleOf(socket: Net.Socket): Handle {
  const { _handle: handle } = socket as { _handle?: Handle | null };
  return handle?._parent ?? handle ?? {};
}

/**
 * Returns the number of a TCP socket's descriptor, which is the lowest one that was free. Uses `socket._handle`.
 * Returns 0 on a Node without it, and for a closed socket.
 */
export function descriptorOf(socket: Net.Socket): number {
  return tcpHandleOf(socket).fd ?? 0;
}

/** Returns the TCP socket below a TLS socket, by `socket._parent`; the argument itself where that is absent. */
export function tcpSocketOf<S extends Duplex>(socket: S): S {
  return (socket as { _parent?: S | null })._parent ?? socket;
}

/**
 * Makes a connection end with a reset (RST) instead of a FIN, when the connection is closed. Sets the private flag of
 * `resetAndDestroy()`, because a call of `resetAndDestroy()` sends a FIN first when nothing is left to write. On a Node
 * that ignores the flag, the connection ends with a FIN.
 */
export function resetOnClose(socket: Net.Socket): void {
  Object.assign(tcpSocketOf(socket), { resetAndClosing: true });
}

/**
 * Calls `listener` when the response to a pipelined request may be written, that is, when all earlier responses of the
 * connection are sent. Uses the event `socket` of ServerResponse. Node documents this event only for the requests of a
 * client. On a Node without this event, a pipelined request gets no answer.
 */
export function onTurn(response: ServerResponse, listener: () => void): void {
  response.once('socket', listener);
}

/**
 * Makes Node's parser stop after this request and drop the rest of the bytes that it is reading. The parser stops when
 * `request.upgrade` is true, so this function sets it. Node itself sets `upgrade` to false afterwards, so the property
 * ignores writes. On a Node whose parser ignores `upgrade`, the parser reads on to the end of those bytes.
 */
export function stopParsingAfter(request: IncomingMessage): void {
  Object.defineProperty(request, 'upgrade', { get: () => true, set: () => {}, configurable: true });
}

/**
 * Lets a request emit `end` that Node has closed because it has no body (the option `optimizeEmptyRequests`). Uses the
 * private flag `_dumped`, and runs the constructor of Readable again. On a Node without the flag, nothing changes.
 */
export function reviveRequest(request: IncomingMessage, response: ServerResponse): void {
  if (!request.closed || !(request as { _dumped?: boolean })._dumped) return;
  Reflect.apply(Readable, request, [{}]);
  Object.assign(request, { _dumped: false });
  request.push(null);
  // Node does so for a request that nobody reads, and has done it for this one.
  response.once('finish', () => request.resume());
}

/**
 * Calls `wait` when the reader of a body wants more bytes. Calls `receive` with the length of each piece that has come,
 * and with undefined at the end. Overrides `_read` and `push`, by which Node's streams ask for bytes and get them. On a
 * Node that calls other methods, a body is not counted.
 */
export function watchBody(
  request: IncomingMessage,
  { wait, receive }: { wait(): void; receive(length: number | undefined): void },
): void {
  const { push, _read: read } = request;
  if (request.readableLength > 0) receive(request.readableLength);
  Object.assign(request, {
    _read(size: number) {
      wait();
      read.call(request, size);
    },
    push(chunk: Uint8Array | null, encoding?: BufferEncoding) {
      receive(chunk?.length);
      return push.call(request, chunk, encoding);
    },
  });
}

/**
 * Frees a socket from its response, so that a library can assign its own, as `@fastify/websocket` does. `detachSocket`
 * would also take the socket from the response. Sets the private property `_httpMessage`. On a Node without it,
 * `assignSocket` of the library throws.
 *
 * @returns a function that gives the socket back to its response. For that of the library, the client is gone
 */
export function lendSocket(socket: Net.Socket): () => void {
  const lent = socket as { _httpMessage?: Http.ServerResponse | null | undefined };
  const { _httpMessage: own } = lent;
  lent._httpMessage = null;
  return () => {
    const { _httpMessage: other } = lent;
    lent._httpMessage = own;
    if (other !== own) other?.emit('close');
  };
}

/**
 * Says whether this Node asks the option `shouldUpgradeCallback` which upgrades a server takes. Before 22.21 and 24.9,
 * a server takes all of them, also `Upgrade: h2c`, or none. Looks for the property of this name in a server.
 */
export function choosesUpgrades(server = (require('node:http') as typeof Http).createServer()): boolean {
  return 'shouldUpgradeCallback' in server;
}

type Headers = Readonly<Record<string, unknown>>;

/**
 * Makes `read` supply the value of `request.headers`. Node itself reads these headers before it passes the request to
 * the service. Overrides the getter `headers` of IncomingMessage. On a Node without such a getter, nothing changes.
 *
 * @param read returns the headers, or undefined to use the headers of Node
 */
export function overrideHeaders<R extends IncomingMessage>(
  prototype: R,
  read: (request: R) => object | undefined,
): void {
  const inheritedProperty = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(prototype), 'headers');
  const { get } = inheritedProperty ?? {};
  if (get === undefined) return;
  Object.defineProperty(prototype, 'headers', {
    ...inheritedProperty,
    get(this: R): Headers {
      return (read(this) as Headers | undefined) ?? get.call(this);
    },
  });
}

/**
 * Gives OpenSSL the key of a session ticket. The first element of the result is a number, and the parts of the key
 * follow:
 * - 0 when this server has no key of this name,
 * - 1 to use the key,
 * - 2 to use the key and send the client a new ticket.
 *
 * @param isNew whether a new ticket is written; if not, `name` is the name of the key in the client's ticket
 */
export type OnTicket = (name: Buffer, iv: Buffer, isNew: boolean) => readonly (number | Buffer)[];

interface TicketContext {
  onticketkeycallback?: OnTicket;
  enableTicketKeyCallback?(): void;
}

/**
 * Makes `onTicket` choose the key of each session ticket, until the server's next `setSecureContext()`. Uses the
 * server's `_sharedCreds.context`. On a Node without that object, the server uses only the key of its option
 * `ticketKeys`.
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
 * Changes the application protocol that a TLS server accepts on new connections. `protocol` is one name, or a callback
 * that chooses a name. Sets the server's properties `ALPNProtocols` and `ALPNCallback`. Node documents both only as
 * options, but reads the properties for each new connection. On a Node without these properties, the server keeps the
 * protocol of its options.
 */
export function setProtocol(server: Net.Server, protocol: string | AlpnCallback): void {
  const isName = typeof protocol === 'string';
  Object.assign(server, {
    ALPNCallback: isName ? undefined : protocol,
    // One byte with the length precedes each name (RFC 7301, section 3.1).
    ALPNProtocols: isName ? Buffer.from([protocol.length, ...Buffer.from(protocol)]) : undefined,
  });
}

/**
 * Decodes %XX in the bytes of a text, and + as a space. Uses `querystring.unescapeBuffer`, because this function never
 * throws. `decodeURIComponent` throws an exception for each malformed field, and the exceptions for 100 KB take 0.2 s.
 * On a Node without `unescapeBuffer`, the call throws.
 *
 * @param text one character for each byte (latin1)
 */
export function unescapeBytes(text: string): Buffer {
  return unescapeBuffer(text, true);
}

const { unescapeBuffer } = querystring as unknown as { unescapeBuffer(text: string, isPlusSpace: boolean): Buffer };

/**
 * Opens the file of a descriptor again, in a mode without waiting: a write that would have to wait fails with EAGAIN.
 * Uses /proc/self/fd of Linux.
 *
 * @returns the new descriptor. Returns undefined for a socket, for another user's pipe, and on a system without /proc,
 *   such as macOS.
 */
export function reopenWithoutWaiting(fd: number): number | undefined {
  const mode = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  return attempt(() => openSync(`/proc/self/fd/${fd}`, mode), undefined);
}

/**
 * Returns a function that makes writes to standard error fail with EAGAIN when they would have to wait. The function
 * changes the mode for every process that shares the descriptor. Uses `process.stderr._handle.setBlocking`. Returns
 * undefined on a Node without that method.
 */
export function stderrUnblocker(): (() => void) | undefined {
  const { _handle: handle } = process.stderr as { _handle?: { setBlocking?(isBlocking: boolean): number } };
  return handle?.setBlocking === undefined ? undefined : () => void handle.setBlocking?.(false);
}

type ResolveFilename = (request: string, ...rest: readonly unknown[]) => string;

/**
 * Calls `find` for each `require` that finds no file. Replaces `Module._resolveFilename`. On a Node without this
 * function, such a `require` fails as before.
 *
 * @param find returns the path of a file to load, or undefined to throw Node's own error
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
 * Keeps one of the objects that `process.nextTick()` queues, so that V8 keeps the hidden class (the layout) of all such
 * objects. On Node before 24, V8 forgets the class when a full garbage collection finds no such object. This can happen
 * while a folder is loaded. Every later tick is then slow, and requests cost 30 percent more (bench/NOTES.md). Inside a
 * tick, `executionAsyncResource()` returns the queued object. On a Node where this function returns another object,
 * ticks may be slow. Call `keepTickShape` early, before the first full garbage collection.
 */
export function keepTickShape(): void {
  process.nextTick(() => {
    queuedTick = executionAsyncResource();
  });
}

/** Exported, because V8 may collect an object that no code can read. */
export let queuedTick: object | undefined;

// Sends the body of an answer and ends the answer, also while the client is still sending its request.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.ts';

/** Maximum milliseconds for which the rest of a request is read, so that its client can read the answer meanwhile. */
const LINGER = 2000;

export function endAnswer(exchange: Exchange, body: string | Uint8Array, isSecure: boolean): void {
  const { response } = exchange;
  if (!response.shouldKeepAlive && isStillSending(exchange)) endAfterRequest(exchange, body);
  else endWith(response, body, isSecure);
}

/**
 * Does the same as `response.end(body)`, but faster. On Node 20 and 22, `end(body)` writes the answer and an empty
 * string by one `writev`, which costs up to a fifth of a request more than a `write` and then an `end()`. With TLS, a
 * write is asynchronous, and `end()` before its end would write the empty string, too. So with TLS, `end()` follows in
 * the callback of the write.
 */
function endWith(response: ServerResponse, body: string | Uint8Array, isSecure: boolean): void {
  const socket = response.socket as Socket;
  socket.cork();
  const { end } = response;
  // By then, `response.end` can do nothing any more (node-mount.ts).
  if (isSecure) response.write(body, () => Reflect.apply(end, response, []));
  else response.write(body);
  socket.uncork();
  if (!isSecure) response.end();
}

export function isStillSending({ request, hasBody }: Exchange): boolean {
  return hasBody && !request.complete;
}

/**
 * Sends an answer while the client is still sending its request. To close a socket with unread bytes would reset the
 * connection, and the client could lose the answer. So first, the rest of the request is read, for LINGER at most.
 */
function endAfterRequest(exchange: Exchange, body: string | Uint8Array): void {
  const { response } = exchange;
  response.write(body);
  const { end } = response;
  whenReceived(exchange, () => Reflect.apply(end, response, []));
}

/** Does the same for an answer that streams: its end closes the socket only after the rest of the request. */
export function closeAfterRequest(exchange: Exchange): void {
  const { response, socket } = exchange;
  const release = () => Reflect.deleteProperty(socket, 'destroySoon');
  socket.destroySoon = () => {
    release();
    whenReceived(exchange, () => socket.destroySoon());
  };
  // The connection can stay open.
  response.once('close', release);
}

/** Reads and drops the rest of the request, for LINGER at most, and calls back. */
function whenReceived({ request, socket }: Exchange, callback: () => void): void {
  if (request.complete || socket.readableEnded) return callback();
  const end = () => {
    clearTimeout(timer);
    callback();
  };
  const timer = setTimeout(end, LINGER).unref();
  request.once('end', end);
  request.once('close', end);
  // An error is followed by 'close'.
  request.on('error', () => {});
  request.resume();
}

/** Says whether the rest of the body can be so long that it is better to end the connection than to read the rest. */
export function hasLongRest(exchange: Exchange, bodyLimit: number): boolean {
  const { transferEncoding, contentLength } = exchange.head;
  return isStillSending(exchange) && (transferEncoding !== undefined || Number(contentLength) > bodyLimit);
}

// Answers bytes that Node's HTTP parser rejects, requests that are too slow, and the method CONNECT. The answer has the
// form of all errors and ends the connection. A connection gets at most one such answer.
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { refusalCodeOf } from '../../base/client-error.ts';
import { refusal } from '../../base/errors.ts';
import { ALL_METHODS } from '../../callers/access/cors.ts';
import { type Connection, findConnection } from '../connections/connection.ts';
import type { Request } from '../head.ts';
import type { Responder } from './response.ts';

/** Milliseconds that a client has to read the last answer before its connection is cut. */
const LINGER = 1000;

export function answerClientErrors(server: Server, respond: Responder, newRequestId: () => string): void {
  const refusedSockets = new WeakSet<Duplex>();

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const connection: Partial<Connection> = findConnection(socket) ?? {};
    const { lastExchange: exchange, waitingCount = 0, lastWaitingResponse } = connection;
    const lastResponse = waitingCount > 0 ? lastWaitingResponse : exchange?.response;
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    // While requests wait for earlier answers, the server does not read the connection. If Node then reports that the
    // next request is late, this is not the client's fault.
    if (refusedSockets.has(socket) || (isLate && waitingCount > 0)) return;
    // If a streamed answer has begun while the body of its request is still coming, no error can be sent. Such a body
    // is late only where the operation has a `bodyTimeout`.
    const isStreaming = exchange?.answer.isStreaming && !exchange.answer.isComplete;
    if (isStreaming && lastResponse === exchange.response && !exchange.request.complete) {
      if (isLate) respond.fail(exchange, refusal('REQUEST_TIMEOUT'));
      else socket.destroy();
      return;
    }
    refusedSockets.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const code = refusalCodeOf(error);
    const refuse = () => endSocket(socket, respond.rawRefusal(refusal(code), newRequestId()));
    if (lastResponse === undefined) return refuse();
    const request = lastResponse.req as Request;
    if (!request.complete) {
      // The error is in the body of the last request, so that request is refused, unless it has been answered.
      const bodyCode = isLate ? code : 'MALFORMED_REQUEST';
      if (lastResponse !== exchange?.response) request.earlyError = bodyCode;
      else respond.fail(exchange, refusal(bodyCode));
      return whenSent(lastResponse, () => endSocket(socket));
    }
    // The bad bytes follow a complete request, which is answered first. If the head of that answer is not sent yet, the
    // head announces the end of the connection. If a head was sent that keeps the connection, a refusal follows.
    const keepsConnection = lastResponse.headersSent && lastResponse.shouldKeepAlive;
    lastResponse.shouldKeepAlive = keepsConnection;
    whenSent(lastResponse, keepsConnection ? refuse : () => endSocket(socket));
  });

  // CONNECT asks for a proxy, which this server is not. Node does not emit 'request' for it.
  server.on('connect', (_request, socket) => {
    // Without a listener, an error of this socket would be an uncaught exception.
    socket.on('error', () => {});
    endSocket(socket, respond.rawRefusal(refusal('METHOD_NOT_ALLOWED'), newRequestId(), ['Allow', ALL_METHODS]));
  });
}

function whenSent(response: ServerResponse, callback: () => void): void {
  if (response.writableFinished) callback();
  else response.once('finish', callback);
}

function endSocket(socket: Duplex, text?: string): void {
  socket.end(text);
  setTimeout(() => socket.destroy(), LINGER).unref();
}

// Answers bytes that Node's HTTP parser rejects, requests that are too slow, and CONNECT. The answer has the envelope
// of all errors, and the connection ends with the answer. A connection gets at most one such answer.
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, refusal } from '../../base/errors.ts';
import type { Connections } from '../connections/connections.ts';
import type { Request } from '../head.ts';
import { ALLOW_METHODS } from '../headers.ts';
import type { Responder } from './response.ts';

/** Node's error code → ours. Any other code means that the bytes are not HTTP. */
const ERROR_CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ['HPE_INVALID_URL', 'MALFORMED_PATH'],
  ['HPE_HEADER_OVERFLOW', 'HEADERS_TOO_LARGE'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'BODY_TOO_LARGE'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'REQUEST_TIMEOUT'],
]);
/** Milliseconds that a client has to read the answer before the connection is cut. */
const LINGER = 1000;

export interface ClientErrorParts {
  readonly respond: Responder;
  readonly newRequestId: () => string;
  readonly connections: Pick<Connections, 'stateOf'>;
}

export function answerClientErrors(server: Server, { respond, newRequestId, connections }: ClientErrorParts): void {
  const refused = new WeakSet<Duplex>();

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { exchange, lastResponse, hasWaitingRequests } = connections.stateOf(socket);
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    // On a held connection, this server has paused reading. A late request there is not the fault of the client, so it
    // is not refused.
    if (refused.has(socket) || (isLate && hasWaitingRequests)) return;
    // The streamed answer has begun, so no error can be sent. The answer may depend on the rest of the body. After bad
    // bytes, the rest of the body will not come, so the connection is cut. A body that is only late is given more time.
    if (exchange?.isStreamingAnswer && lastResponse === exchange.response && !exchange.request.complete) {
      if (!isLate) socket.destroy();
      return;
    }
    refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const code = ERROR_CODES.get(error.code ?? '') ?? 'MALFORMED_REQUEST';
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
    // The bad bytes follow a complete request, which is answered first. If possible, its answer announces the end of
    // the connection, and then no refusal follows. If the head of that answer has already promised to keep the
    // connection, the refusal follows the answer.
    const hasPromisedMore = lastResponse.headersSent && lastResponse.shouldKeepAlive;
    lastResponse.shouldKeepAlive = hasPromisedMore;
    whenSent(lastResponse, hasPromisedMore ? refuse : () => endSocket(socket));
  });

  // CONNECT asks for a proxy, which this server is not. Node does not emit 'request' for it.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    endSocket(socket, respond.rawRefusal(refusal('METHOD_NOT_ALLOWED'), newRequestId(), ['Allow', ALLOW_METHODS]));
  });
}

/** Calls back when the last byte of the response is out. */
function whenSent(response: ServerResponse, callback: () => void): void {
  if (response.writableFinished) callback();
  else response.once('finish', callback);
}

/** Ends the socket. `end()` is called once, because writing to a socket that Node has already ended is an error. */
function endSocket(socket: Duplex, text?: string): void {
  socket.end(text);
  setTimeout(() => socket.destroy(), LINGER).unref();
}

// What Node's parser gives up on, and connections that never become a request: answered in the same envelope as
// everything else, once a connection, then closed.
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, refusal } from '../base/errors.ts';
import type { Exchange } from './exchange.ts';
import { type Responder, rawRefusal } from './response.ts';

/** Node's error code → ours; any other is a request that is not HTTP. */
const CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ['HPE_INVALID_URL', 'MALFORMED_PATH'],
  ['HPE_HEADER_OVERFLOW', 'HEADERS_TOO_LARGE'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'BODY_TOO_LARGE'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'REQUEST_TIMEOUT'],
]);
/** Milliseconds that a refused connection gets to read its answer. */
const LINGER = 1000;

export interface ClientErrorParts {
  readonly respond: Responder;
  readonly newRequestId: () => string;
  /** The exchange under way on a connection, undefined when there is none. */
  readonly exchangeOn: (socket: Duplex) => Exchange | undefined;
}

export function answerClientErrors(server: Server, { respond, newRequestId, exchangeOn }: ClientErrorParts): void {
  const refused = new WeakSet<Duplex>();

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const code = CODES.get(error.code ?? '') ?? 'MALFORMED_REQUEST';
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const exchange = exchangeOn(socket);
    if (exchange === undefined) return end(socket, rawRefusal(refusal(code), newRequestId()));
    const { request, response } = exchange;
    // The mistake is in the body of a request under way: that one is refused. Or it stands behind a request: its answer
    // comes first, and the refusal after it, unless that answer can still say itself that the connection ends.
    if (!request.complete) respond.fail(exchange, refusal(code === 'REQUEST_TIMEOUT' ? code : 'MALFORMED_REQUEST'));
    const follows = request.complete && response.headersSent;
    if (!response.headersSent) response.shouldKeepAlive = false;
    response.once('finish', () => end(socket, follows ? rawRefusal(refusal(code), newRequestId()) : ''));
  });

  // CONNECT would make this server a proxy; it is the one method that Node does not hand over as a request.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    end(socket, rawRefusal(refusal('METHOD_NOT_ALLOWED'), newRequestId(), 'Allow: GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS\r\n'));
  });
}

function end(socket: Duplex, text: string): void {
  socket.end(text);
  setTimeout(() => socket.destroy(), LINGER).unref();
}

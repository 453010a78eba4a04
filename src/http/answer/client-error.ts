// What Node's parser gives up on, and connections that never become a request: answered in the same envelope as
// everything else, once a connection, then closed.
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { rawRefusal } from '../../base/envelope.ts';
import { type ErrorCode, refusal } from '../../base/errors.ts';
import type { Connections } from '../connections.ts';
import type { Request } from '../head.ts';
import { ALLOW_METHODS, RAW_REFUSAL_HEADERS } from '../headers.ts';
import type { Responder } from './response.ts';

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
  readonly connections: Pick<Connections, 'of'>;
}

/** One request has one answer, and what is no request has at most one on its connection. */
export function answerClientErrors(server: Server, { respond, newRequestId, connections }: ClientErrorParts): void {
  const refused = new WeakSet<Duplex>();

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { exchange, last, isHeld } = connections.of(socket);
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    // It is we who do not read on.
    if (refused.has(socket) || (isLate && isHeld)) return;
    // The answer to a body that breaks off has begun and says nothing more: it may wait for that body, and is not whole
    // without it.
    if (exchange?.streaming && last === exchange.response && !exchange.request.complete) {
      if (!isLate) socket.destroy();
      return;
    }
    refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const code = CODES.get(error.code ?? '') ?? 'MALFORMED_REQUEST';
    const refuse = () => end(socket, rawRefusal(refusal(code), newRequestId(), RAW_REFUSAL_HEADERS));
    if (last === undefined) return refuse();
    const request = last.req as Request;
    if (!request.complete) {
      // The mistake is in the body of the last request: that one is refused, unless it has its answer.
      const inBody = isLate ? code : 'MALFORMED_REQUEST';
      if (last !== exchange?.response) request.broken = inBody;
      else respond.fail(exchange, refusal(inBody));
      return whenOut(last, () => end(socket));
    }
    // It stands behind a request: the answer comes first, and the refusal after it, unless that answer can still say
    // itself that the connection ends, or has said so.
    const follows = last.headersSent && last.shouldKeepAlive;
    last.shouldKeepAlive = last.headersSent && last.shouldKeepAlive;
    whenOut(last, follows ? refuse : () => end(socket));
  });

  // CONNECT would make this server a proxy; it is the one method that Node does not hand over as a request.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    const headers = ['Allow', ALLOW_METHODS, ...RAW_REFUSAL_HEADERS];
    end(socket, rawRefusal(refusal('METHOD_NOT_ALLOWED'), newRequestId(), headers));
  });
}

function whenOut(response: ServerResponse, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

/** Node may have ended it already: to write to it then would be an error, even if nothing is written. */
function end(socket: Duplex, text?: string): void {
  socket.end(text);
  setTimeout(() => socket.destroy(), LINGER).unref();
}

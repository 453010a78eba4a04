// Creates the Node server that receives the requests. Many of its options turn off a refusal or a limit of Node,
// because this project has its own.
import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, ServerResponse as NodeResponse } from '../base/builtins.ts';
import { choosesUpgrades } from '../base/node-internals.ts';
import type { Settings } from '../base/settings.ts';
import { isTaken } from './connections/connection.ts';
import { isHandshake, Request } from './head.ts';

export interface Transport {
  createServer(options: ServerOptions, listener: RequestListener): Server;
  /** Whether TLS ends in this process. */
  readonly isSecure: boolean;
}

export const PLAIN: Transport = { createServer, isSecure: false };

/** The meaning of the header `Expect`: `100-continue`, or something unknown; undefined without this header. */
export type Expectation = 'continue' | 'unknown' | undefined;

export function createRequestServer(
  transport: Transport,
  { headersTimeout, requestTimeout }: Pick<Settings, 'headersTimeout' | 'requestTimeout'>,
  onRequest: (request: Request, response: ServerResponse, expectation: Expectation) => void,
): Server {
  const server = transport.createServer(
    {
      IncomingMessage: Request,
      // The milliseconds between two checks of the time limits below. Node's default is 30 s.
      connectionsCheckingInterval: 1000,
      // 0 turns Node's timer off, because request/connections ends idle connections.
      keepAliveTimeout: 0,
      // With this option, a request without a body is no stream to read to its end. Node before 24 ignores it.
      optimizeEmptyRequests: true,
      headersTimeout: Math.min(headersTimeout, requestTimeout),
      // 0 turns Node's limit off, because request/connections has one for each operation.
      requestTimeout: 0,
      // head.ts checks the header: Node's answer would have no envelope and no CORS headers.
      requireHostHeader: false,
      // `--insecure-http-parser` of Node is meant for what a controller calls. Here, it would hide a second request.
      insecureHTTPParser: false,
      // Everything but a handshake stays a usual request, such as `Upgrade: h2c`, which clients of Java send.
      shouldUpgradeCallback: (request) => isHandshake(request as Request) && !isTaken(request.socket),
    },
    (request, response) => onRequest(request as Request, response, undefined),
  );
  // 0 turns Node's limit off: Node would drop further header lines in silence. head.ts refuses too many lines.
  server.maxHeadersCount = 0;
  server.on('checkContinue', (request: Request, response: ServerResponse) => onRequest(request, response, 'continue'));
  server.on('checkExpectation', (request: Request, response: ServerResponse) =>
    onRequest(request, response, 'unknown'),
  );
  if (choosesUpgrades(server))
    server.on('upgrade', (request: Request, socket: Socket, head: Buffer) => {
      if (socket.destroyed) return;
      request.upgradeHead = head;
      onRequest(request, createResponse(request, socket), undefined);
    });
  // The application of a mount can listen on the server of its request, as Next.js and http-proxy-middleware do. The
  // listener would get every handshake of the service, also one that the steps refuse.
  server.on('newListener', (name: string, listener: () => void) => {
    if (name === 'upgrade') queueMicrotask(() => server.off(name, listener));
  });
  return server;
}

/** Creates the response to a handshake, for which Node has none: the steps of the request can refuse the handshake. */
function createResponse(request: Request, socket: Socket): ServerResponse {
  const response = new NodeResponse(request);
  // Node has removed its own listeners. Without one, an error of the socket would be an uncaught exception.
  socket.on('error', () => {});
  socket.on('drain', () => response.emit('drain'));
  response.assignSocket(socket);
  response.on('finish', () => socket.destroySoon());
  return response;
}

// Creates the Node server that receives the requests. Many of its options turn off a refusal or a limit of Node,
// because this project has its own.
import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer } from '../base/builtins.ts';
import type { Settings } from '../base/settings.ts';
import { Request } from './head.ts';

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
      // With this option, a request without a body is not a stream that has to be read to its end. Node before 24
      // ignores the option.
      optimizeEmptyRequests: true,
      headersTimeout: Math.min(headersTimeout, requestTimeout),
      // 0 turns Node's limit off, because request/connections has one for each operation.
      requestTimeout: 0,
      // head.ts checks the header: Node's answer would have no envelope and no CORS headers.
      requireHostHeader: false,
    },
    (request, response) => onRequest(request as Request, response, undefined),
  );
  // 0 turns Node's limit off: Node would drop further header lines in silence. head.ts refuses too many lines.
  server.maxHeadersCount = 0;
  server.on('checkContinue', (request: Request, response: ServerResponse) => onRequest(request, response, 'continue'));
  server.on('checkExpectation', (request: Request, response: ServerResponse) =>
    onRequest(request, response, 'unknown'),
  );
  return server;
}

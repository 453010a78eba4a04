// HTTP_PORT: answers the directory's http-01 challenges, and sends everybody else to HTTPS. It stands in the
// supervisor, which runs no controllers; so whatever a client sends is bounded here to a head, a moment and one answer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { createServer, STATUS_CODES } from '../../base/builtins.ts';
import { mostSideConnections } from '../../base/descriptors.ts';
import { listen } from '../../base/listen.ts';
import { createRecentConnections } from '../../base/recent-connections.ts';
import type { Challenge } from '../acme/client.ts';

export interface HttpPort {
  /** @throws Error of the system when the port cannot be had */
  listen(): Promise<void>;
  /** Answers the challenge until what it returns is called. */
  present(challenge: Challenge): () => void;
  close(): void;
}

export interface HttpPortOptions {
  readonly port: number;
  readonly host: string | undefined;
  /** Where HTTPS is served. */
  readonly httpsPort: () => number;
  /** Whether HTTPS is served for this host: a name, or an address as it stands in a URL; in lower case. */
  readonly isServed: (host: string) => boolean;
  /** Milliseconds that a request may take to come. */
  readonly timeoutMs?: number;
  readonly mostConnections?: number;
}

const CHALLENGE = /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]+)$/;
/** A name, an IPv4 address or an IPv6 address in brackets, and a port that is not repeated. */
const HOST = /^([a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
const TIMEOUT_MS = 5000;
/** Each has one answer, so none is there for long but those that want none. */
const MOST_CONNECTIONS = 1000;

export function createHttpPort({
  port,
  host,
  httpsPort,
  isServed,
  timeoutMs = TIMEOUT_MS,
  mostConnections = mostSideConnections(MOST_CONNECTIONS),
}: HttpPortOptions): HttpPort {
  const answers = new Map<string, string>();
  const server = createServer(
    {
      requestTimeout: timeoutMs,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16_384,
      // The check is below: Node's own answer has no headers.
      requireHostHeader: false,
    },
    answer,
  );
  server.on('connection', createRecentConnections(mostConnections).add);
  // No request has a body that anybody reads, and none is continued.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  server.on('clientError', refuse);
  server.setTimeout(2 * timeoutMs);

  return {
    async listen() {
      await listen(server, { port, host });
      server.on('error', () => {});
    },
    present({ token, keyAuthorization }) {
      answers.set(token, keyAuthorization);
      return () => void answers.delete(token);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const target = (request.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '') || '/';
    const token = CHALLENGE.exec(target)?.[1];
    const keyAuthorization = token === undefined ? undefined : answers.get(token);
    if (keyAuthorization !== undefined && (request.method === 'GET' || request.method === 'HEAD')) {
      return end(response, 200, { 'Content-Type': 'application/octet-stream' }, keyAuthorization);
    }
    if (token !== undefined) return end(response, 404, {});
    const [host = '', another] = request.headersDistinct.host ?? [];
    const name = another === undefined ? HOST.exec(host)?.[1]?.toLowerCase() : undefined;
    if (name === undefined || !target.startsWith('/')) return end(response, 400, {});
    // Nobody is sent to a name that this service has no certificate for.
    if (!isServed(name)) return end(response, 404, {});
    const at = httpsPort() === 443 ? name : `${name}:${httpsPort()}`;
    end(response, 308, { Location: `https://${at}${target}` });
  }
}

/** Answers a request that Node's parser gives up on. */
function refuse({ code }: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) return void socket.destroy();
  const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n`;
  socket.end(head, () => socket.destroy());
}

/** A body that is still coming ends with the connection. */
function end(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body = ''): void {
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, {
    ...headers,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': length,
    Connection: 'close',
  });
  response.end(body);
}

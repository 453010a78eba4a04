// The server of HTTP_PORT: answers http-01 challenges, and redirects all other requests to HTTPS. It runs in the
// supervisor, which must stay responsive, so a connection gets one answer, and its time and bytes are bounded.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { createServer, STATUS_CODES } from '../../base/builtins.ts';
import { refusalCodeOf } from '../../base/client-error.ts';
import { maxSupervisorConnections } from '../../base/descriptors.ts';
import { CATALOGUE } from '../../base/errors.ts';
import { listen } from '../../base/listen.ts';
import { createRecentConnections } from '../../base/recent-connections.ts';
import type { Challenge } from './acme/client.ts';

export type HttpPort = ReturnType<typeof createHttpPort>;

export interface HttpPortOptions {
  readonly port: number;
  readonly host: string | undefined;
  /** Returns the port by which clients reach HTTPS on a host that `isServed` accepts. */
  readonly httpsPort: (host: string) => number;
  /** The descriptor of a socket that systemd has opened, in the place of `port` and `host`. */
  readonly fd?: number | undefined;
  /** Whether HTTPS is served for this host: a name, or an address as URLs write it, in lower case. */
  readonly isServed: (host: string) => boolean;
  readonly timeoutMs?: number;
  readonly maxConnections?: number;
}

/** Matches the path of a challenge. The group is its token. */
const CHALLENGE = /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]+)$/;
/** Matches a Host header: a name, an IPv4 address or an IPv6 address in brackets, and perhaps a port. */
const HOST = /^([a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
const TIMEOUT_MS = 5000;
/** A connection beyond this number destroys the oldest one: mostly that of a client that sends no request. */
const MAX_CONNECTIONS = 1000;

export function createHttpPort(options: HttpPortOptions) {
  const { port, host, fd, httpsPort, isServed, timeoutMs = TIMEOUT_MS } = options;
  const { maxConnections = maxSupervisorConnections(MAX_CONNECTIONS) } = options;
  /** Token of a challenge → its key authorization, which is the answer. */
  const challengeAnswers = new Map<string, string>();
  const server = createServer(
    {
      requestTimeout: timeoutMs,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16_384,
      // `answer` checks the Host header, because Node's own answer with status 400 lacks our headers.
      requireHostHeader: false,
    },
    answer,
  );
  server.on('connection', createRecentConnections(maxConnections).add);
  // No body is read, so no client is asked to send one.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  server.on('clientError', refuse);
  server.setTimeout(2 * timeoutMs);

  return {
    /** @throws Error of the system when the port is taken or not permitted */
    async listen(): Promise<void> {
      await listen(server, fd === undefined ? { port, host } : { fd });
      server.on('error', () => {});
    },
    /** Answers the challenge until the returned function is called. */
    present({ token, keyAuthorization }: Challenge): () => void {
      challengeAnswers.set(token, keyAuthorization);
      return () => void challengeAnswers.delete(token);
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    // A client can send the whole URL instead of the path (RFC 9112, section 3.2.2).
    const target = (request.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '') || '/';
    const token = CHALLENGE.exec(target)?.[1];
    const keyAuthorization = challengeAnswers.get(token ?? '');
    if (keyAuthorization !== undefined && (request.method === 'GET' || request.method === 'HEAD'))
      return send(response, 200, { 'Content-Type': 'application/octet-stream' }, keyAuthorization);
    if (token !== undefined) return send(response, 404, {});
    const [host = '', secondHost] = request.headersDistinct.host ?? [];
    const name = secondHost === undefined ? HOST.exec(host)?.[1]?.toLowerCase() : undefined;
    if (name === undefined || !target.startsWith('/')) return send(response, 400, {});
    // Without this check, a forged Host header would redirect to any site.
    if (!isServed(name)) return send(response, 404, {});
    const securePort = httpsPort(name);
    send(response, 308, { Location: `https://${name}${securePort === 443 ? '' : `:${securePort}`}${target}` });
  }
}

/** Answers a request that Node's parser cannot read, or that has not arrived in time. */
function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) return void socket.destroy();
  const { status } = CATALOGUE[refusalCodeOf(error)];
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n`;
  socket.end(head, () => socket.destroy());
}

/** Sends the answer. With `Connection: close`, Node then closes the connection and drops unread request bytes. */
function send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body = ''): void {
  const length = Buffer.byteLength(body);
  const common = { 'X-Content-Type-Options': 'nosniff', 'Content-Length': length, Connection: 'close' };
  response.writeHead(status, { ...headers, ...common });
  response.end(body);
}

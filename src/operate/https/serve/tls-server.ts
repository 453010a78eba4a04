// The worker's half of HTTPS: a server whose certificate (certificates.ts) is replaced without losing a connection.
import type { RequestListener, Server, ServerOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import { crypto, https, tls } from '../../../base/builtins.ts';
import { setProtocol, tcpSocketOf } from '../../../base/node-internals.ts';
import { createRecentConnections } from '../../../base/recent-connections.ts';
import { ACME_TLS, type SecureChallenge, type SecureState } from './secure-state.ts';
import { setTicketKeys } from './ticket-keys.ts';

export type TlsServer = ReturnType<typeof createTlsServer>;

export interface TlsServerOptions {
  readonly handshakeTimeout: number;
  /** Maximum connections of one worker. Handshakes under way have the same limit, but never more than 1,000. */
  readonly maxConnections: number;
  /** Returns the complete HTTP response, as text, to a request that came without TLS. */
  readonly plainRefusal: () => string;
}

/** Maximum handshakes under way in one worker. Each takes 30 KB of memory before its client has sent a request. */
const MAX_HANDSHAKES = 1000;
/** The only protocol that clients can choose by ALPN (RFC 7301), except while a challenge is checked. */
const HTTP = 'http/1.1';
/** Seconds in which a client may resume its session. Ticket keys live longer (certificates.ts). */
const SESSION_TIMEOUT = 3600;

type SecureServer = ReturnType<ReturnType<typeof https>['createServer']>;

export function createTlsServer({ handshakeTimeout, maxConnections, plainRefusal }: TlsServerOptions) {
  let server: SecureServer | undefined;
  let state: SecureState | undefined;

  return {
    createServer(options: ServerOptions, listener: RequestListener): Server {
      server = https().createServer(
        { ...options, handshakeTimeout, ALPNProtocols: [HTTP], ...contextOptions(state) },
        listener,
      );
      setTicketKeys(server, decodeTicketKeys(state));
      limitHandshakes(server, Math.min(maxConnections, MAX_HANDSHAKES));
      // Node's own listener would turn this error into a `clientError`, which is answered in HTTP.
      server.removeAllListeners('tlsClientError');
      server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket, plainRefusal));
      offerChallenge(server, state?.challenge);
      return server as unknown as Server;
    },
    isSecure: true as const,
    /** Sets the certificate and the ticket keys for new connections. Open connections keep the old ones. */
    use(next: SecureState): void {
      const previous = state;
      state = next;
      if (server === undefined) return;
      if (previous?.cert !== next.cert || previous.ticketKeys[0] !== next.ticketKeys[0]) {
        server.setSecureContext(contextOptions(next));
        setTicketKeys(server, decodeTicketKeys(next));
      }
      offerChallenge(server, next.challenge);
    },
  };
}

function contextOptions(state: SecureState | undefined) {
  const common = {
    // `--tls-min-v1.3` of Node counts, and `--tls-min-v1.0` does not: it may be meant for what a controller calls.
    minVersion: tls().DEFAULT_MIN_VERSION === 'TLSv1.3' ? 'TLSv1.3' : 'TLSv1.2',
    // With renegotiation, a client of TLS 1.2 can repeat the costly handshake on one connection. No client needs this.
    secureOptions: crypto().constants.SSL_OP_NO_RENEGOTIATION,
    sessionIdContext: 'gatefold',
    sessionTimeout: SESSION_TIMEOUT,
    // No client certificate is checked, so no root certificate is needed. Node 24 would parse all of its own in 10 ms.
    ca: [] as string[],
  } as const;
  if (state === undefined) return common;
  const [ticketKeys] = decodeTicketKeys(state);
  return { ...common, cert: state.cert, key: state.key, ...(ticketKeys === undefined ? {} : { ticketKeys }) };
}

function decodeTicketKeys(state: SecureState | undefined): Buffer[] {
  return (state?.ticketKeys ?? []).map((key) => Buffer.from(key, 'base64'));
}

/** Clients that ask for the ALPN protocol `acme-tls/1` get the challenge's certificate, and all others the real one. */
function offerChallenge(server: SecureServer, challenge: SecureChallenge | undefined): void {
  if (challenge === undefined) return setProtocol(server, HTTP);
  const { domain, cert, key } = challenge;
  const context = tls().createSecureContext({ cert, key, minVersion: 'TLSv1.2', ca: [] });
  setProtocol(server, function choose({ servername, protocols }) {
    if (protocols.includes(ACME_TLS) && servername.toLowerCase() === domain && this.setKeyCert !== undefined) {
      this.setKeyCert(context);
      return ACME_TLS;
    }
    return protocols.includes(HTTP) ? HTTP : undefined;
  });
}

/** A handshake beyond `max` destroys the connection whose handshake began first. */
function limitHandshakes(server: SecureServer, max: number): void {
  const handshakes = createRecentConnections(max);
  // A handshake may fail at once in Node's own listener. This one runs before it, so that it sees the `close`.
  server.prependListener('connection', handshakes.add);
  server.on('secureConnection', (socket) => handshakes.release(tcpSocketOf(socket)));
}

/** Closes a connection whose handshake failed or took too long. Only a client that sent plain HTTP gets an answer. */
function refuse(error: NodeJS.ErrnoException, socket: Duplex, plainRefusal: () => string): void {
  const transport = tcpSocketOf(socket);
  if (error.code === 'ERR_SSL_HTTP_REQUEST' && transport !== socket && transport.writable)
    transport.write(plainRefusal());
  socket.destroy();
}

// The worker's half: an HTTPS server whose certificate can be another one at any moment, without a connection lost.
// Where the certificate comes from, and when it changes, the supervisor knows.
import type { RequestListener, Server, ServerOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { crypto, https, tls } from '../../base/builtins.ts';
import { createRecentConnections } from '../../base/recent-connections.ts';

import { ACME_TLS, type SecureChallenge, type SecureState } from './secure-state.ts';
import { acceptTickets } from './ticket-keys.ts';

export interface TlsServer {
  /** In the place of `createServer` of node:http. */
  createServer(options: ServerOptions, listener: RequestListener): Server;
  readonly isSecure: true;
  /** From now on new connections get this; open ones keep what they have. */
  use(state: SecureState): void;
}

export interface TlsServerOptions {
  /** Milliseconds. */
  readonly handshakeTimeout: number;
  /** Of one worker. A handshake is no connection yet, so there may be as many beside them, but no more than 1,000. */
  readonly maxConnections: number;
  /** The whole answer, as text, to a request that came without TLS. */
  readonly plainRefusal: () => string;
}

/** Handshakes under way in one worker, each some 30 KB that nobody has proved to want. */
const MOST_HANDSHAKES = 1000;
/** Seconds that a client may resume its session for; the ticket key changes less often. */
const SESSION_TIMEOUT = 3600;

type SecureServer = ReturnType<ReturnType<typeof https>['createServer']> & {
  ALPNCallback?: AlpnCallback | undefined;
  ALPNProtocols?: Buffer | undefined;
};
type AlpnCallback = (
  this: Partial<TLSSocket>,
  hello: { servername: string; protocols: string[] },
) => string | undefined;

export function createTlsServer({ handshakeTimeout, maxConnections, plainRefusal }: TlsServerOptions): TlsServer {
  let server: SecureServer | undefined;
  let state: SecureState | undefined;
  /** The list of protocols as Node encodes it, put aside while a challenge is under way. */
  let protocols: Buffer | undefined;

  return {
    createServer(options, listener) {
      server = https().createServer(
        { ...options, handshakeTimeout, ALPNProtocols: ['http/1.1'], ...contextOptions(state) },
        listener,
      );
      protocols = server.ALPNProtocols;
      acceptTickets(server, ticketKeysOf(state));
      boundHandshakes(server, Math.min(maxConnections, MOST_HANDSHAKES));
      server.removeAllListeners('tlsClientError');
      server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket, plainRefusal));
      offerChallenge(server, protocols, state?.challenge);
      return server as unknown as Server;
    },
    isSecure: true,
    use(next) {
      const before = state;
      state = next;
      if (server === undefined) return;
      if (before?.cert !== next.cert || before.ticketKeys[0] !== next.ticketKeys[0]) {
        server.setSecureContext(contextOptions(next));
        acceptTickets(server, ticketKeysOf(next));
      }
      offerChallenge(server, protocols, next.challenge);
    },
  };
}

function contextOptions(state: SecureState | undefined) {
  // No client is asked for a certificate, so no root is needed: to read all that Node brings takes Node 24 10 ms at
  // each change.
  const common = {
    minVersion: 'TLSv1.2',
    // TLS 1.2 lets a client ask for handshake after handshake on one connection; Node bounds them, and nobody needs
    // any.
    secureOptions: crypto().constants.SSL_OP_NO_RENEGOTIATION,
    sessionIdContext: 'gatefold',
    sessionTimeout: SESSION_TIMEOUT,
    ca: [] as string[],
  } as const;
  if (state === undefined) return common;
  const [ticketKeys] = ticketKeysOf(state);
  return { ...common, cert: state.cert, key: state.key, ...(ticketKeys === undefined ? {} : { ticketKeys }) };
}

function ticketKeysOf(state: SecureState | undefined): Buffer[] {
  return (state?.ticketKeys ?? []).map((key) => Buffer.from(key, 'base64'));
}

/**
 * Only who asks for the protocol of the check gets the certificate that answers it; everybody else, in the same moment
 * and for the same name, the real one. Node reads both properties for each new connection, and takes one of the two.
 */
function offerChallenge(
  server: SecureServer,
  protocols: Buffer | undefined,
  challenge: SecureChallenge | undefined,
): void {
  if (challenge === undefined) {
    server.ALPNCallback = undefined;
    server.ALPNProtocols = protocols;
    return;
  }
  const { domain, cert, key } = challenge;
  const context = tls().createSecureContext({ cert, key, minVersion: 'TLSv1.2', ca: [] });
  server.ALPNProtocols = undefined;
  server.ALPNCallback = function choose({ servername, protocols: offered }) {
    if (offered.includes(ACME_TLS) && servername.toLowerCase() === domain && this.setKeyCert !== undefined) {
      this.setKeyCert(context);
      return ACME_TLS;
    }
    return offered.includes('http/1.1') ? 'http/1.1' : undefined;
  };
}

function boundHandshakes(server: SecureServer, most: number): void {
  const underWay = createRecentConnections(most);
  // Before Node's own listener, so that a handshake that fails at once is not kept.
  server.prependListener('connection', underWay.add);
  server.on('secureConnection', (socket) => underWay.release(rawOf(socket)));
}

/** What a TLS connection stands on; for want of a public name by the one that it has in every Node. */
function rawOf(socket: Duplex): Duplex {
  return (socket as { _parent?: Duplex })._parent ?? socket;
}

/**
 * A handshake that failed or took too long. There is no one to talk to, except for a client that spoke HTTP without
 * TLS.
 */
function refuse(error: NodeJS.ErrnoException, socket: Duplex, plainRefusal: () => string): void {
  const raw = rawOf(socket);
  if (error.code === 'ERR_SSL_HTTP_REQUEST' && raw !== socket && raw.writable) raw.write(plainRefusal());
  socket.destroy();
}

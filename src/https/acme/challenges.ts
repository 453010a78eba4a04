// Where the answers to the directory's challenges are shown: http-01 on HTTP_PORT; tls-alpn-01 on PORT, by the workers
// once they serve, and by this process as long as there is no certificate that they could serve with.
import { setTimeout as sleep } from 'node:timers/promises';
import { tls } from '../../base/builtins.ts';
import { mostSideConnections } from '../../base/descriptors.ts';
import { listen } from '../../base/listen.ts';
import { createRecentConnections } from '../../base/recent-connections.ts';
import type { HttpPort } from '../serve/http-port.ts';
import { ACME_TLS, type SecureChallenge } from '../serve/secure-state.ts';
import { createChallengeCertificate } from './certificate-writer.ts';
import type { ChallengeType, PresentChallenge } from './client.ts';

export interface Challenges {
  /** That which comes first is tried first. */
  readonly types: readonly ChallengeType[];
  readonly present: PresentChallenge;
}

export interface ChallengesOptions {
  readonly httpPort: HttpPort | undefined;
  /** Of PORT. */
  readonly port: number;
  readonly host: string | undefined;
  /** Workers hold the port. */
  readonly isServing: () => boolean;
  /** Gives it to every worker. */
  readonly publish: (challenge: SecureChallenge | undefined) => void;
}

/** Milliseconds that a message to a busy worker may take. */
const SPREAD = 500;
/** Of the port before there is a certificate. A directory looks from a handful of places. */
const MOST_CONNECTIONS = 100;

export function createChallenges({ httpPort, port, host, isServing, publish }: ChallengesOptions): Challenges {
  return {
    types: httpPort === undefined ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'],
    async present(challenge) {
      if (challenge.type === 'http-01' && httpPort !== undefined) return httpPort.present(challenge);
      const answer = {
        domain: challenge.domain,
        ...createChallengeCertificate(challenge.domain, challenge.keyAuthorization),
      };
      if (!isServing()) return listenFor(answer, port, host);
      publish(answer);
      await sleep(SPREAD);
      return () => publish(undefined);
    },
  };
}

/** It speaks with nobody but the directory. */
async function listenFor({ cert, key }: SecureChallenge, port: number, host: string | undefined): Promise<() => void> {
  const server = tls().createServer(
    { cert, key, minVersion: 'TLSv1.2', ALPNProtocols: [ACME_TLS], handshakeTimeout: 5000 },
    (socket) => {
      socket.on('error', () => {});
      socket.end();
    },
  );
  server.on('connection', createRecentConnections(mostSideConnections(MOST_CONNECTIONS)).add);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await listen(server, { port, host });
  server.on('error', () => {});
  return () => void server.close();
}

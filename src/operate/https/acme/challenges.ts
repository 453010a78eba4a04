// Publishes the answers to challenges: HTTP_PORT serves http-01, and PORT serves tls-alpn-01. Usually the workers
// listen on PORT. Before the first certificate PORT is not bound, so this process listens itself.
import { setTimeout as sleep } from 'node:timers/promises';
import { tls } from '../../../base/builtins.ts';
import { maxSupervisorConnections } from '../../../base/descriptors.ts';
import { describeFailure } from '../../../base/failure.ts';
import { listen } from '../../../base/listen.ts';
import { createRecentConnections } from '../../../base/recent-connections.ts';
import type { HttpPort } from '../http-port.ts';
import { ACME_TLS, type SecureChallenge } from '../serve/secure-state.ts';
import { createChallengeCertificate } from './certificate-writer.ts';
import type { Challenge, ChallengeType } from './client.ts';
import { AcmeError } from './request.ts';

export type Challenges = ReturnType<typeof createChallenges>;

export interface ChallengesOptions {
  readonly httpPort: HttpPort | undefined;
  readonly port: number;
  readonly host: string | undefined;
  /** Whether PORT is bound for the workers. This is true before any of them has loaded, and so before one listens. */
  readonly isHandedOver: () => boolean;
  /** Sends the answer to every worker. `undefined` withdraws the last answer. */
  readonly publish: (challenge: SecureChallenge | undefined) => void;
}

/** Milliseconds to wait after `publish`, so that even a busy worker has the answer when the directory checks it. */
const PUBLISH_MS = 500;
/** Maximum connections on PORT before the first certificate. A directory checks from only a few machines. */
const MAX_CONNECTIONS = 100;

export function createChallenges({ httpPort, port, host, isHandedOver, publish }: ChallengesOptions) {
  const types: readonly ChallengeType[] = httpPort === undefined ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'];
  return {
    types,
    async present(challenge: Challenge): Promise<() => void> {
      if (challenge.type === 'http-01' && httpPort !== undefined) return httpPort.present(challenge);
      const answer = createChallengeCertificate(challenge.domain, challenge.keyAuthorization);
      if (!isHandedOver()) return serveAnswer(answer, port, host);
      publish(answer);
      await sleep(PUBLISH_MS);
      return () => publish(undefined);
    },
  };
}

/** A connection ends after its handshake, because the handshake is the whole answer. */
async function serveAnswer({ cert, key }: SecureChallenge, port: number, host?: string): Promise<() => void> {
  const server = tls().createServer(
    { cert, key, minVersion: 'TLSv1.2', ALPNProtocols: [ACME_TLS], handshakeTimeout: 5000 },
    (socket) => void socket.end(),
  );
  server.on('connection', createRecentConnections(maxSupervisorConnections(MAX_CONNECTIONS)).add);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  // systemd may hold PORT, or another server. Then the next order uses http-01.
  await listen(server, { port, host }).catch((cause: unknown) => {
    const message = `PORT: Cannot listen on port ${port}: ${describeFailure(cause)}`;
    throw new AcmeError(message, { type: 'noPort', cause });
  });
  // An error after this, such as too many open files, must not end the supervisor.
  server.on('error', () => {});
  return () => void server.close();
}

// The state for HTTPS that the supervisor sends to its workers. It has private keys, so it is sent only by the channel
// between the processes, never by environment or arguments, and is never logged.
import type { PemPair } from '../pair.ts';

export interface SecureState extends PemPair {
  /** Newest first, 48 bytes each in base64. Each worker can resume the sessions of the others. */
  readonly ticketKeys: readonly string[];
  /** The answer to serve while the directory, the ACME server, checks a name by tls-alpn-01. */
  readonly challenge: SecureChallenge | undefined;
}

export interface SecureChallenge extends PemPair {
  readonly domain: string;
}

/** The ALPN protocol that a directory asks for when it checks a challenge (RFC 8737, section 6.2). */
export const ACME_TLS = 'acme-tls/1';

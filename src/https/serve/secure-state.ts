// The state that the supervisor sends to its workers so that they can serve HTTPS. Because of its private keys, it is
// sent by the channel between the processes alone, never by environment or arguments, and never logged.

export interface SecureState {
  /** The certificate with its chain, PEM. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** 48 bytes each in base64, the newest first. All workers share them, so each resumes the sessions of the others. */
  readonly ticketKeys: readonly string[];
  /** The answer to serve while the directory checks a name by tls-alpn-01. */
  readonly challenge: SecureChallenge | undefined;
}

export interface SecureChallenge {
  readonly domain: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/** The ALPN protocol that a directory asks for when it checks a challenge (RFC 8737, section 6.2). */
export const ACME_TLS = 'acme-tls/1';

// What the supervisor hands to its workers so that they can serve HTTPS. It goes through the channel between the
// processes alone: not by environment, not by arguments; and nobody writes it to a log.

export interface SecureState {
  /** The certificate with its chain, PEM. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /**
   * 48 bytes each in base64, the newest first: the same for all workers and generations, so that any resumes a session
   * of any other.
   */
  readonly ticketKeys: readonly string[];
  /** While the directory checks a name by tls-alpn-01. */
  readonly challenge: SecureChallenge | undefined;
}

export interface SecureChallenge {
  readonly domain: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/** What a client asks for that comes to check a challenge (RFC 8737, section 6.2). */
export const ACME_TLS = 'acme-tls/1';

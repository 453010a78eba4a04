// Certificates of our own making for tests, and a client that says what it saw of a TLS connection.
import { createKeyPair, createSelfSigned } from '../../src/https/acme/certificate-writer.ts';

export interface TestPair {
  readonly cert: string;
  readonly key: string;
}

/** Self-signed, so that the certificate is also its root. */
export function makePair(
  domain: string,
  { days = 90, now = Date.now() }: { days?: number; now?: number } = {},
): TestPair {
  return createSelfSigned({ domains: [domain], keys: createKeyPair(), now, days });
}

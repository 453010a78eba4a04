// Makes certificates for tests. Also a client that reports the facts of a TLS connection.
import { createKeyPair, createSelfSigned } from '../../src/operate/https/acme/certificate-writer.ts';

export interface TestPair {
  readonly cert: string;
  readonly key: string;
}

/** Makes a self-signed certificate, which is also its own root. */
export function makePair(
  domain: string,
  { days = 90, now = Date.now() }: { days?: number; now?: number } = {},
): TestPair {
  return createSelfSigned({ domains: [domain], keys: createKeyPair(), now, days });
}

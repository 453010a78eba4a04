// A certificate and its private key, as PEM texts: whether they can be served, and what is known of them. Nothing it
// says holds a byte of the key.
import type { KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { crypto, tls } from '../base/builtins.ts';
import { readElements } from './acme/der.ts';

export interface CertificateFacts {
  readonly subject: string;
  /** Host names and addresses, in lower case. */
  readonly names: readonly string[];
  readonly issuer: string;
  /** Unix milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Hexadecimal. */
  readonly serial: string;
  /** SHA-256, hexadecimal: equal exactly when the certificate is. */
  readonly fingerprint: string;
  /**
   * What the directory's renewal information calls it (RFC 9773, section 4.1); undefined when it names no issuer's key.
   */
  readonly renewalId: string | undefined;
}

export interface CertificatePair {
  /** The certificate and its chain, PEM. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  readonly facts: CertificateFacts;
  /** Whether it is good for this host, as clients see it: a name, or an address as it stands in a URL. */
  isFor(host: string): boolean;
}

/**
 * @throws Error one line, when the two cannot be served: not PEM, a key for another certificate, a key with a
 *   passphrase, a chain
 * that OpenSSL refuses
 */
export function readPair(certText: string, keyText: string): CertificatePair {
  const leaf = readCertificate(certText);
  const key = readPrivateKey(keyText);
  if (!leaf.checkPrivateKey(key)) throw new Error('the key does not belong to the certificate');
  // What only OpenSSL knows: a key that is too short, a torn certificate further down the chain.
  try {
    tls().createSecureContext({ cert: certText, key: keyText, minVersion: 'TLSv1.2', ca: [] });
  } catch (error) {
    throw new Error(`OpenSSL refuses them (${(error as NodeJS.ErrnoException).code ?? 'no code'})`);
  }
  return { cert: certText, key: keyText, facts: factsOf(leaf), isFor: (host) => isFor(leaf, host) };
}

/** @throws Error one line, when the text does not begin with a certificate */
export function readCertificate(certText: string): X509Certificate {
  if (!certText.includes('-----BEGIN CERTIFICATE-----')) throw new Error('there is no certificate in PEM form in it');
  try {
    return new (crypto().X509Certificate)(certText);
  } catch {
    throw new Error('the certificate is damaged or incomplete');
  }
}

function readPrivateKey(keyText: string): KeyObject {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(keyText)) throw new Error('there is no private key in PEM form in it');
  if (/-----BEGIN ENCRYPTED |^Proc-Type:.*ENCRYPTED/m.test(keyText))
    throw new Error('the private key has a passphrase');
  try {
    return crypto().createPrivateKey(keyText);
  } catch {
    throw new Error('the private key is damaged or incomplete');
  }
}

export function factsOf(leaf: X509Certificate): CertificateFacts {
  return {
    subject: oneLine(leaf.subject),
    names: namesOf(leaf.subjectAltName),
    issuer: oneLine(leaf.issuer),
    notBefore: Date.parse(leaf.validFrom),
    notAfter: Date.parse(leaf.validTo),
    serial: leaf.serialNumber.toLowerCase(),
    fingerprint: leaf.fingerprint256.replaceAll(':', '').toLowerCase(),
    renewalId: renewalIdOf(leaf),
  };
}

function isFor(leaf: X509Certificate, host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) !== 0) return leaf.checkIP(address) !== undefined;
  // OpenSSL takes a leading dot for any name below.
  return !host.startsWith('.') && leaf.checkHost(host) !== undefined;
}

/** Node gives a line an attribute. */
function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}

function namesOf(subjectAltName: string | undefined): string[] {
  const names = (subjectAltName ?? '')
    .split(', ')
    .map((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1]?.toLowerCase());
  return names.filter((name) => name !== undefined);
}

const AUTHORITY_KEY_IDENTIFIER = Buffer.from([0x55, 0x1d, 0x23]);

/** The issuer's key identifier and the serial number, each in base64url: neither is had from Node's own reading. */
function renewalIdOf(leaf: X509Certificate): string | undefined {
  try {
    const [certificate] = readElements(leaf.raw);
    const [content] = readElements(certificate?.content ?? Buffer.of());
    const fields = readElements(content?.content ?? Buffer.of());
    const serial = fields.find(({ tag }) => tag === 0x02)?.content;
    const extensions = readElements(
      readElements(fields.find(({ tag }) => tag === 0xa3)?.content ?? Buffer.of())[0]?.content ?? Buffer.of(),
    );
    for (const extension of extensions) {
      const parts = readElements(extension.content);
      if (!parts[0]?.content.equals(AUTHORITY_KEY_IDENTIFIER)) continue;
      const [value] = readElements(parts.at(-1)?.content ?? Buffer.of());
      const keyId = readElements(value?.content ?? Buffer.of()).find(({ tag }) => tag === 0x80)?.content;
      if (keyId !== undefined && serial !== undefined)
        return `${keyId.toString('base64url')}.${serial.toString('base64url')}`;
    }
  } catch {
    // A certificate that Node reads and this does not is renewed by its age.
  }
  return undefined;
}

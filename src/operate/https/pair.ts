// Checks that a certificate and its private key can be served. No error and no fact contains a byte of the key.
import type { KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { crypto, tls } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { withoutBrackets } from '../../base/values.ts';
import { type Element, readElements } from './acme/der.ts';

export type CertificateFacts = ReturnType<typeof readFacts>;
export type CertificatePair = ReturnType<typeof readPair>;

export interface PemPair {
  /** The certificate in PEM form, with its chain if it has one. `key` is its private key in PEM form. */
  readonly cert: string;
  readonly key: string;
}

/** The curves of ECDSA in TLS (RFC 8446, section 4.2.3), as OpenSSL names them. */
const CURVES: readonly string[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/**
 * @throws Error with a message of one line, when the certificate cannot be served with this key. Examples are a text
 *   that is not PEM, a key for another certificate, a key with a passphrase, and a chain that OpenSSL refuses.
 */
export function readPair(certText: string, keyText: string) {
  const leaf = readCertificate(certText);
  const key = readPrivateKey(keyText);
  if (!leaf.checkPrivateKey(key)) throw new Error('the key does not belong to the certificate');
  const { namedCurve } = key.asymmetricKeyDetails ?? {};
  if (namedCurve !== undefined && !CURVES.includes(namedCurve))
    throw new Error(`clients refuse keys of the curve ${namedCurve}: order one with prime256v1 (P-256)`);
  // Only OpenSSL finds some faults: a key that is too short, a damaged certificate further down the chain.
  try {
    tls().createSecureContext({ cert: certText, key: keyText, minVersion: 'TLSv1.2', ca: [] });
  } catch (error) {
    throw new Error(
      `OpenSSL refuses the certificate or its key (${(error as NodeJS.ErrnoException).code ?? 'no code'})`,
    );
  }
  return { cert: certText, key: keyText, facts: readFacts(leaf), isFor: (host: string) => isFor(leaf, host) };
}

/** @throws Error with a message of one line, when the text does not begin with a certificate */
export function readCertificate(certText: string): X509Certificate {
  if (!certText.includes('-----BEGIN CERTIFICATE-----')) throw new Error('the file has no certificate in PEM form');
  const certificate = attempt(() => new (crypto().X509Certificate)(certText), undefined);
  if (certificate === undefined) throw new Error('the certificate is damaged or incomplete');
  return certificate;
}

function readPrivateKey(keyText: string): KeyObject {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(keyText)) throw new Error('the file has no private key in PEM form');
  if (/-----BEGIN ENCRYPTED |^Proc-Type:.*ENCRYPTED/m.test(keyText))
    throw new Error('the private key has a passphrase');
  const key = attempt(() => crypto().createPrivateKey(keyText), undefined);
  if (key === undefined) throw new Error('the private key is damaged or incomplete');
  return key;
}

export function readFacts(leaf: X509Certificate) {
  return {
    subject: joinAttributes(leaf.subject),
    /** In lower case. From 26.12 on, Node throws for an extension without a name. */
    names: parseNames(attempt(() => leaf.subjectAltName, undefined)),
    issuer: joinAttributes(leaf.issuer),
    /** The time from which the certificate is valid, in Unix milliseconds; `notAfter` is the time of its end. */
    notBefore: Date.parse(leaf.validFrom),
    notAfter: Date.parse(leaf.validTo),
    /** SHA-256 of the certificate, in hexadecimal digits. */
    fingerprint: leaf.fingerprint256.replaceAll(':', '').toLowerCase(),
    /** RFC 9773, section 4.1. Undefined when the certificate lacks the key id of its issuer. */
    renewalId: readRenewalId(leaf),
  };
}

/** Whether clients accept the certificate for this host: a name, or an address as URLs write it. */
function isFor(leaf: X509Certificate, host: string): boolean {
  const address = withoutBrackets(host);
  if (isIP(address) !== 0) return leaf.checkIP(address) !== undefined;
  // OpenSSL would match a host that begins with a dot to every name below that domain.
  return !host.startsWith('.') && leaf.checkHost(host) !== undefined;
}

/** Returns `C=DE, O=Example`. Node separates these attributes of a name by line ends. */
function joinAttributes(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}

/** Returns the host names and IP addresses of the extension subjectAltName. */
function parseNames(subjectAltName: string | undefined): string[] {
  const names = (subjectAltName ?? '')
    .split(', ')
    .map((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1]?.toLowerCase());
  return names.filter((name) => name !== undefined);
}

/** The extension's object identifier, 2.5.29.35, in DER. */
const AUTHORITY_KEY_IDENTIFIER = Buffer.from([0x55, 0x1d, 0x23]);

/** Node does not expose the issuer's key id, so this function reads the DER bytes. */
function readRenewalId(leaf: X509Certificate): string | undefined {
  try {
    const [certificate] = readElements(leaf.raw);
    const [tbsCertificate] = elementsIn(certificate);
    const fields = elementsIn(tbsCertificate);
    // 0x02 is an integer, 0xa3 is `[3]` (the extensions), and 0x80 is `[0]` (the key id; RFC 5280, section 4).
    const serial = fields.find(({ tag }) => tag === 0x02)?.content;
    const [extensions] = elementsIn(fields.find(({ tag }) => tag === 0xa3));
    for (const extension of elementsIn(extensions)) {
      const parts = elementsIn(extension);
      if (!parts[0]?.content.equals(AUTHORITY_KEY_IDENTIFIER)) continue;
      const [value] = elementsIn(parts.at(-1));
      const keyId = elementsIn(value).find(({ tag }) => tag === 0x80)?.content;
      if (keyId !== undefined && serial !== undefined)
        return `${keyId.toString('base64url')}.${serial.toString('base64url')}`;
    }
  } catch {
    // Node reads this certificate, and `readElements` does not. Then its age alone decides when it is renewed.
  }
  return undefined;
}

function elementsIn(element: Element | undefined): Element[] {
  return element === undefined ? [] : readElements(element.content);
}

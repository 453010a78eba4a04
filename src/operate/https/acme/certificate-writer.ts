// Creates the two signed documents that an order needs:
// - the certificate request (PKCS #10, RFC 2986),
// - the self-signed certificate that answers a tls-alpn-01 challenge (RFC 8737).
//
// Both documents use P-256 keys and name their hosts in the extension subjectAltName. der.ts encodes the bytes.
import type { KeyObject } from 'node:crypto';
import { crypto } from '../../../base/builtins.ts';
import type { PemPair } from '../pair.ts';
import type { SecureChallenge } from '../serve/secure-state.ts';
import {
  bitString,
  explicit,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
  set,
  TRUE,
  time,
  utf8String,
} from './der.ts';

/** The algorithm of all signatures here: ECDSA with SHA-256. */
const SIGNATURE_ALGORITHM = sequence(oid('1.2.840.10045.4.3.2'));
const COMMON_NAME = '2.5.4.3';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
/** The extension id-pe-acmeIdentifier (RFC 8737, section 6.1). */
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const DAY = 86_400_000;

type KeyPair = ReturnType<typeof createKeyPair>;

export function createKeyPair() {
  return crypto().generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** Returns DER. The subject is empty, because a directory (an ACME server) reads only the names in the extension. */
export function createCertificateRequest(domains: readonly string[], keys: KeyPair): Buffer {
  const [version, subject] = [integer(Buffer.of(0)), sequence()];
  const attribute = sequence(oid(EXTENSION_REQUEST), set(sequence(subjectAltName(domains))));
  // The attributes are `[0] IMPLICIT SET`. A set with one attribute has the same bytes as `[0] EXPLICIT` around it.
  const attributes = explicit(0, attribute);
  return appendSignature(sequence(version, subject, publicKeyInfo(keys.publicKey), attributes), keys.privateKey);
}

/**
 * @param keyAuthorization the answer to the challenge. The certificate contains the digest of this answer, which proves
 *   that this service serves `domain`.
 */
export function createChallengeCertificate(domain: string, keyAuthorization: string): SecureChallenge {
  const digest = crypto().createHash('sha256').update(keyAuthorization).digest();
  // The extension is critical (`TRUE`). The value of every extension is an octet string, and here it contains another.
  const extensions = [sequence(oid(ACME_IDENTIFIER), TRUE, octetString(octetString(digest)))];
  const keys = createKeyPair();
  return { domain, ...createSelfSigned({ domains: [domain], extensions, keys, now: Date.now(), days: 7 }) };
}

export interface SelfSignedOptions {
  readonly domains: readonly string[];
  /** Further extensions in DER form, besides the extension with the names. */
  readonly extensions?: readonly Uint8Array[];
  readonly keys: KeyPair;
  /** The current time in Unix milliseconds. The certificate is valid from one day earlier, because clocks differ. */
  readonly now: number;
  readonly days: number;
}

export function createSelfSigned({ domains, extensions = [], keys, now, days }: SelfSignedOptions): PemPair {
  const serial = crypto().randomBytes(16);
  // Each certificate gets a name of its own, because a program that trusts two of them distinguishes them by name.
  const name = sequence(set(sequence(oid(COMMON_NAME), utf8String(`gatefold ${serial.toString('hex', 0, 4)}`))));
  const version3 = integer(Buffer.of(2));
  const certificate = appendSignature(
    sequence(
      explicit(0, version3),
      integer(serial),
      SIGNATURE_ALGORITHM,
      name, // of the issuer
      sequence(time(new Date(now - DAY)), time(new Date(now + days * DAY))),
      name, // of the subject
      publicKeyInfo(keys.publicKey),
      explicit(3, sequence(subjectAltName(domains), ...extensions)),
    ),
    keys.privateKey,
  );
  return {
    cert: pem('CERTIFICATE', certificate),
    key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function appendSignature(content: Buffer, privateKey: KeyObject): Buffer {
  return sequence(content, SIGNATURE_ALGORITHM, bitString(crypto().sign('sha256', content, privateKey)));
}

/** Encodes the public key as SubjectPublicKeyInfo (RFC 5280, section 4.1). */
function publicKeyInfo(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/**
 * Encodes the extension with the host names. A host name (dNSName) is `[2] IA5String` (RFC 5280, section 4.2.1.6). The
 * setting DOMAINS refuses IP addresses, which would need another tag.
 */
function subjectAltName(domains: readonly string[]): Buffer {
  return sequence(
    oid(SUBJECT_ALT_NAME),
    octetString(sequence(...domains.map((domain) => implicit(2, Buffer.from(domain, 'latin1'))))),
  );
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

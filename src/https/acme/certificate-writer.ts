// Creates the two signed documents that an order needs:
// - the certificate request (PKCS #10, RFC 2986),
// - the self-signed certificate that answers a tls-alpn-01 challenge (RFC 8737).
//
// Both documents use P-256 keys and name their hosts in the extension subjectAltName. der.ts encodes the bytes.
import type { KeyObject } from 'node:crypto';
import { crypto } from '../../base/builtins.ts';
import type { PemPair } from '../pair.ts';
import type { SecureChallenge } from '../serve/secure-state.ts';
import {
  bitString,
  boolean,
  explicit,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
  set,
  time,
  utf8String,
} from './der.ts';

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const COMMON_NAME = '2.5.4.3';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
/** The extension id-pe-acmeIdentifier (RFC 8737, section 6.1). */
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const DAY = 86_400_000;

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export function createKeyPair(): KeyPair {
  return crypto().generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/**
 * Creates a certificate request, in DER form. The subject is empty, because a directory (an ACME server) reads only the
 * names in the extension.
 */
export function createCertificateRequest(domains: readonly string[], { privateKey, publicKey }: KeyPair): Buffer {
  const extensions = sequence(oid(EXTENSION_REQUEST), set(sequence(subjectAltName(domains))));
  const [version, subject] = [integer(Buffer.of(0)), sequence()];
  return sign(sequence(version, subject, publicKeyInfo(publicKey), explicit(0, extensions)), privateKey);
}

/**
 * @param keyAuthorization the answer to the challenge. The certificate contains the digest of this answer, which proves
 *   that this service serves `domain`.
 */
export function createChallengeCertificate(domain: string, keyAuthorization: string): SecureChallenge {
  const digest = crypto().createHash('sha256').update(keyAuthorization).digest();
  const extensions = [sequence(oid(ACME_IDENTIFIER), boolean(true), octetString(octetString(digest)))];
  const keys = createKeyPair();
  return { domain, ...createSelfSigned({ domains: [domain], extensions, keys, now: Date.now(), days: 7 }) };
}

export interface SelfSigned {
  readonly domains: readonly string[];
  /** Further extensions in DER form, besides the extension with the names. */
  readonly extensions?: readonly Uint8Array[];
  readonly keys: KeyPair;
  /** The current time in Unix milliseconds. The certificate is valid from one day earlier, because clocks differ. */
  readonly now: number;
  readonly days: number;
}

export function createSelfSigned({ domains, extensions = [], keys, now, days }: SelfSigned): PemPair {
  const serial = crypto().randomBytes(16);
  // Each certificate gets a name of its own, because a program that trusts two of them distinguishes them by name.
  const name = sequence(set(sequence(oid(COMMON_NAME), utf8String(`gatefold ${serial.toString('hex', 0, 4)}`))));
  const certificate = sign(
    sequence(
      explicit(0, integer(Buffer.of(2))),
      integer(serial),
      algorithm(),
      name,
      sequence(time(new Date(now - DAY)), time(new Date(now + days * DAY))),
      name,
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

/** Returns the content with its signature. */
function sign(content: Buffer, privateKey: KeyObject): Buffer {
  return sequence(content, algorithm(), bitString(crypto().sign('sha256', content, privateKey)));
}

function algorithm(): Buffer {
  return sequence(oid(ECDSA_WITH_SHA256));
}

/** Encodes the public key as SubjectPublicKeyInfo (RFC 5280, section 4.1). */
function publicKeyInfo(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** Encodes the extension with the host names. A host name (dNSName) is `[2] IA5String` (RFC 5280, section 4.2.1.6). */
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

// Creates the two signed documents that an order needs: the certificate request (PKCS #10, RFC 2986), and the
// self-signed certificate that answers a tls-alpn-01 challenge (RFC 8737).
import type { KeyObject } from 'node:crypto';
import { crypto } from '../../../base/builtins.ts';
import type { PemPair } from '../pair.ts';
import type { SecureChallenge } from '../serve/secure-state.ts';
import * as der from './der.ts';

/** The algorithm of all signatures here: ECDSA with SHA-256. */
const SIGNATURE_ALGORITHM = der.sequence(der.oid('1.2.840.10045.4.3.2'));
const COMMON_NAME = '2.5.4.3';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
/** The extension id-pe-acmeIdentifier (RFC 8737, section 6.1). */
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const DAY = 86_400_000;

type KeyPair = ReturnType<typeof createKeyPair>;

/**
 * The keys are read from bytes. Keys that Node 20 itself returns share a lock with the job that has made them. When the
 * garbage collector removes this job during an export as JWK, the process waits for itself, and never ends.
 */
export function createKeyPair() {
  const { generateKeyPairSync, createPrivateKey, createPublicKey } = crypto();
  const pkcs8 = { type: 'pkcs8', format: 'der' } as const;
  const spki = { type: 'spki', format: 'der' } as const;
  const made = generateKeyPairSync('ec', { namedCurve: 'P-256', publicKeyEncoding: spki, privateKeyEncoding: pkcs8 });
  return {
    privateKey: createPrivateKey({ key: made.privateKey, ...pkcs8 }),
    publicKey: createPublicKey({ key: made.publicKey, ...spki }),
  };
}

/** Returns DER. The subject is empty, because a directory (an ACME server) reads only the names in the extension. */
export function createCertificateRequest(domains: readonly string[], keys: KeyPair): Buffer {
  const [version, subject] = [der.integer(Buffer.of(0)), der.sequence()];
  const attribute = der.sequence(der.oid(EXTENSION_REQUEST), der.set(der.sequence(subjectAltName(domains))));
  // The attributes are `[0] IMPLICIT SET`. A set with one attribute has the same bytes as `[0] EXPLICIT` around it.
  const attributes = der.explicit(0, attribute);
  return appendSignature(der.sequence(version, subject, publicKeyInfo(keys.publicKey), attributes), keys.privateKey);
}

/** @param keyAuthorization the answer to the challenge, whose digest proves that this service serves `domain` */
export function createChallengeCertificate(domain: string, keyAuthorization: string): SecureChallenge {
  const digest = crypto().createHash('sha256').update(keyAuthorization).digest();
  // The extension is critical (`TRUE`). The value of every extension is an octet string, and here it contains another.
  const extensions = [der.sequence(der.oid(ACME_IDENTIFIER), der.TRUE, der.octetString(der.octetString(digest)))];
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
  const name = der.sequence(
    der.set(der.sequence(der.oid(COMMON_NAME), der.utf8String(`gatefold ${serial.toString('hex', 0, 4)}`))),
  );
  const version3 = der.integer(Buffer.of(2));
  const certificate = appendSignature(
    der.sequence(
      der.explicit(0, version3),
      der.integer(serial),
      SIGNATURE_ALGORITHM,
      name, // of the issuer
      der.sequence(der.time(new Date(now - DAY)), der.time(new Date(now + days * DAY))),
      name, // of the subject
      publicKeyInfo(keys.publicKey),
      der.explicit(3, der.sequence(subjectAltName(domains), ...extensions)),
    ),
    keys.privateKey,
  );
  return {
    cert: pem('CERTIFICATE', certificate),
    key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function appendSignature(content: Buffer, privateKey: KeyObject): Buffer {
  return der.sequence(content, SIGNATURE_ALGORITHM, der.bitString(crypto().sign('sha256', content, privateKey)));
}

/** Encodes the public key as SubjectPublicKeyInfo (RFC 5280, section 4.1). */
function publicKeyInfo(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** Encodes the extension with the host names: `[2] IA5String` (RFC 5280, 4.2.1.6). DOMAINS refuses IP addresses. */
function subjectAltName(domains: readonly string[]): Buffer {
  return der.sequence(
    der.oid(SUBJECT_ALT_NAME),
    der.octetString(der.sequence(...domains.map((domain) => der.implicit(2, Buffer.from(domain, 'latin1'))))),
  );
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

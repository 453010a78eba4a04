// Keys and tokens for tests of identity. The independent library jose signs most tokens; tokens that jose refuses to
// make are signed by hand. Also a server on loopback that sends a fixed key set and counts the requests.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CompactSign } from 'jose';

export type Json = Record<string, unknown>;

export interface TestKey {
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public key, as a provider publishes it. */
  readonly jwk: Json;
}

export function makeKey(
  alg: string,
  kid: string | undefined = alg,
  modulusLength = 2048,
  publicExponent = 65_537,
): TestKey {
  const { privateKey, publicKey } = generatePair(alg, modulusLength, publicExponent);
  const jwk: Json = { ...publicKey.export({ format: 'jwk' }), alg, use: 'sig' };
  return { alg, privateKey, publicKey, jwk: kid === undefined ? jwk : { ...jwk, kid } };
}

/** Returns the key under another name. A new RSA key would take a fifth of a second. */
export function withKid(key: TestKey, kid: string, alg = key.alg): TestKey {
  return { ...key, alg, jwk: { ...key.jwk, kid, alg } };
}

const ENCODINGS = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

function generatePair(
  alg: string,
  modulusLength: number,
  publicExponent: number,
): { privateKey: KeyObject; publicKey: KeyObject } {
  // On Node 20 a key that is not read from a text can hang the process during its export as JWK: see createKeyPair.
  const { privateKey, publicKey } = generateTexts(alg, modulusLength, publicExponent);
  return { privateKey: createPrivateKey(privateKey), publicKey: createPublicKey(publicKey) };
}

function generateTexts(alg: string, modulusLength: number, publicExponent: number) {
  if (alg.startsWith('Ed')) return generateKeyPairSync('ed25519', ENCODINGS);
  if (!alg.startsWith('ES')) return generateKeyPairSync('rsa', { modulusLength, publicExponent, ...ENCODINGS });
  const namedCurve = { ES256: 'P-256', ES384: 'P-384' }[alg] ?? 'P-521';
  return generateKeyPairSync('ec', { namedCurve, ...ENCODINGS });
}

export function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

/** Signs a token by jose. */
export function signByJose(key: TestKey, claims: unknown, header: Json = {}): Promise<string> {
  const protectedHeader = { alg: key.alg, kid: key.jwk.kid as string, typ: 'JWT', ...header };
  return new CompactSign(Buffer.from(JSON.stringify(claims))).setProtectedHeader(protectedHeader).sign(key.privateKey);
}

/**
 * Signs a token by hand with RS256 or ES256, whatever its header says. A header or payload that is a text is encoded
 * unchanged.
 */
export function signByHand(key: TestKey, header: unknown, claims: unknown): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signText(key, input)}`;
}

export function signText({ alg, privateKey }: TestKey, input: string): string {
  const options = alg.startsWith('ES') ? { key: privateKey, dsaEncoding: 'ieee-p1363' as const } : { key: privateKey };
  return sign('sha256', Buffer.from(input), options).toString('base64url');
}

export interface CountingServer {
  readonly url: string;
  readonly requests: string[];
  answer: (path: string) => unknown;
  close(): Promise<void>;
}

/** Starts a server that answers every path with JSON and records the path. */
export async function startCountingServer(answer: (path: string) => unknown): Promise<CountingServer> {
  const server = createServer((request, response) => {
    counting.requests.push(request.url ?? '');
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(counting.answer(request.url ?? '')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const counting: CountingServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return counting;
}

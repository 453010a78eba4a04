// Keys and tokens for the identity tests: signed by an independent library (jose) where it lets us, by hand where it
// refuses to make what an attacker makes. And a static key set on loopback that counts who asks.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CompactSign } from 'jose';

export type Json = Record<string, unknown>;

export interface TestKey {
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public half, as a provider publishes it. */
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

function generatePair(
  alg: string,
  modulusLength: number,
  publicExponent: number,
): { privateKey: KeyObject; publicKey: KeyObject } {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519');
  if (alg.startsWith('ES'))
    return generateKeyPairSync('ec', { namedCurve: { ES256: 'P-256', ES384: 'P-384' }[alg] ?? 'P-521' });
  return generateKeyPairSync('rsa', { modulusLength, publicExponent });
}

export function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

/** Signed by jose. */
export function signByJose(key: TestKey, claims: unknown, header: Json = {}): Promise<string> {
  const protectedHeader = { alg: key.alg, kid: key.jwk.kid as string, typ: 'JWT', ...header };
  return new CompactSign(Buffer.from(JSON.stringify(claims))).setProtectedHeader(protectedHeader).sign(key.privateKey);
}

/**
 * Signed by hand, RS256 or ES256, whatever the header says; header and payload may be texts, to be encoded as they are.
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

/** Answers every path with JSON and remembers it. */
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

// Loads modules of Node with `require`, and only those that the settings need. `import` reads every export, and two
// that no process needs are slow: Web Crypto in node:crypto, and WebSocket in node:http. For the latter, Node 22 and
// later load a whole HTTP client, which costs 40 ms and 12 MB a process.
import type * as Crypto from 'node:crypto';
import type * as Http from 'node:http';
import type * as Https from 'node:https';
import { createRequire } from 'node:module';
import type * as Tls from 'node:tls';
import type * as Util from 'node:util';
import type * as Zlib from 'node:zlib';

const require = createRequire(import.meta.url);
export const http: typeof Http = require('node:http');

export const { createServer, IncomingMessage, METHODS, ServerResponse, STATUS_CODES } = http;
export const { validateHeaderName, validateHeaderValue } = http;

let loadedCrypto: typeof Crypto | undefined;

/** Loads node:crypto on first use. The load takes 7 ms, and a service without credentials never needs node:crypto. */
export function crypto(): typeof Crypto {
  loadedCrypto ??= require('node:crypto') as typeof Crypto;
  return loadedCrypto;
}

/** Hashes with `crypto.hash` of Node 20.12 and later, or else with a Hash object, which takes three times as long. */
export function hash(algorithm: string, data: string | Buffer, encoding: 'latin1' | 'base64url' | 'hex'): string {
  const { hash: hashOnce, createHash } = crypto();
  return hashOnce === undefined
    ? createHash(algorithm).update(data).digest(encoding)
    : hashOnce(algorithm, data, encoding);
}

export const zlib = (): typeof Zlib => require('node:zlib');

export const util = (): typeof Util => require('node:util');

/** An `import` of node:tls would read all root certificates. */
export const tls = (): typeof Tls => require('node:tls');

export const https = (): typeof Https => require('node:https');

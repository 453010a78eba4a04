// Modules of Node that are had by `require`. An `import` asks for each of their exports, and some of those are dear on
// Node 22 and later: node:http has WebSocket, for which Node loads its whole HTTP client (40 ms and 12 MB a process);
// node:crypto has the whole of Web Crypto. Each process of the service would pay for what none uses.
import type * as Crypto from 'node:crypto';
import type * as Http from 'node:http';
import type * as Https from 'node:https';
import { createRequire } from 'node:module';
import type * as Tls from 'node:tls';
import type * as Util from 'node:util';
import type * as Zlib from 'node:zlib';

const require = createRequire(import.meta.url);
const http: typeof Http = require('node:http');

export const { createServer, IncomingMessage, METHODS, STATUS_CODES, validateHeaderName, validateHeaderValue } = http;

let loadedCrypto: typeof Crypto | undefined;

/** Loaded by the first secret: 7 ms of a start that has neither a registered application nor a session key. */
export function crypto(): typeof Crypto {
  loadedCrypto ??= require('node:crypto') as typeof Crypto;
  return loadedCrypto;
}

/** `crypto.hash` (Node 20.12 and later) costs a third of a Hash object. */
export function hash(algorithm: string, data: string | Buffer, encoding: 'latin1' | 'base64url'): string {
  const { hash, createHash } = crypto();
  return hash === undefined ? createHash(algorithm).update(data).digest(encoding) : hash(algorithm, data, encoding);
}

/** Loaded by the first compressed body. */
export function zlib(): typeof Zlib {
  return require('node:zlib');
}

/** An `import` of node:util would have the modules behind each of its exports read. */
export function util(): typeof Util {
  return require('node:util');
}

/** Loaded where TLS_CERT or DOMAINS is set. An `import` of node:tls would have all root certificates read. */
export function tls(): typeof Tls {
  return require('node:tls');
}

/** Loaded where TLS_CERT or DOMAINS is set. */
export function https(): typeof Https {
  return require('node:https');
}

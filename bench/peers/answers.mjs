// The answers of all peers: the same bytes and the same number of header fields as Gatefold's. check.mjs compares the
// answers of all servers. Also the line by which a peer announces its port.

import { readFileSync } from 'node:fs';

/** The header fields of every answer. The request id is a process prefix and a counter, as in Gatefold. */
const COMMON = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS',
  'Access-Control-Allow-Headers': '*, Authorization',
  'X-Content-Type-Options': 'nosniff',
};
const TYPE = 'application/json; charset=UTF-8';

const prefix = `${process.pid.toString(36)}-${Date.now().toString(36)}-`;
let count = 0;

export function nextRequestId() {
  return prefix + (++count).toString(36);
}

/** @param {string} id */
export function answerHeaders(id) {
  return { 'Content-Type': TYPE, ...COMMON, 'Access-Control-Expose-Headers': '*', 'X-Request-Id': id };
}

/** @param {string} id */
export function errorHeaders(id) {
  return { ...answerHeaders(id), 'Cache-Control': 'no-store' };
}

/** @param {string} id */
export function preflightHeaders(id) {
  return { ...COMMON, 'Access-Control-Max-Age': '86400', 'X-Request-Id': id, 'Content-Length': '0' };
}

/** Stands for a query of a database: a promise that is fulfilled in a later turn of the event loop. */
export function nextTurn() {
  return new Promise((resolve) => setImmediate(resolve));
}

export function indexAnswer() {
  return { status: 'success', message: 'Hello', timestamp: Math.floor(Date.now() / 1000), greeting: 'Hello, world' };
}

/**
 * @param {unknown} data
 * @param {string} id
 */
export function createdAnswer(data, id) {
  return { data, params: { page: 'test', method: 'created', verb: 'POST', slugs: [], query: {}, requestId: id } };
}

/** @param {string} id */
export function notFoundAnswer(id) {
  return {
    status: 'error',
    error_code: 'GROUP_NOT_FOUND',
    message: 'There is no such handler group',
    timestamp: Math.floor(Date.now() / 1000),
    request_id: id,
  };
}

/** The key and the certificate of a peer that speaks HTTPS; undefined for all others. */
export const tlsPair =
  process.env.TLS_CERT && process.env.TLS_KEY
    ? { cert: readFileSync(process.env.TLS_CERT), key: readFileSync(process.env.TLS_KEY) }
    : undefined;

/** @type {import('node:net').ListenOptions} The port is the one asked for, else any free one; loopback only. */
export const listenOptions = { port: Number(process.env.PORT ?? 0), host: '127.0.0.1' };

/** Prints the line for which servers.mjs waits. @param {import('node:net').AddressInfo | string | null} address */
export function announce(address) {
  if (address === null || typeof address === 'string') throw new Error(`No TCP address: ${address}`);
  process.stdout.write(
    `peer listening on ${tlsPair === undefined ? 'http' : 'https'}://${address.address}:${address.port}\n`,
  );
}

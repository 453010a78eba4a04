// The requests that the servers get, and the answers that they must give. One row is a request, or a list of requests
// that are sent in turn.
import { credentials, groupNames } from './fixtures.mjs';
import { MANY_GROUPS, MANY_ROWS } from './servers.mjs';

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string=} body
 * @property {number} status that the answer must have
 * @property {string=} greeting replaces the `Hello, world` of bare's answer, with the same length
 */

/** The number of different requests in a list: more than a cache of resolved routes should hold. */
const SPREAD = 1000;

/** @type {Request} */
const get = { method: 'GET', path: '/api/test', headers: {}, status: 200 };

/** @type {Record<string, () => Request[]>} */
export const REQUESTS = {
  get: () => [get],
  post: () => [{ ...get, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: jsonOfSize(1024) }],
  awaited: () => [{ ...get, path: '/api/test/awaited' }],
  later: () => [{ ...get, path: '/api/test/later' }],
  reply: () => [{ ...get, path: '/api/test/reply', status: 201 }],
  checkedPost: () => [
    {
      ...get,
      method: 'POST',
      path: '/api/order',
      headers: { 'Content-Type': 'application/json' },
      body: orderOfSize(1024),
    },
  ],
  checkedQuery: () => [{ ...get, path: '/api/order?page=2&size=50&vip=true&ratio=0.5' }],
  notFound: () => [{ ...get, path: '/api/nosuch', status: 404 }],
  preflight: () => [
    {
      ...get,
      method: 'OPTIONS',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type',
      },
    },
  ],
  // Chrome sends these for a cross-origin fetch. The load generator adds Host, the eleventh.
  browser: () => [
    {
      ...get,
      headers: {
        Connection: 'keep-alive',
        'sec-ch-ua': '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
        'sec-ch-ua-mobile': '?0',
        'sec-ch-ua-platform': '"Linux"',
        'User-Agent':
          'Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
        Accept: 'application/json',
        Origin: 'https://app.example',
        Referer: 'https://app.example/',
        'Accept-Encoding': 'gzip, deflate, br, zstd',
        'Accept-Language': 'en-GB,en;q=0.9,de;q=0.8',
      },
    },
  ],
  close: () => [{ ...get, headers: { Connection: 'close' } }],
  tokenOfOne: () => [withToken(credentials(1).tokens[0])],
  tokenOfMany: () => [withToken(credentials(MANY_ROWS).tokens[MANY_ROWS / 2])],
  tokensOfMany: () => spread(credentials(MANY_ROWS).tokens).map(withToken),
  groupsOfMany: () => spread(groupNames(MANY_GROUPS)).map((name) => ({ ...get, path: `/api/${name}` })),
};

/** @param {string} token @returns {Request} */
function withToken(token) {
  return { ...get, headers: { Authorization: `Bearer ${token}` }, greeting: 'Hello, token' };
}

/** @template T @param {readonly T[]} all */
function spread(all) {
  return Array.from({ length: SPREAD }, (_, i) => all[Math.floor((i * all.length) / SPREAD)]);
}

/** Returns an order with 12 fields to check, some of them in a list. @param {number} bytes */
function orderOfSize(bytes) {
  const customer = { name: 'A. Customer', email: 'a.customer@example.com', country: 'NL', vip: false };
  const lines = Array.from({ length: 8 }, (_, i) => ({
    sku: `SKU-${1000 + i}`,
    quantity: i + 1,
    price: 9.99 + i,
    tags: ['new', 'blue'],
  }));
  const order = { customer, address: { street: 'Canal 1', zip: '1000 AA' }, lines, note: '' };
  order.note = 'n'.repeat(bytes - JSON.stringify(order).length);
  return JSON.stringify(order);
}

/** Returns an order as a shop might post it, padded to exactly `bytes`. @param {number} bytes */
function jsonOfSize(bytes) {
  const lines = Array.from({ length: 8 }, (_, i) => ({
    sku: `SKU-${1000 + i}`,
    quantity: i + 1,
    price: 9.99 + i,
    tags: ['new', 'blue'],
  }));
  const order = { customer: { name: 'A. Customer', country: 'NL', vip: false }, lines, note: '' };
  order.note = 'n'.repeat(bytes - JSON.stringify(order).length);
  return JSON.stringify(order);
}

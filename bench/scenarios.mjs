// The scenarios that are measured: one row each, and in it one row for each server with its request and its goal. Every
// scenario includes the bare Node server twice, which shows the noise.

/**
 * @typedef {import('./servers.mjs').ServerName} ServerName
 *
 * @typedef {object} Goal CPU time a request, unless it says throughput
 * @property {string=} over the entry (by its key) that it is compared with; default: bare
 * @property {number=} atMost times that of `over`
 * @property {number=} extraMicroseconds at most that much more than `over`
 * @property {number=} throughputAtLeast times that of `over`
 *
 * @typedef {object} Entry
 * @property {string} key
 * @property {ServerName} server
 * @property {string} request
 * @property {string=} note
 * @property {Goal=} goal
 *
 * @typedef {{ name: string, title: string, request: string, bare?: ServerName, entries: Entry[] }} Scenario `bare`: the server that all are compared with; default: bare
 */

/** @type {ServerName[]} */
const PEERS = ['fastify', 'h3', 'hono', 'koa', 'express'];

/** @type {Scenario[]} */
export const SCENARIOS = [
  field('get', 'GET', 'get', { off: 0.95, on: 1 }),
  field('post', 'POST of 1 KB', 'post', { off: 1, on: 1.05 }),
  field('404', 'unknown group', 'notFound', { off: 1 }),
  field('preflight', 'preflight', 'preflight', { off: 1 }),
  field('browser', '11 headers', 'browser', {}),
  field('close', 'a connection each', 'close', { off: 1 }),
  gatefold('awaited', 'an operation that waits for a turn', [
    { key: 'off', server: 'gatefold', request: 'awaited' },
    { key: 'on', server: 'gatefoldLines', request: 'awaited' },
    { key: 'fastify', server: 'fastify', request: 'awaited' },
    { key: 'hono', server: 'hono', request: 'awaited' },
  ]),
  gatefold('reply', 'a Reply', [{ key: 'off', server: 'gatefold', request: 'reply', goal: { atMost: 1.03 } }]),
  secure('tls', 'GET by TLS', 'get', { off: 1 }),
  secure('handshake', 'a TLS handshake each', 'close', { off: 1.05 }),
  checked('check', 'checked POST of 1 KB', 'checkedPost', 1.12),
  checked('query', 'checked query', 'checkedQuery', 1.08),
  gatefold('sdk', 'SDK mode', [
    { key: 'plain', server: 'gatefold', request: 'get', note: 'no token' },
    { key: 'one', server: 'gatefoldOneRow', request: 'tokenOfOne', goal: { over: 'plain', extraMicroseconds: 10 } },
    { key: 'many', server: 'gatefoldManyRows', request: 'tokenOfMany', goal: { over: 'one', atMost: 1.03 } },
    { key: 'turns', server: 'gatefoldManyRows', request: 'tokensOfMany', note: '1,000 tokens in turn' },
  ]),
  gatefold('groups', 'many groups', [
    { key: 'one', server: 'gatefold', request: 'get', note: '2 groups' },
    { key: 'many', server: 'gatefoldManyGroups', request: 'get', goal: { over: 'one', atMost: 1.03 } },
    { key: 'turns', server: 'gatefoldManyGroups', request: 'groupsOfMany', note: '1,000 groups in turn' },
  ]),
  gatefold('workers', 'two workers', [
    { key: 'one', server: 'gatefold', request: 'get' },
    { key: 'two', server: 'gatefoldTwoWorkers', request: 'get', goal: { over: 'one', throughputAtLeast: 1.8 } },
  ]),
];

/**
 * Returns the scenario with the other build of Gatefold in the place of bare.
 *
 * @param {Scenario} scenario
 * @returns {Scenario}
 */
export function besideOther(scenario) {
  const { request } = scenario;
  const own = scenario.entries.filter(({ server }) => server === 'gatefold').slice(0, 1);
  return {
    ...scenario,
    bare: 'other',
    entries: [
      { key: 'noise', server: 'otherAgain', request },
      ...own.map((entry) => ({ ...entry, goal: { atMost: 1.02 } })),
    ],
  };
}

/**
 * Compares all servers on one request.
 *
 * @param {string} name
 * @param {string} title
 * @param {string} request
 * @param {{ off?: number, on?: number }} atMost Gatefold's goals over bare, request lines off and on
 * @returns {Scenario}
 */
function field(name, title, request, atMost) {
  /** @param {number | undefined} limit @returns {Pick<Entry, 'goal'>} */
  const goal = (limit) => (limit === undefined ? {} : { goal: { atMost: limit } });
  return gatefold(name, title, [
    { key: 'off', server: 'gatefold', request, ...goal(atMost.off) },
    { key: 'on', server: 'gatefoldLines', request, ...goal(atMost.on) },
    ...PEERS.map((server) => ({ key: server, server, request })),
  ]);
}

/**
 * Compares servers over HTTPS. All have the same certificate, so the differences are outside of OpenSSL.
 *
 * @param {string} name
 * @param {string} title
 * @param {string} request
 * @param {{ off: number }} atMost Gatefold's goal over bare node:https
 * @returns {Scenario}
 */
function secure(name, title, request, { off }) {
  return {
    name,
    title,
    request,
    bare: 'bareTls',
    entries: [
      { key: 'noise', server: 'bareTlsAgain', request },
      { key: 'off', server: 'gatefoldTls', request, goal: { atMost: off } },
      { key: 'on', server: 'gatefoldTlsLines', request },
      { key: 'fastify', server: 'fastifyTls', request },
      { key: 'nginx', server: 'nginxTls', request },
    ],
  };
}

/**
 * Compares servers that check the request: Gatefold by types, Fastify by JSON Schema (ajv), Hono by zod.
 *
 * @param {string} name
 * @param {string} title
 * @param {string} request
 * @param {number} atMost
 * @returns {Scenario}
 */
function checked(name, title, request, atMost) {
  return gatefold(name, title, [
    { key: 'typed', server: 'gatefoldTyped', request, goal: { atMost } },
    { key: 'fastify', server: 'fastify', request, note: 'ajv' },
    { key: 'hono', server: 'hono', request, note: 'zod' },
  ]);
}

/**
 * @param {string} name
 * @param {string} title
 * @param {Entry[]} entries
 * @returns {Scenario}
 */
function gatefold(name, title, entries) {
  const request = entries[0].request;
  return { name, title, request, entries: [{ key: 'noise', server: 'bareAgain', request }, ...entries] };
}

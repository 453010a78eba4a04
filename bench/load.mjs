// Sends one burst of load to one port, by wrk where it is installed, else by autocannon. Both return the same facts. A
// burst with a failed request is an error and gives no figure.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { scratch } from './fixtures.mjs';
import { startProcess } from './processes.mjs';

/**
 * @typedef {import('./requests.mjs').Request} Request
 *
 * @typedef {object} Burst
 * @property {number} port
 * @property {boolean=} secure by HTTPS
 * @property {Request[]} requests sent in turn
 * @property {number} seconds a whole number
 * @property {number} connections
 *
 * @typedef {object} Load
 * @property {number} answered requests
 * @property {number} perSecond
 * @property {number} p99 milliseconds
 *
 * @typedef {{ answered: number, seconds: number, p99: number, refused: number, failed: number }} Outcome
 */

/** @type {Record<string, (burst: Burst) => Promise<Outcome>>} */
export const GENERATORS = { wrk: wrkBurst, autocannon: autocannonBurst };

export function installedGenerator() {
  return spawnSync('wrk', ['-v']).error === undefined ? 'wrk' : 'autocannon';
}

/**
 * @param {string} generator
 * @param {Burst} burst
 * @returns {Promise<Load>}
 */
export async function runBurst(generator, burst) {
  const { answered, seconds, p99, refused, failed } = await GENERATORS[generator](burst);
  const expected = burst.requests[0].status >= 400 ? answered : 0;
  if (answered === 0 || failed > 0 || refused !== expected) {
    throw new Error(
      `Cannot use a burst on ${burst.requests[0].path}: ${answered} answers, ${refused} with a status of 400 or more, ${failed} failures`,
    );
  }
  return { answered, perSecond: answered / seconds, p99 };
}

/** @param {Burst} burst @returns {Promise<Outcome>} */
async function wrkBurst({ port, secure, requests, seconds, connections }) {
  const args = [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '5s',
    '-s',
    wrkScript(requests),
    originOf(port, secure),
  ];
  const child = startProcess('wrk', args, {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  const code = await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject));
  const line = output.split('\n').find((text) => text.startsWith('{'));
  if (code !== 0 || line === undefined) throw new Error(`Cannot run wrk: it ended with ${code}`);
  return JSON.parse(line);
}

/**
 * Returns the URL of a server. Neither generator verifies the certificate.
 *
 * @param {number} port
 * @param {boolean=} secure
 */
function originOf(port, secure) {
  return `${secure ? 'https' : 'http'}://127.0.0.1:${port}`;
}

/** @type {Map<Request[], string>} */
const scripts = new Map();

/** Returns the Lua script of a list of requests, which is written once. @param {Request[]} requests */
function wrkScript(requests) {
  const known = scripts.get(requests);
  if (known !== undefined) return known;
  const file = join(scratch, `wrk-${scripts.size}.lua`);
  writeFileSync(file, `${requests.length === 1 ? oneRequest(requests[0]) : turns(requests)}${LUA_DONE}`);
  scripts.set(requests, file);
  return file;
}

/** @param {Request} request */
function oneRequest({ method, path, headers, body }) {
  return `wrk.method = ${lua(method)}
wrk.path = ${lua(path)}
wrk.headers = ${luaTable(headers)}
wrk.body = ${body === undefined ? 'nil' : lua(body)}
`;
}

/**
 * Formats all requests before the burst begins, so that a list does not slow the generator.
 *
 * @param {Request[]} requests
 */
function turns(requests) {
  const rows = requests.map(({ method, path, headers }) => `  {${lua(method)}, ${lua(path)}, ${luaTable(headers)}},\n`);
  return `local rows = {
${rows.join('')}}
local texts, at = {}, 0
function init()
  for i, row in ipairs(rows) do
    row[3].Host = wrk.headers.Host
    texts[i] = wrk.format(row[1], row[2], row[3])
  end
end
function request()
  at = at % #texts + 1
  return texts[at]
end
`;
}

const LUA_DONE = `function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"answered":%d,"seconds":%f,"p99":%f,"refused":%d,"failed":%d}\\n', summary.requests,
    summary.duration / 1e6, latency:percentile(99) / 1e3, e.status, e.connect + e.read + e.write + e.timeout))
end
`;

/** Quotes a text for Lua, which has JSON's escapes for printable ASCII. @param {string} text */
function lua(text) {
  if (!/^[\x20-\x7e]*$/.test(text)) throw new Error('Cannot write a Lua string: only printable ASCII is handled');
  return JSON.stringify(text);
}

/** @param {Record<string, string>} headers */
function luaTable(headers) {
  return `{${Object.entries(headers)
    .map(([name, value]) => `[${lua(name)}] = ${lua(value)}`)
    .join(', ')}}`;
}

/** @param {Burst} burst @returns {Promise<Outcome>} */
async function autocannonBurst({ port, secure, requests, seconds, connections }) {
  const { default: autocannon } = await import('autocannon');
  const result = await autocannon({
    url: originOf(port, secure),
    connections,
    duration: seconds,
    requests: requests.map(({ method, path, headers, body }) => ({ method, path, headers, body })),
  });
  return {
    answered: result['2xx'] + result.non2xx,
    seconds: result.duration,
    p99: result.latency.p99,
    refused: result.non2xx,
    failed: result.errors + result.timeouts,
  };
}

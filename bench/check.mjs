// Checks before a measurement that all servers give the same answer: status, body and header fields. The time and the
// request id may differ. A server that answered less would look faster.
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

/** @typedef {import('./requests.mjs').Request} Request */

/** Header fields that Node (for its keep-alive timeout) and nginx add. No handler writes them. */
const OF_THE_CONNECTION = ['date', 'connection', 'keep-alive', 'server'];

/** The number of requests that are checked from the start of a list. */
const CHECKED = 3;

/**
 * @param {{ label: string, port: number, secure: boolean, requests: Request[] }} server
 * @param {{ port: number, secure: boolean, requests: Request[] }} bare
 * @param {boolean} isOtherBuild whether `bare` is another build of Gatefold, whose header fields may differ
 */
export async function checkAnswers({ label, port, secure, requests }, bare, isOtherBuild) {
  for (const request of requests.slice(0, CHECKED)) {
    const expected = normalise(await ask(bare.port, bare.requests[0], bare.secure), 'Hello, world');
    const actual = normalise(await ask(port, request, secure), request.greeting ?? 'Hello, world');
    if (isOtherBuild) actual.fields = expected.fields;
    const wrong = difference(actual, expected, request);
    if (wrong !== undefined) throw new Error(`Cannot compare ${label} (${request.method} ${request.path}): ${wrong}`);
  }
}

/** @typedef {{ status: number, headers: Record<string, string | string[] | undefined>, body: string }} Answer */

/**
 * @param {number} port
 * @param {Request} request
 * @param {boolean} [secure]
 * @returns {Promise<Answer>}
 */
export function ask(port, { method, path, headers, body }, secure = false) {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? undefined : { 'Content-Length': Buffer.byteLength(body) };
    const options = {
      host: '127.0.0.1',
      port,
      method,
      path,
      headers: { ...headers, ...length },
      agent: false,
      rejectUnauthorized: false,
    };
    const sent = (secure ? httpsRequest : httpRequest)(options, (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        });
      });
    });
    sent.setTimeout(10_000, () => sent.destroy(new Error(`no answer to ${method} ${path} within 10 s`)));
    sent.on('error', reject);
    sent.end(body);
  });
}

/**
 * @param {Answer} answer
 * @param {string} greeting
 */
function normalise({ status, headers, body }, greeting) {
  const fields = Object.entries(headers)
    .filter(([name]) => !OF_THE_CONNECTION.includes(name))
    .map(
      ([name, value]) =>
        `${name}: ${name === 'x-request-id' ? 'ID' : name === 'content-length' ? 'N' : String(value).toLowerCase()}`,
    );
  const text = body
    .replace(/("request_id"|"requestId"):"[^"]+"/, '$1:"ID"')
    .replace(/"timestamp":\d{10}\b/, '"timestamp":0')
    .replace(`"${greeting}"`, '"GREETING"');
  const length = Number(headers['content-length'] ?? Number.NaN);
  return { status, fields: fields.sort(), text, lengthIsRight: length === Buffer.byteLength(body) };
}

/**
 * @param {ReturnType<typeof normalise>} actual
 * @param {ReturnType<typeof normalise>} expected
 * @param {Request} request
 * @returns {string | undefined}
 */
function difference(actual, expected, request) {
  if (expected.status !== request.status)
    return `bare answers ${expected.status}, the request expects ${request.status}`;
  if (actual.status !== expected.status) return `it answers ${actual.status}, bare ${expected.status}`;
  if (actual.text !== expected.text)
    return `its body is\n  ${actual.text.slice(0, 400)}\nbare's is\n  ${expected.text.slice(0, 400)}`;
  if (!actual.lengthIsRight) return 'its Content-Length is missing or wrong';
  const missing = expected.fields.filter((field) => !actual.fields.includes(field));
  const surplus = actual.fields.filter((field) => !expected.fields.includes(field));
  if (missing.length + surplus.length > 0)
    return `its header lacks [${missing.join('; ')}] and has besides [${surplus.join('; ')}]`;
  return undefined;
}

// The request handler of the bare server, with which all others are compared. It uses only node:http, in its fastest
// way: a flat header array and one `end` for each answer, and `data` and `end` for the body. It compares paths as
// strings.
import { createdAnswer, indexAnswer, nextRequestId, nextTurn, notFoundAnswer } from './answers.mjs';

const TYPE = 'application/json; charset=UTF-8';
const METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS';
const ALLOWED = '*, Authorization';

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
export function serve(request, response) {
  const id = nextRequestId();
  if (request.method === 'OPTIONS') return preflight(response, id);
  if (request.url?.startsWith('/api/order')) return order(request, response, id);
  if (request.url === '/api/test/awaited')
    return void nextTurn().then(() => answer(response, id, JSON.stringify(indexAnswer())));
  if (request.url === '/api/test/reply') return reply(response, id);
  if (request.url !== '/api/test') return notFound(response, id);
  if (request.method === 'GET') return answer(response, id, JSON.stringify(indexAnswer()));
  readBody(request, (text) => answer(response, id, JSON.stringify(createdAnswer(JSON.parse(text), id))));
}

/**
 * Answers the routes whose requests the other servers check. This handler does not check them.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {string} id
 */
function order(request, response, id) {
  if (request.method === 'POST')
    return readBody(request, (text) => answer(response, id, JSON.stringify({ ok: true, data: JSON.parse(text) })));
  const query = new URLSearchParams(request.url?.slice('/api/order?'.length));
  const [page, size, ratio] = ['page', 'size', 'ratio'].map((name) => Number(query.get(name)));
  answer(response, id, JSON.stringify({ page, size, vip: query.get('vip') === 'true', ratio }));
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {(text: string) => void} then
 */
function readBody(request, then) {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const [first] = chunks;
    then((chunks.length === 1 && first ? first : Buffer.concat(chunks)).toString());
  });
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {string} id
 * @param {string} text
 */
function answer(response, id, text) {
  // biome-ignore format: one name and its value a line
  response.writeHead(200, [
    'Content-Type', TYPE,
    'Access-Control-Allow-Origin', '*',
    'Access-Control-Allow-Methods', METHODS,
    'Access-Control-Allow-Headers', ALLOWED,
    'X-Content-Type-Options', 'nosniff',
    'Access-Control-Expose-Headers', '*',
    'X-Request-Id', id,
    'Content-Length', String(Buffer.byteLength(text)),
  ]);
  response.end(text);
}

/**
 * Sends a status of its own and two further header fields.
 *
 * @param {import('node:http').ServerResponse} response
 * @param {string} id
 */
function reply(response, id) {
  const text = JSON.stringify({ id: 7 });
  // biome-ignore format: one name and its value a line
  response.writeHead(201, [
    'Content-Type', TYPE,
    'Access-Control-Allow-Origin', '*',
    'Access-Control-Allow-Methods', METHODS,
    'Access-Control-Allow-Headers', ALLOWED,
    'X-Content-Type-Options', 'nosniff',
    'Access-Control-Expose-Headers', '*',
    'X-Request-Id', id,
    'Location', '/api/test/7',
    'ETag', '"v1"',
    'Content-Length', String(Buffer.byteLength(text)),
  ]);
  response.end(text);
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {string} id
 */
function notFound(response, id) {
  const text = JSON.stringify(notFoundAnswer(id));
  // biome-ignore format: one name and its value a line
  response.writeHead(404, [
    'Content-Type', TYPE,
    'Access-Control-Allow-Origin', '*',
    'Access-Control-Allow-Methods', METHODS,
    'Access-Control-Allow-Headers', ALLOWED,
    'X-Content-Type-Options', 'nosniff',
    'Access-Control-Expose-Headers', '*',
    'X-Request-Id', id,
    'Cache-Control', 'no-store',
    'Content-Length', String(Buffer.byteLength(text)),
  ]);
  response.end(text);
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {string} id
 */
function preflight(response, id) {
  // biome-ignore format: one name and its value a line
  response.writeHead(200, [
    'Access-Control-Allow-Origin', '*',
    'Access-Control-Allow-Methods', METHODS,
    'Access-Control-Allow-Headers', ALLOWED,
    'X-Content-Type-Options', 'nosniff',
    'Access-Control-Max-Age', '86400',
    'X-Request-Id', id,
    'Content-Length', '0',
  ]);
  response.end();
}

// Each answer has `X-Content-Type-Options: nosniff` once, so that no browser guesses another content type. The tests of
// HTTP_PORT and OPS_PORT check the same, and so does `assertEnvelope` for each error.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { makeProject } from '../support/command-bench.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { sendRaw } from '../support/service.ts';

const CONTROLLER = `
  const { Reply, HttpError, eventStream } = await import('${moduleUrl('src/api/controller')}');
  const own = { 'x-Content-Type-options': 'none', 'X-Mine': 'yes' };
  export default class AController {
    index() { return { a: 1 }; }
    created(data) { return data; }
    text() { return 'text'; }
    empty() { return new Reply(204); }
    tagged() { return new Reply(200, { a: 1 }, { ETag: '"a"' }); }
    bytes() { return new Uint8Array([60, 104, 49, 62]); }
    stream() { return new Blob(['<h1>']); }
    events() { return eventStream((async function* () { yield 1; })()); }
    own() { return new Reply(200, { a: 1 }, own); }
    web() { return new Response('<h1>', { headers: own }); }
    redirect() { return Reply.redirect('/api/a'); }
    refused() { throw new HttpError(418, 'TEAPOT', 'No coffee', { headers: own }); }
    broken() { throw new Error('broken'); }
  }`;

const HOST = 'Host: a\r\nConnection: close\r\n';
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`;
const rows: readonly [name: string, request: string, status: number][] = [
  ['JSON', get('/api/a'), 200],
  ['the head of JSON', `HEAD /api/a HTTP/1.1\r\n${HOST}\r\n`, 200],
  ['a string', get('/api/a/text'), 200],
  ['a reply without content', get('/api/a/empty'), 204],
  ['a reply with a tag', get('/api/a/tagged'), 200],
  ['a 304', get('/api/a/tagged', 'If-None-Match: "a"\r\n'), 304],
  ['bytes', get('/api/a/bytes'), 200],
  ['a stream', get('/api/a/stream'), 200],
  ['the head of a stream', `HEAD /api/a/stream HTTP/1.1\r\n${HOST}\r\n`, 200],
  ['an event stream', get('/api/a/events'), 200],
  ['a reply that brings the header itself', get('/api/a/own'), 200],
  ['a web response that brings the header itself', get('/api/a/web'), 200],
  ['a redirect', get('/api/a/redirect'), 302],
  ['a refusal that brings the header itself', get('/api/a/refused'), 418],
  ['a 500', get('/api/a/broken'), 500],
  ['a 404', get('/'), 404],
  ['an absent group', get('/api/b'), 404],
  ['a preflight', `OPTIONS /api/a HTTP/1.1\r\n${HOST}\r\n`, 200],
  ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 200],
  ['the OpenAPI document', get('/api/openapi.json'), 200],
  ['the page of the documentation', get('/api/docs'), 200],
  ['an explicit route', `POST /api/register HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n{}`, 400],
  ['a request that is not HTTP', 'NONSENSE\r\n\r\n', 400],
  ['TLS on the plain port', '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\r\n\r\n', 400],
  ['a head that is too long', get('/api/a', `X: ${'x'.repeat(20_000)}\r\n`), 431],
  ['CONNECT', `CONNECT a:443 HTTP/1.1\r\n${HOST}\r\n`, 405],
  ['an unknown expectation', get('/api/a', 'Expect: more\r\n'), 417],
  ['a malformed chunk', `POST /api/a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nx\r\n`, 400],
];

describe('X-Content-Type-Options: nosniff is sent once', () => {
  const cwd = makeProject({ after }, { 'controllers/AController.mjs': CONTROLLER });
  let api: TestApi;
  before(async () => {
    api = await startTest({ controllers: join(cwd, 'controllers'), expectedErrors: ['request-failed'] });
  });
  after(() => api.close());

  for (const [name, request, status] of rows) {
    test(name, async () => {
      const answer = await sendRaw(api.port, request, Number.POSITIVE_INFINITY);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      const head = answer.slice(0, answer.indexOf('\r\n\r\n'));
      assert.deepEqual(head.match(/^x-content-type-options: .*$/gim), ['X-Content-Type-Options: nosniff']);
      if (/bring/.test(name)) assert.match(head, /^x-mine: yes$/im);
    });
  }

  test('an operation that brings the header itself causes no line in the log', () => {
    assert.equal(
      api.lines.find(({ event }) => event === 'header-dropped'),
      undefined,
    );
  });
});

// `Cache-Control` of an answer to a user whom `authenticate` has found: shared caches keep it for nobody else.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { GATEFOLD, type Service, startService } from '../../support/service.ts';

/** Each row: the body of an operation with `p` for its params, and `Cache-Control` for a user and for nobody. */
const ROWS: Readonly<Record<string, readonly [operation: string, ofUser: string | null, ofNobody: string | null]>> = {
  'an object': ['return {}', 'private', null],
  'an object, beside a header of its own': ["p.setHeader('X-A', '1'); return {}", 'private', null],
  'a Reply': ["return new Reply(201, {}, { 'X-A': '1' })", 'private', null],
  'a Reply without a body': ['return new Reply(204)', 'private', null],
  'a 304': ['return new Reply(200, {}, { ETag: \'"1"\' })', 'private', null],
  'a redirect': ["return Reply.redirect('/')", 'private', null],
  bytes: ['return new Uint8Array(3)', 'private', null],
  'a stream': ["return new Blob(['a']).stream()", 'private', null],
  'a web Response': ["return new Response('x')", 'private', null],
  'a Reply that says it': [
    "return new Reply(200, {}, { 'cache-control': 'public, max-age=9' })",
    'public, max-age=9',
    'public, max-age=9',
  ],
  'an operation that says it': ["p.setHeader('Cache-Control', 'public'); return {}", 'public', 'public'],
  'an event stream': ['return eventStream((async function* () {})())', 'no-store', 'no-store'],
  'a cookie': ["p.setCookie('a', '1'); return {}", 'no-store', 'no-store'],
  'a refusal': ["throw new HttpError(409, 'X', 'x')", 'no-store', 'no-store'],
};

const start = (settings: Readonly<Record<string, string>>) =>
  startService({
    settings,
    expectedErrors: ['request-failed'],
    controllers: {
      'service.mjs': `import { defineService } from '${GATEFOLD}'; export default defineService({
        authenticate: ({ cookies }) => (cookies.session === undefined ? undefined : { id: cookies.session }) });`,
      'XController.mjs': `import { eventStream, HttpError, Reply } from '${GATEFOLD}';
        export default class { ${Object.values(ROWS)
          .map(([operation], i) => `async 'GET r${i}'(_, p) { ${operation} }`)
          .join('\n')} }`,
      'NodeController.mjs': `import { mount } from '${GATEFOLD}';
        export default mount.node((request, response) => {
          if (request.url.endsWith('own')) response.setHeader('cache-control', 'public');
          response.end();
        });`,
      'WebController.mjs': `import { mount } from '${GATEFOLD}'; export default mount(() => new Response('x'));`,
    },
  });
const MOUNTS = { node: ['private', null], 'node/own': ['public', 'public'], web: ['private', null] } as const;

for (const compression of ['off', 'on'] as const)
  describe(`answers to a user, with COMPRESSION=${compression}`, () => {
    let service: Service;
    before(async () => {
      service = await start({ COMPRESSION: compression });
    });
    after(() => service.close());

    const paths = [
      ...Object.entries(ROWS).map(([name, [, ...expected]], i) => [name, `x/r${i}`, expected] as const),
      ...Object.entries(MOUNTS).map(([path, expected]) => [`a mount: ${path}`, path, expected] as const),
    ];
    for (const [name, path, expected] of paths)
      it(name, async () => {
        const found = [];
        for (const headers of [{ Cookie: 'session=ann' }, {}]) {
          const init = { headers: { ...headers, 'If-None-Match': '"1"' }, redirect: 'manual' } as const;
          const response = await fetch(`${service.url}/api/${path}`, init);
          await response.arrayBuffer();
          found.push(response.headers.get('cache-control'));
        }
        assert.deepEqual(found, expected);
      });
  });

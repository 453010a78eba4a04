// `strict: true` of the service file: a group without routes of its own is as strict as one with routes.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeApplication } from '../../support/caller-table.ts';
import { GATEFOLD, type Service, startService } from '../../support/service.ts';

const ECHO = '(data, { method }) { return { method } }';
const SDK = { application: { id: 'sdk', name: 'SDK' }, handler: 'tag', methods: undefined };
let service: Service;
before(async () => {
  service = await startService({
    controllers: {
      'service.mjs': `import { defineService } from '${GATEFOLD}'; export default defineService({ strict: true });`,
      'TagController.mjs': `export default { index${ECHO}, created${ECHO}, find${ECHO} };`,
      'JobController.mjs': `export default { run${ECHO} };`,
    },
    parts: {
      credentials: {
        identify: (text) => (text === 'Bearer sdk' ? { kind: 'row', row: SDK } : makeApplication(text)),
      },
    },
  });
});
after(() => service.close());

const rows: readonly [verb: string, path: string, answer: string, allow?: string][] = [
  ['GET', '/api/tag', 'index'],
  ['HEAD', '/api/tag', '200'],
  ['POST', '/api/tag', 'created'],
  ['POST', '/api/tag/find', 'find'],
  ['GET', '/api/tag/find', '405 METHOD_NOT_ALLOWED', 'POST, OPTIONS'],
  ['POST', '/api/tag/created', '404 ROUTE_NOT_FOUND'],
  ['GET', '/api/tag/what/ever', '404 ROUTE_NOT_FOUND'],
  ['PUT', '/api/tag', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, OPTIONS'],
  ['GET', '/api/job', '405 METHOD_NOT_ALLOWED', 'OPTIONS'],
  ['POST', '/api/job/run', 'run'],
];

async function ask(verb: string, path: string, authorization?: string) {
  const response = await fetch(service.url + path, {
    method: verb,
    headers: authorization === undefined ? {} : { authorization },
  });
  const text = await response.text();
  const { method, error_code: code } = text === '' ? ({} as Record<string, string>) : JSON.parse(text);
  return {
    answer: method ?? [response.status, code].filter(Boolean).join(' '),
    allow: response.headers.get('allow') ?? undefined,
  };
}

describe('a group without routes under strict: true', () => {
  for (const [verb, path, answer, allow] of rows)
    test(`${verb} ${path}: ${answer}`, async () => assert.deepEqual(await ask(verb, path), { answer, allow }));

  test('serves a key with a handler under any path', async () => {
    assert.equal((await ask('GET', '/api/anything/find', 'Bearer sdk')).answer, 'find');
    assert.equal((await ask('GET', '/api/anything/else', 'Bearer sdk')).answer, 'index');
  });
});

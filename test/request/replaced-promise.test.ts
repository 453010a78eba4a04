// A package may replace the global Promise, as zone.js does for Angular. Promises of async functions are then no
// instances of it, and everything that waits for them must still wait.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../support/cluster-client.ts';
import { startService, write } from '../support/cluster-server.ts';

const FILES = {
  'service.js': `import { defineService } from 'gatefold';\nexport default defineService({ results: 'declared' });`,
  'AngularController.js': 'globalThis.Promise = class extends Promise {};\nexport default class { index() {} }',
  'TestController.js': `
import { setTimeout as sleep } from 'node:timers/promises';
const refusal = { issues: [{ message: 'must be known', path: ['name'] }] };
const named = { '~standard': { version: 1, vendor: 'test', async validate() { await null; return refusal; } } };
const shown = { '~standard': { version: 1, vendor: 'test', async validate() { await null; return { value: { a: 1 } }; } } };
export default class {
  static operations = {
    POST: { body: named },
    'GET shown': { result: shown },
    'GET key': { access: 'application' },
  };
  'POST'() { return 'unchecked'; }
  'GET shown'() { return { a: 1, secret: 2 }; }
  'GET key'() { return 'secret'; }
  async 'GET hung'() { await sleep(60_000, undefined, { ref: false }); }
}`,
};

test('with a replaced global Promise, every limit and check holds', async (t) => {
  const service = await startService(t, { files: FILES, env: { WORKERS: '1', OPERATION_TIMEOUT: '1s' } });
  const answers = await Promise.all([
    ask(service.port, '/api/test', 'POST'),
    ask(service.port, '/api/test/shown'),
    ask(service.port, '/api/test/key'),
    ask(service.port, '/api/test/hung'),
  ]);
  assert.deepEqual(
    answers.map(({ status, body }) => [status, /"error_code":"(\w+)"/.exec(body)?.[1] ?? body]),
    [
      [422, 'INVALID_DATA'],
      [200, '{"a":1}'],
      [401, 'CREDENTIAL_REQUIRED'],
      [503, 'OPERATION_TIMEOUT'],
    ],
  );
  write(service.dir, 'NewController.js', 'export default class { index() { return { is: "new" }; } }');
  const { status, body } = await ask(service.port, '/api/new');
  assert.deepEqual([status, body], [200, '{"is":"new"}']);
});

// A callback that throws after the function of an author has returned: the request gets its 500 at once, and does not
// wait for the time limit. The callback is set in another module, so the function itself shows nothing of it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GATEFOLD, parseRaw, type Service, startService } from '../support/service.ts';

const LATER = 'export const later = () => new Promise(() => { setTimeout(() => { throw new Error("late"); }, 1); });';

const SERVICE = `
import { defineService } from '${GATEFOLD}';
import { later } from './lib/later.ts';
export default defineService<{ id: string }>({
  authenticate({ authorization }) { return authorization === 'Token late' ? later() as Promise<undefined> : undefined; },
});
`;

const CONTROLLERS = {
  'lib/later.ts': LATER,
  'service.ts': SERVICE,
  'MethodController.mjs': `
    import { later } from './lib/later.ts';
    export default class {
      static operations = { refused: { access: () => later() } };
      method() { return later() }
      deferred() { return { then: () => void later() } }
      refused() { return {} }
      open() { return {} }
    }`,
  'ObjectController.mjs': `
    import { later } from './lib/later.ts';
    export default { method() { return later() }, arrow: () => later(), bound: later.bind(null) };`,
  'InstanceController.mjs': `
    import { later } from './lib/later.ts';
    export default class {
      helper = { run: later };
      field() { return this.helper.run() }
      replaced() {}
      bound() { return this.field() }
      constructor() { this.bound = this.bound.bind(this); this.replaced = () => later() }
    }`,
  'BeforeController.mjs': `
    import { later } from './lib/later.ts';
    export default class { _before() { return later() } method() { return {} } }`,
  'AfterController.mjs': `
    import { later } from './lib/later.ts';
    export default class { _after() { return later() } method() { return {} } }`,
};

const rows: [name: string, path: string, header?: string][] = [
  ['a method', 'method/method'],
  ['a field of an instance', 'instance/field'],
  ['a field that replaces a method', 'instance/replaced'],
  ['a bound method', 'instance/bound'],
  ['the method `then` of a result', 'method/deferred'],
  ['a method of an object', 'object/method'],
  ['an arrow function of an object', 'object/arrow'],
  ['a bound function of an object', 'object/bound'],
  ['_before', 'before/method'],
  ['_after', 'after/method'],
  ['a function in access', 'method/refused'],
  ['authenticate', 'method/open', 'Authorization: Token late\r\n'],
];

async function start(test: { after(close: () => Promise<void>): void }): Promise<Service> {
  const service = await startService({
    controllers: CONTROLLERS,
    // The test waits at most ten seconds for an answer, so an answer after the time limit fails the test.
    settings: { OPERATION_TIMEOUT: '60s' },
    expectedErrors: ['request-failed'],
  });
  // The worker has such a listener (worker/life.ts). The test runner has one, too, which would fail the test.
  const others = process.rawListeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', service.app.failCurrentRequest);
  test.after(async () => {
    process.removeAllListeners('uncaughtException');
    for (const listener of others) process.on('uncaughtException', listener as (error: Error) => void);
    await service.close();
  });
  return service;
}

describe('a callback that throws late gets a 500 at once', () => {
  for (const [name, path, header = ''] of rows)
    it(name, async (test) => {
      const service = await start(test as never);
      const bytes = `GET /api/${path} HTTP/1.1\r\nHost: a\r\n${header}\r\n`;
      // The first call counts as well as the later ones.
      for (let call = 0; call < 2; call++) {
        const answer = parseRaw(await service.raw(bytes));
        assert.equal(answer.status, 500);
        assert.equal(JSON.parse(answer.body).error_code, 'INTERNAL_ERROR');
      }
    });
});

// A `limit` of an operation with `by` and with `count: 'failures'`, over a socket; and what the two halves of the
// limiter do with tokens that are given back.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { parseRate, type Rate } from '../../../src/base/rate.ts';
import { createCallerMap } from '../../../src/callers/rates/bucket.ts';
import { createRateLimiter, type Spending } from '../../../src/callers/rates/rate-limiter.ts';
import { createLedger } from '../../../src/callers/rates/supervisor-rates.ts';
import { GATEFOLD, startService } from '../../support/service.ts';

async function start(t: TestContext, limit: string, expectedErrors: readonly string[] = []) {
  const service = await startService({
    controllers: {
      'service.mjs': `import { defineService } from '${GATEFOLD}';
        export default defineService({ authenticate: ({ cookies }) => cookies.u && { id: cookies.u } });`,
      'XController.mjs': `import { HttpError, Reply } from '${GATEFOLD}';
        export default class {
          static operations = { 'GET {id}': { limit: ${limit} } };
          async 'GET {id}'(data, { path }) {
            if (path.id === 'bad') throw new HttpError(400, 'WRONG', 'x');
            if (path.id === 'redirect') return Reply.redirect('/');
            if (path.id === 'stream') return new Blob(['a']).stream();
            if (path.id === 'fail') throw new Error('x');
          }
        }`,
    },
    settings: { TRUSTED_PROXIES: '127.0.0.1' },
    expectedErrors,
  });
  t.after(service.close);
  /** @returns the statuses of one request after the other */
  return async (...paths: readonly (string | [path: string, headers: Record<string, string>])[]) => {
    const statuses: number[] = [];
    for (const entry of paths) {
      const [path, headers] = typeof entry === 'string' ? [entry, {}] : entry;
      const response = await fetch(`${service.url}/api/x/${path}`, { headers, redirect: 'manual' });
      await response.text();
      statuses.push(response.status);
    }
    return statuses;
  };
}
const from = (path: string, address: string): [string, Record<string, string>] => [
  path,
  { 'x-forwarded-for': address },
];

describe('by', () => {
  const byEmail = "{ rate: '2/15m', by: ({ query }) => String(query.email) }";

  it('counts its value over all addresses, and the address over all values', async (t) => {
    const send = await start(t, byEmail);
    const ann = ['1', '2', '3'].map((host) => from('a?email=ann', `10.0.0.${host}`));
    assert.deepEqual(await send(...ann), [200, 200, 429]);
    const oneAddress = ['b', 'c', 'd'].map((email) => from(`a?email=${email}`, '10.0.0.9'));
    assert.deepEqual(await send(...oneAddress), [200, 200, 429]);
    assert.deepEqual(await send(from('a?email=d', '10.0.0.10')), [200], 'an address over its limit takes nothing of d');
    assert.deepEqual(await send(from('a?email=b', '10.0.0.11')), [200]);
  });

  it('sees the path, the query, the headers, the address and the user', async (t) => {
    const send = await start(
      t,
      `{ rate: '1/h', by: ({ path, query, headers, address, user }) => {
        globalThis.bySeen = { path, query: { ...query }, agent: headers['x-agent'], address, user }; return address } }`,
    );
    await send(['a?q=1&q=2', { 'x-agent': 'me', cookie: 'u=ann', 'x-forwarded-for': '10.0.0.1' }]);
    assert.deepEqual((globalThis as { bySeen?: unknown }).bySeen, {
      path: { id: 'a' },
      query: { q: ['1', '2'] },
      agent: 'me',
      address: '10.0.0.1',
      user: { id: 'ann' },
    });
  });

  const WRONG: Readonly<Record<string, [by: string, status: number]>> = {
    'throws': ["() => { throw new Error('x') }", 500],
    'throws an HttpError': ["() => { throw new HttpError(400, 'NO', 'x') }", 400],
    'returns nothing': ['() => undefined', 500],
    'returns a number': ['() => 7', 500],
    'returns a promise': ["() => Promise.reject(new Error('x'))", 500],
    'returns a list': ['({ query }) => query.email', 500],
    'returns an empty text': ["() => ''", 200],
    'returns a text of a megabyte': ["() => 'x'.repeat(1e6)", 200],
    'returns lines': ["() => 'a\\nb'", 200],
  };
  for (const [name, [by, status]] of Object.entries(WRONG)) {
    it(`that ${name} is a ${status}, and the address is counted`, async (t) => {
      const send = await start(t, `{ rate: '2/h', by: ${by} }`, ['request-failed']);
      assert.deepEqual(await send('a?email=1&email=2', 'a?email=1&email=2', 'a'), [status, status, 429]);
    });
  }
});

describe("count: 'failures'", () => {
  const rows: Readonly<Record<string, [limit: string, paths: string[], statuses: number[]]>> = {
    'gives back what succeeds': [
      "{ rate: '1/h', count: 'failures' }",
      ['a', 'redirect', 'stream', 'a'],
      [200, 302, 200, 200],
    ],
    'keeps what fails': [
      "{ rate: '2/h', count: 'failures' }",
      ['a', 'bad', 'a', 'fail', 'a', 'bad'],
      [200, 400, 200, 500, 429, 429],
    ],
    'does both for a value of by': [
      "{ rate: '2/h', by: () => 'all', count: 'failures' }",
      ['a', 'a', 'a', 'bad', 'bad', 'bad', 'a'],
      [200, 200, 200, 400, 400, 429, 429],
    ],
  };
  for (const [name, [limit, paths, statuses]] of Object.entries(rows)) {
    it(name, async (t) => {
      const send = await start(t, limit, ['request-failed']);
      assert.deepEqual(await send(...paths), statuses);
    });
  }

  it('takes the token before, so guesses at a time are limited', async (t) => {
    const send = await start(t, "{ rate: '3/h', count: 'failures' }");
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await send('bad'))[0]));
    assert.deepEqual(statuses.sort(), [400, 400, 400, ...Array<number>(7).fill(429)]);
  });

  it('gives back over the supervisor, too, and an empty report is never sent', () => {
    const ledger = createLedger({ now: () => 0 });
    const reports: Spending[][] = [];
    const callbacks: (() => void)[] = [];
    const limiter = createRateLimiter({
      now: () => 0,
      later: (callback) => callbacks.push(callback),
      report: (spendings) => reports.push([...spendings]),
    });
    const rate = parseRate('4/h') as Rate;
    const runReports = () => {
      for (const callback of callbacks.splice(0)) callback();
      const [report] = reports.splice(0);
      if (report !== undefined) limiter.applyBalances(ledger.spend(report));
      return report?.map(([, spent]) => spent);
    };
    runReports();
    limiter.giveBack(limiter.check('operation', 'a', rate));
    assert.equal(runReports(), undefined, 'nothing was spent');
    const tokens = [limiter.check('operation', 'a', rate), limiter.check('operation', 'a', rate)];
    assert.deepEqual(runReports(), [2]);
    tokens.forEach(limiter.giveBack);
    assert.deepEqual(runReports(), [-2]);
    for (let i = 0; i < 4; i++) limiter.check('operation', 'a', rate);
    assert.throws(() => limiter.check('operation', 'a', rate), /more requests/);
  });
});

it('values of by fill a table of their own', () => {
  const callers = createCallerMap<number>();
  callers.set('operation a', 1);
  callers.set('by first', 1);
  for (let i = 0; i < 20_000; i++) callers.set(`by ${i}`, i);
  assert.equal(callers.get('operation a'), 1);
  assert.equal(callers.get('by first'), undefined);
  assert.ok(callers.size() <= 10_001);
});

describe('a limit', () => {
  const refused = [
    "'2'",
    '{}',
    "{ rate: '2' }",
    '{ rate: 5 }',
    "{ rate: '2/h', bye: () => 'a' }",
    "{ rate: '2/h', by: 'email' }",
    "{ rate: '2/h', by: async () => 'a' }",
    "{ rate: '2/h', by: class {} }",
    "{ rate: '2/h', by: function* () {} }",
    "{ rate: '2/h', count: 'all' }",
    "{ rate: '2/h', count: undefined }",
    "{ rate: '2/h', get by() { return () => 'a' } }",
    "new Map([['rate', '2/h']])",
    "['2/h']",
    "'0/15m'",
    "'2/0m'",
    "'2/15'",
    "'2/99999m'",
  ];
  for (const limit of refused) {
    it(`of ${limit} refuses the file`, async (t) => {
      const service = await startService({
        controllers: {
          'XController.mjs': `export default class { static operations = { index: { limit: ${limit} } }; index() {} }`,
        },
        expectedErrors: ['group-not-loadable', 'request-failed'],
      });
      t.after(service.close);
      assert.equal((await fetch(`${service.url}/api/x`)).status, 500);
      const line = service.lines.find(({ event }) => event === 'group-not-loadable');
      assert.match(
        String(line?.error),
        /limit must be a rate such as .* where by is not async|limit: (?:count is undefined|by is an accessor)/,
      );
    });
  }
  it('of 20/15m is 20 in 900 seconds', () =>
    assert.deepEqual(parseRate('20/15m'), { count: 20, seconds: 900, burst: 20 }));
});

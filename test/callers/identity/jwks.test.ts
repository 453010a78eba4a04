// The cache of key sets: when keys are fetched, how long they are kept, and which are refused. The clock and the
// network are simulated.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { isIssuer, isKeyAddress } from '../../../src/callers/identity/addresses.ts';
import { fetchJson } from '../../../src/callers/identity/fetch-json.ts';
import { createKeySets, KEY_TIMES, KeysUnavailable } from '../../../src/callers/identity/jwks.ts';
import type { Provider } from '../../../src/callers/identity/provider-rows.ts';
import { rememberLog } from '../../support/identity-bench.ts';
import { type Json, makeKey } from '../../support/identity-tokens.ts';

const MINUTE = 60_000;
const [first, second] = [makeKey('ES256', 'first'), makeKey('ES256', 'second')];
const wish = (kid: string) => ({ alg: 'ES256', kid });

function makeProvider(changes: Partial<Provider> = {}): Provider {
  const base = {
    name: 'acme',
    issuer: 'https://id.acme.example',
    clientIds: ['c'],
    algorithms: ['ES256'],
    registration: 'open' as const,
  };
  return { ...base, jwksUri: 'https://id.acme.example/keys', ...changes };
}

/** Creates the cache on a simulated network, which has one answer, and a simulated clock. */
function makeBench() {
  const bench = {
    now: 1_000_000_000,
    asked: [] as string[],
    keys: [first.jwk],
    headers: {} as Record<string, string>,
    fault: '',
    /** Milliseconds that a fetch takes. */
    takes: 0,
  };
  const log = rememberLog();
  const fetch = async (url: string): Promise<Response> => {
    bench.asked.push(url);
    bench.now += bench.takes;
    if (bench.fault !== '') throw new Error(bench.fault);
    return Response.json({ keys: bench.keys }, { headers: bench.headers });
  };
  const sets = createKeySets({ log, fetch, clock: () => bench.now });
  return { bench, log, sets, provider: makeProvider() };
}

describe('createKeySets', () => {
  test('measures time without the wall clock', async (t) => {
    t.mock.method(Date, 'now', () => assert.fail('the wall clock was read'));
    const fetch = async () => Response.json({ keys: [first.jwk] });
    const sets = createKeySets({ log: rememberLog(), fetch });
    assert.equal((await sets.find(makeProvider(), wish('first')))?.kid, 'first');
    assert.equal(await sets.find(makeProvider(), wish('unknown')), undefined);
    assert.deepEqual(sets.counters, { fetches: 2, failures: 0 });
  });

  test('find fetches once for many concurrent calls, and keeps the keys for ten minutes', async () => {
    const { bench, sets, provider } = makeBench();
    const found = await Promise.all(Array.from({ length: 50 }, () => sets.find(provider, wish('first'))));
    assert.ok(found.every((key) => key?.kid === 'first'));
    bench.now += KEY_TIMES.fresh - 1;
    await sets.find(provider, wish('first'));
    assert.equal(bench.asked.length, 1);
    bench.now += 1;
    await sets.find(provider, wish('first'));
    assert.equal(bench.asked.length, 2);
    assert.deepEqual(sets.counters, { fetches: 2, failures: 0 });
  });

  for (const [name, start] of [
    ['on a cold start', false],
    ['with keys in memory', true],
  ] as const) {
    test(`find fetches once per cool-down for 60 unknown kids, ${name}`, async () => {
      const { bench, sets, provider } = makeBench();
      if (start) await sets.find(provider, wish('first'));
      const before = bench.asked.length;
      const storm = () => Promise.all(Array.from({ length: 60 }, (_, i) => sets.find(provider, wish(`bogus-${i}`))));
      assert.ok((await storm()).every((key) => key === undefined));
      for (let i = 0; i < 60; i++) await sets.find(provider, wish(`later-${i}`));
      assert.equal(bench.asked.length, before + 1);
      bench.now += KEY_TIMES.coolDown;
      await storm();
      assert.equal(bench.asked.length, before + 2);
      assert.ok(await sets.find(provider, wish('first')), 'the good key has been lost');
    });
  }

  test('find returns a new key at once after a rotation, also to calls that wait for the same fetch', async () => {
    const { bench, sets, provider } = makeBench();
    await sets.find(provider, wish('first'));
    bench.keys = [first.jwk, second.jwk];
    const found = await Promise.all([1, 2, 3].map(() => sets.find(provider, wish('second'))));
    assert.deepEqual(
      found.map((key) => key?.kid),
      ['second', 'second', 'second'],
    );
    assert.equal(bench.asked.length, 2);
  });

  test('find returns stale keys for a day while the provider is unreachable, then throws KeysUnavailable', async () => {
    const { bench, log, sets, provider } = makeBench();
    await sets.find(provider, wish('first'));
    bench.fault = 'connection refused';
    bench.now += KEY_TIMES.fresh;
    for (let i = 0; i < 20; i++) assert.ok(await sets.find(provider, wish('first')));
    assert.equal(await sets.find(provider, wish('unknown')), undefined);
    assert.equal(bench.asked.length, 2);
    bench.now += KEY_TIMES.stale - 1;
    assert.ok(await sets.find(provider, wish('first')));
    bench.now += 1;
    await assert.rejects(sets.find(provider, wish('first')), KeysUnavailable);
    assert.equal(sets.counters.failures, 2);
    assert.equal(log.events().filter((event) => event === 'identity-keys-unavailable').length, 2);
    bench.fault = '';
    bench.now += KEY_TIMES.coolDown;
    assert.ok(await sets.find(provider, wish('first')));
  });

  test('find fetches once per cool-down when the first fetch fails', async () => {
    const { bench, sets, provider } = makeBench();
    bench.fault = 'no such host';
    for (let i = 0; i < 5; i++) await assert.rejects(sets.find(provider, wish('first')), KeysUnavailable);
    assert.equal(bench.asked.length, 1);
    bench.now += KEY_TIMES.coolDown;
    bench.fault = '';
    assert.ok(await sets.find(provider, wish('first')));
  });

  test('an unknown kid in the pause after a failed fetch does not make the pause longer', async () => {
    const { bench, sets, provider } = makeBench();
    await sets.find(provider, wish('first'));
    bench.keys = [second.jwk];
    bench.fault = 'no such host';
    assert.equal(await sets.find(provider, wish('second')), undefined);
    // The fetch of the next unknown kid hangs, so its failure comes later than the kid.
    bench.now += KEY_TIMES.coolDown;
    bench.takes = 5000;
    assert.equal(await sets.find(provider, wish('second')), undefined);
    bench.now += KEY_TIMES.coolDown - 5000;
    bench.fault = '';
    assert.equal(await sets.find(provider, wish('second')), undefined);
    bench.now += 5000;
    assert.ok(await sets.find(provider, wish('second')));
    assert.equal(bench.asked.length, 4);
  });

  for (const [header, kept] of [
    ['max-age=1', 5 * MINUTE],
    ['public, max-age=1200, must-revalidate', 20 * MINUTE],
    ['Max-Age="1200"', 20 * MINUTE],
    ['max-age=9999999999', 24 * 60 * MINUTE],
    ['s-maxage=7200', 10 * MINUTE],
    ['max-age=-5', 10 * MINUTE],
    ['no-store', 10 * MINUTE],
  ] as const) {
    test(`find keeps keys that came with Cache-Control: ${header} for ${kept / MINUTE} minutes`, async () => {
      const { bench, sets, provider } = makeBench();
      bench.headers = { 'cache-control': header };
      await sets.find(provider, wish('first'));
      bench.now += kept - 1;
      await sets.find(provider, wish('first'));
      assert.equal(bench.asked.length, 1);
      bench.now += 1;
      await sets.find(provider, wish('first'));
      assert.equal(bench.asked.length, 2);
    });
  }

  test('find keeps the good keys when the provider publishes only unusable keys', async () => {
    const { bench, sets, provider } = makeBench();
    await sets.find(provider, wish('first'));
    bench.keys = [{ kty: 'oct', k: 'AAAA' }];
    bench.now += KEY_TIMES.fresh;
    assert.ok(await sets.find(provider, wish('first')));
    assert.equal(sets.counters.failures, 1);
  });

  test('retain drops the keys of a provider row that was edited, and keeps the keys of an unchanged row', async () => {
    const { bench, sets, provider } = makeBench();
    await sets.find(provider, wish('first'));
    sets.retain([provider]);
    await sets.find(provider, wish('first'));
    assert.equal(bench.asked.length, 1);
    sets.retain([makeProvider({ jwksUri: 'https://elsewhere.example/keys' })]);
    await sets.find(provider, wish('first'));
    assert.equal(bench.asked.length, 2);
  });

  test('retain drops the keys of a removed provider, and keeps those of another issuer with the same keys', async () => {
    const { bench, sets, provider } = makeBench();
    const other = makeProvider({ name: 'other', issuer: 'https://other.example' });
    const countFetches = async (of: Provider) => {
      const before = bench.asked.length;
      assert.ok(await sets.find(of, wish('first')));
      return bench.asked.length - before;
    };
    assert.deepEqual([await countFetches(provider), await countFetches(other)], [1, 1]);
    sets.retain([other]);
    assert.deepEqual([await countFetches(other), await countFetches(provider)], [0, 1]);
    sets.retain([]);
    assert.deepEqual([await countFetches(other), await countFetches(provider)], [1, 1]);
    assert.deepEqual([await countFetches(other), await countFetches(provider)], [0, 0]);
  });
});

describe('createKeySets, discovery', () => {
  function makeDiscovery(document: unknown, issuer = 'https://id.acme.example/') {
    const state = { asked: [] as string[], document, now: 1_000_000_000, isAway: false };
    const log = rememberLog();
    const fetch = async (url: string): Promise<Response> => {
      state.asked.push(url);
      if (state.isAway) throw new Error('away');
      return Response.json(
        url.endsWith('/.well-known/openid-configuration') ? state.document : { keys: [first.jwk, second.jwk] },
      );
    };
    const sets = createKeySets({ log, fetch, clock: () => state.now });
    return { state, log, sets, provider: makeProvider({ issuer, jwksUri: undefined }) };
  }

  test('find discovers the key address once, and again after a failed fetch', async () => {
    const { state, sets, provider } = makeDiscovery({
      issuer: 'https://id.acme.example/',
      jwks_uri: 'https://keys.acme.example/',
    });
    await sets.find(provider, wish('first'));
    const both = ['https://id.acme.example/.well-known/openid-configuration', 'https://keys.acme.example/'];
    assert.deepEqual(state.asked, both);
    await sets.find(provider, wish('bogus'));
    assert.deepEqual(state.asked, [...both, 'https://keys.acme.example/']);
    state.isAway = true;
    state.now += KEY_TIMES.fresh;
    assert.ok(await sets.find(provider, wish('first')));
    [state.isAway, state.asked] = [false, []];
    state.now += KEY_TIMES.coolDown;
    assert.ok(await sets.find(provider, wish('first')));
    assert.deepEqual(state.asked, both);
  });

  test('find uses a discovered key address for a day, then discovers the address again', async () => {
    const [discovery, oldKeys, newKeys] = [
      'https://id.acme.example/.well-known/openid-configuration',
      'https://old.acme.example/',
      'https://new.acme.example/',
    ];
    const issuer = 'https://id.acme.example/';
    const { state, sets, provider } = makeDiscovery({ issuer, jwks_uri: oldKeys });
    const askedBy = async (kid: string) => {
      state.asked = [];
      await sets.find(provider, wish(kid));
      return state.asked;
    };
    assert.deepEqual(await askedBy('first'), [discovery, oldKeys]);
    state.document = { issuer, jwks_uri: newKeys };
    state.now += 24 * 60 * MINUTE - 1;
    assert.deepEqual(await askedBy('first'), [oldKeys]);
    // The keys are new, so only an unknown kid causes a fetch.
    state.now += 1;
    assert.deepEqual(await askedBy('unknown'), [discovery, newKeys]);
    state.now += KEY_TIMES.fresh;
    assert.deepEqual(await askedBy('first'), [newKeys]);
  });

  for (const [name, document, reason] of [
    [
      'names another issuer',
      { issuer: 'https://evil.example', jwks_uri: 'https://evil.example/k' },
      /names another issuer/,
    ],
    [
      'names the issuer without its slash',
      { issuer: 'https://id.acme.example', jwks_uri: 'https://id.acme.example/k' },
      /names another issuer/,
    ],
    ['is null', null, /names another issuer/],
    [
      'has an http address for keys',
      { issuer: 'https://id.acme.example/', jwks_uri: 'http://id.acme.example/k' },
      /not an https address/,
    ],
    [
      'has an http address on loopback for keys',
      { issuer: 'https://id.acme.example/', jwks_uri: 'http://127.0.0.1/k' },
      /not an https address/,
    ],
    [
      'has a file address for keys',
      { issuer: 'https://id.acme.example/', jwks_uri: 'file:///etc/keys' },
      /not an https address/,
    ],
    ['has no address for keys', { issuer: 'https://id.acme.example/' }, /not an https address/],
  ] as const) {
    test(`find refuses a discovery document that ${name}`, async () => {
      const { state, log, sets, provider } = makeDiscovery(document);
      await assert.rejects(sets.find(provider, wish('first')), KeysUnavailable);
      assert.equal(state.asked.length, 1);
      assert.match(log.lines.at(-1) ?? '', reason);
    });
  }
});

describe('fetchJson', () => {
  const over = 300 * 1024;
  for (const [name, answer, wanted] of [
    ['a redirect', { status: 302, headers: { location: '/good' }, body: '' }, /./],
    ['status 404', { status: 404, headers: {}, body: '{}' }, /has status 404/],
    ['status 204', { status: 204, headers: {}, body: '' }, /has status 204/],
    [
      'an answer that is not JSON',
      { status: 200, headers: {}, body: '<html>secret</html>' },
      /^Error: the answer is not JSON$/,
    ],
    ['an empty answer', { status: 200, headers: {}, body: '' }, /is not JSON/],
    ['an answer that is not UTF-8', { status: 200, headers: {}, body: Buffer.from([0x22, 0xff, 0x22]) }, /./],
    [
      'an answer that is too long',
      { status: 200, headers: {}, body: `"${'a'.repeat(over)}"` },
      /longer than 262144 bytes/,
    ],
    [
      'an answer that is too long once inflated',
      { status: 200, headers: { 'content-encoding': 'gzip' }, body: gzipSync(`"${'a'.repeat(over)}"`) },
      /longer than 262144 bytes/,
    ],
  ] as const) {
    test(`refuses ${name}`, async () => {
      const asked: string[] = [];
      const server = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.writeHead(answer.status, { ...answer.headers } as Record<string, string>).end(answer.body);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        await assert.rejects(
          fetchJson(fetch, `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`),
          wanted,
        );
        assert.deepEqual(asked, ['/keys']);
      } finally {
        server.close();
        server.closeAllConnections();
      }
    });
  }

  for (const [name, start] of [
    ['never answers', ''],
    ['stops in the middle of its answer', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"keys":'],
  ] as const) {
    test(`gives up on a provider that ${name}`, async () => {
      const server = createNetServer((socket) => {
        socket.on('error', () => {});
        socket.write(start);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const sockets = new Set<Socket>();
      server.on('connection', (socket) => sockets.add(socket));
      await assert.rejects(fetchJson(fetch, `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`, 50), {
        name: 'TimeoutError',
      });
      for (const socket of sockets) socket.destroy();
      server.close();
    });
  }

  test('ends a refused answer, whose connection would otherwise wait for the garbage collector', async () => {
    let isEnded = false;
    const body = new ReadableStream({
      cancel() {
        isEnded = true;
      },
    });
    const busy = async () => new Response(body, { status: 503 });
    await assert.rejects(fetchJson(busy, 'https://id.acme.example'), /has status 503/);
    assert.equal(isEnded, true);
  });

  test('asks nobody while NODE_TLS_REJECT_UNAUTHORIZED=0 takes any server for the provider', async (t) => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
    t.after(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      if (before !== undefined) process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    });
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    const asked: string[] = [];
    const send = async (url: string) => {
      asked.push(url);
      return Response.json({});
    };
    for (const scheme of ['https', 'HTTPS'])
      await assert.rejects(fetchJson(send, `${scheme}://id.acme.example`), /NODE_EXTRA_CA_CERTS/);
    await fetchJson(send, 'http://127.0.0.1/keys');
    assert.deepEqual(asked, ['http://127.0.0.1/keys']);
  });

  test('fetches with a time limit and without redirects', async () => {
    let seen: RequestInit = {};
    await fetchJson(async (_, init) => {
      seen = init;
      return Response.json({});
    }, 'https://id.acme.example');
    assert.equal(seen.redirect, 'error');
    assert.ok(seen.signal instanceof AbortSignal);
  });
});

describe('addresses', () => {
  const issuers: Json = {
    'https://accounts.google.com': true,
    'https://login.microsoftonline.com/0000/v2.0': true,
    'http://127.0.0.1:8080/realms/x': true,
    'http://localhost:8080': true,
    'http://[::1]:8080': true,
    'http://id.acme.example': false,
    'http://127.0.0.1.evil.example': false,
    'http://localhost.evil.example': false,
    'http://127.0.0.1@evil.example': false,
    'https://user:pw@id.acme.example': false,
    'https://id.acme.example?x': false,
    'https://id.acme.example#x': false,
    'https://id.acme.example#': false,
    'ftp://id.acme.example': false,
    'accounts.google.com': false,
    '': false,
  };
  for (const [text, expected] of Object.entries(issuers)) {
    test(`isIssuer is ${expected} for ${JSON.stringify(text)}`, () => assert.equal(isIssuer(text), expected));
  }

  test('isKeyAddress accepts http only with an http issuer, and refuses long texts and other types', () => {
    assert.equal(isKeyAddress('http://127.0.0.1/k', 'http://127.0.0.1'), true);
    assert.equal(isKeyAddress('http://127.0.0.1/k', 'https://id.acme.example'), false);
    const longest = 'https://x.example/'.padEnd(2048, 'a');
    assert.equal(isKeyAddress(longest, 'https://id.acme.example'), true);
    for (const value of [undefined, null, 1, {}, ['https://x.example'], `${longest}a`]) {
      assert.equal(isKeyAddress(value, 'https://id.acme.example'), false);
    }
  });
});

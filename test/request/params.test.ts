// Tests the `params` of an operation (bytes, log, address, waitUntil), the rule who may call it, and its guards.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { addressOf, parseTrustedProxies } from '../../src/callers/access/address.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { asRaw, assertEnvelope, type Service, startService } from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');
let service: Service;

before(async () => {
  const controllers = {
    'ParamsController.mjs': `
      import { createHmac } from 'node:crypto';
      export default class {
        created(data, params) { return { hmac: createHmac('sha256', 'key').update(params.bytes).digest('hex'), length: params.bytes.length, data, keys: Object.keys(params) } }
        index(data, { bytes, address }) { return { length: bytes.length, address } }
        log(data, { log }) {
          log.info('lent', { id: 7, level: 'error', request_id: 'forged', message: 'why' });
          log.warn('odd', { a: 1n });
          log.error(12);
          return {};
        }
        logOdd(data, { log }) {
          log.info('odd', null);
          log.info(Object.assign(Object.create(null), { form: '1' }));
          log.info({ toJSON() { throw new Error('no') } });
          log.info('odd', { get a() { throw new Error('b\\nc') } });
          log.info('odd', { error: new TypeError('not paid ' + 'x'.repeat(9000), { cause: new Error('no card') }), further: 1 });
          // An error of an old package: its class was made without Error(), so it has no stack.
          log.info('odd', { error: Object.assign(Object.create(Error.prototype), { name: 'OldError', message: 'no file' }) });
          log.info('odd', { toJSON: () => ({ event: 'forged' }), further: 2 });
          log.info('odd', new TypeError('as fields'));
          log.info('odd', { deep: { list: [Object.assign(new TypeError('in a list'), { toJSON: () => 'secret' })] } });
          log.info(new TypeError('as message'));
          log.info('odd', 'a text');
          // The order of pino.
          log.info({ err: new TypeError('as pino') }, 'a text');
          return {};
        }
        later(data, { waitUntil }) { waitUntil(globalThis.work); return { answered: true } }
        laterBad(data, { waitUntil }) { waitUntil(Promise.reject(new Error('mail server away'))); waitUntil(undefined); return {} }
        laterNever(data, { waitUntil }) { waitUntil(async () => {}); return {} }
      }`,
    'TimedController.mjs': `export default {
        index(data, { request }) { request.setTimeout(100); return {} },
        async slow() { await new Promise((done) => setTimeout(done, 600)); return {} },
      }`,
    'AccessController.mjs': `export default class {
        static operations = { index: { access: 'application' }, created: { access: { scope: 'orders:write' } }, open: { access: 'anyone' } };
        index(data, { application }) { return { application: application.id } }
        created() { globalThis.ran = true; return {} }
        open() { return {} }
      }`,
    'GuardedController.mjs': `
      import { HttpError, Reply } from ${JSON.stringify(GATEFOLD)};
      class Base {
        async _before(data, params) {
          const { guard } = params.query;
          if (guard === 'refuse') throw new HttpError(403, 'NOT_YOURS', 'It is not yours');
          if (guard === 'throw') throw new Error('guard broke');
          if (guard === 'hang') await new Promise(() => {});
          if (guard === 'late') await globalThis.work;
          if (guard === 'answer') return new Reply(202, { answered: 'by the guard' });
          if (guard === 'false') return false;
        }
      }
      export default class extends Base {
        static operations = { '*': { timeout: 40 } };
        _after(result, params) { if (params.query.wrap) return { wrapped: result }; if (params.query.fail) throw new Error('after broke') }
        index() { globalThis.ran = true; return { index: true } }
        'GET {id}'(data, { path }) { return { path } }
      }`,
    'WrongGuardController.mjs': 'export default { index() {}, _before: true }',
  };
  const row = (scopes?: string[]) => ({
    kind: 'row' as const,
    row: {
      application: { id: 'app', name: 'App', ...(scopes === undefined ? {} : { scopes }) },
      handler: undefined,
      groups: '*' as const,
      methods: undefined,
    },
  });
  service = await startService({
    controllers,
    settings: { TRUSTED_PROXIES: '127.0.0.0/8' },
    expectedErrors: ['request-failed', 'background-work-failed', 'operation-error', 'group-not-loadable'],
    parts: {
      credentials: {
        identify: (authorization) =>
          authorization === 'plain'
            ? row()
            : authorization === 'reader'
              ? row(['orders:read', 'orders:writ', 'orders:write:all'])
              : authorization === 'writer'
                ? row(['orders:read', 'orders:write'])
                : { kind: 'foreign' },
      },
    },
  });
});
after(() => service.close());
const call = (path: string, init?: RequestInit) => fetch(`${service.url}/api/${path}`, init);

describe('params.bytes', () => {
  for (const [name, body] of [
    ['spaces', '{ "a" : 1 }'],
    ['a number as it was written', '{"a":10.00,"b":12345678901234567890}'],
    ['an escape', '{"a":"\\u00e9"}'],
  ] as const) {
    test(`are the bytes that the client signed: ${name}`, async () => {
      const answer = (await (await call('params', { method: 'POST', body })).json()) as Record<string, unknown>;
      assert.equal(answer.hmac, createHmac('sha256', 'key').update(body).digest('hex'));
      assert.deepEqual(answer.keys, ['page', 'method', 'verb', 'slugs', 'query', 'requestId']);
    });
  }
  test('are inflated, and empty without a body', async () => {
    const zipped = await call('params', {
      method: 'POST',
      body: gzipSync('a=1'),
      headers: { 'content-encoding': 'gzip', 'content-type': 'application/x-www-form-urlencoded' },
    });
    const { length, data } = (await zipped.json()) as Record<string, unknown>;
    assert.deepEqual([length, data], [3, { a: '1' }]);
    assert.equal(((await (await call('params')).json()) as { length: number }).length, 0);
  });
});

test('a time limit that an operation sets for its connection ends with its answer', async () => {
  const of = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\n\r\n`;
  const text = await service.raw(of('GET /api/timed') + of('POST /api/timed/slow'), 2);
  assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 2);
});

test('params.log writes lines with the request id to the log of the service', async () => {
  await call('params/log', { headers: { 'x-request-id': 'logged' } });
  const lines = service.lines
    .filter(({ event }) => event.startsWith('operation-'))
    .map(({ time, pid, ...line }) => line);
  const facts = { request_id: 'logged', group: 'Params', operation: 'log' };
  assert.deepEqual(lines, [
    {
      ...{ level: 'info', event: 'operation-info', message: 'lent', ...facts },
      ...{ id: 7, field_level: 'error', field_request_id: 'forged', field_message: 'why' },
    },
    {
      level: 'warn',
      event: 'operation-warning',
      message: 'odd',
      ...facts,
      fields_dropped: 'Do not know how to serialize a BigInt',
    },
    { level: 'error', event: 'operation-error', message: '12', ...facts },
  ]);
});

test('params.log never fails the request, whatever its arguments are', async () => {
  const answer = await call('params/logOdd', { headers: { 'x-request-id': 'odd' } });
  assert.equal(answer.status, 200);
  const lines = service.lines.filter((line) => line.request_id === 'odd' && line.event === 'operation-info');
  assert.deepEqual(
    lines.map(({ message }) => message),
    [
      'odd',
      '{"form":"1"}',
      'a message that has no text',
      ...Array(6).fill('odd'),
      lines[9]?.message,
      'odd',
      lines[11]?.message,
    ],
  );
  assert.equal(lines[3]?.fields_dropped, 'b');
  assert.match(String(lines[4]?.error), /^TypeError: not paid x+…\n\[cause\] no card\n {4}at /);
  assert.equal(lines[4]?.further, 1);
  assert.equal(lines[5]?.error, 'OldError: no file');
  assert.equal(lines[6]?.further, 2);
  assert.match(String(lines[7]?.error), /^TypeError: as fields\n {4}at /);
  assert.match(JSON.stringify(lines[8]?.deep), /^\{"list":\["TypeError: in a list\\n {4}at /);
  assert.match(String(lines[9]?.message), /^TypeError: as message\n {4}at /);
  assert.equal(lines[10]?.value, 'a text');
  assert.match(String(lines[11]?.message), /^\{"err":"TypeError: as pino\\n {4}at /);
  assert.equal(lines[11]?.value, 'a text');
});

describe('params.waitUntil', () => {
  test('keeps work running after the answer, and counts it until it has ended', async () => {
    let finish = (): void => {};
    (globalThis as unknown as { work: Promise<void> }).work = new Promise((resolve) => {
      finish = resolve;
    });
    assert.deepEqual(await (await call('params/later')).json(), { answered: true });
    assert.equal(service.app.pendingWork(), 1);
    finish();
    await new Promise(setImmediate);
    assert.equal(service.app.pendingWork(), 0);
  });

  test('logs work that has not ended when the service gives it up', async () => {
    const globals = globalThis as unknown as { work: Promise<void> };
    let finish = (): void => {};
    globals.work = new Promise((resolve) => {
      finish = resolve;
    });
    await call('params/later', { headers: { 'x-request-id': 'endless-work' } });
    service.app.giveUpWork();
    service.app.giveUpWork();
    assert.equal(service.app.pendingWork(), 0);
    const lines = () => service.lines.filter(({ event }) => event === 'background-work-given-up');
    assert.deepEqual(
      lines().map(({ level, request_id, group, operation }) => [level, request_id, group, operation]),
      [['warn', 'endless-work', 'Params', 'later']],
    );
    finish();
    await new Promise(setImmediate);
    assert.equal(service.app.pendingWork(), 0);
  });

  test('logs work that is rejected, and the request succeeds', async () => {
    assert.equal((await call('params/laterBad', { headers: { 'x-request-id': 'bad-work' } })).status, 200);
    const line = service.lines.find(({ event }) => event === 'background-work-failed');
    assert.deepEqual([line?.request_id, line?.error, line?.operation], ['bad-work', 'mail server away', 'laterBad']);
    assert.equal(service.app.pendingWork(), 0);
  });

  test('refuses a function, which nothing would call', async () => {
    assert.equal((await call('params/laterNever', { headers: { 'x-request-id': 'no-work' } })).status, 500);
    const line = service.lines.find(({ request_id, event }) => request_id === 'no-work' && event === 'request-failed');
    assert.match(String(line?.error), /call it/);
  });
});

describe('params.address', () => {
  test('is known after the client has left', async (t) => {
    const controllers = {
      'KeepController.mjs': 'export default { index(_, params) { globalThis.kept = params; return {} } }',
    };
    const running = await startService({ controllers });
    t.after(() => running.close());
    await running.raw('GET /api/keep HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const { kept } = globalThis as unknown as { kept: { address: string; request: IncomingMessage } };
    while (!kept.request.socket.destroyed) await new Promise(setImmediate);
    assert.equal(kept.address, '127.0.0.1');
  });

  const proxies = parseTrustedProxies(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7', '2001:dba::7']);
  const rows: [name: string, peer: string | undefined, forwarded: string | undefined, address: string][] = [
    ['no proxy', '203.0.113.5', undefined, '203.0.113.5'],
    ['a client that forges the header', '203.0.113.5', '1.1.1.1', '203.0.113.5'],
    ['one proxy', '10.0.0.1', '203.0.113.5', '203.0.113.5'],
    ['IPv4 as IPv6', '::ffff:10.0.0.1', '203.0.113.5', '203.0.113.5'],
    ['IPv4 as IPv6, no proxy', '::ffff:203.0.113.5', undefined, '203.0.113.5'],
    ['a peer with a zone, no proxy', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['IPv4 as IPv6, in hexadecimal', '::ffff:10.0.0.1', '::FFFF:cb00:7105', '203.0.113.5'],
    ['a proxy as IPv6, in hexadecimal', '::ffff:a00:1', '203.0.113.5', '203.0.113.5'],
    ['one proxy behind an address from the client', '10.0.0.1', '1.1.1.1, 203.0.113.5', '203.0.113.5'],
    ['two proxies', '10.0.0.1', '1.1.1.1, 203.0.113.5, 192.0.2.7', '203.0.113.5'],
    ['proxies only', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['IPv6', '2001:db8::1', '2001:db9::5', '2001:db9::5'],
    ['a proxy by its IPv6 address', '2001:dba::7', '203.0.113.5', '203.0.113.5'],
    ['an address next to that of a proxy', '2001:dba::8', '203.0.113.5', '2001:dba::8'],
    ['IPv4 as IPv6, in full', '10.0.0.1', '0:0:0:0:0:ffff:203.0.113.5', '203.0.113.5'],
    ['IPv4 as IPv6, in full and with zeros', '10.0.0.1', '0000:0000:0000:0000:0000:FFFF:CB00:7105', '203.0.113.5'],
    ['IPv4 as IPv6, with its zeros elsewhere', '10.0.0.1', '0::0:ffff:203.0.113.5', '203.0.113.5'],
    ['IPv4 as IPv6, quoted, with a port', '10.0.0.1', '"[0:0:0:0:0:ffff:cb00:7105]:80"', '203.0.113.5'],
    ['a proxy as IPv6, in full', '::ffff:10.0.0.1', '203.0.113.5, 0:0:0:0:0:ffff:a00:2', '203.0.113.5'],
    ['IPv6 in full', '10.0.0.1', '2001:DB9:0:0:0000:0:0:5', '2001:db9::5'],
    ['IPv6 with a dotted end', '10.0.0.1', '2001:db9::0.0.0.5', '2001:db9::5'],
    ['a forwarded address with a zone', '10.0.0.1', 'fe80:0::1%eth0', 'fe80::1'],
    ['a peer with a zone that is not a proxy', 'fe80::1%eth0', '1.1.1.1', 'fe80::1'],
    ['IPv4 within other IPv6', '10.0.0.1', '::ffff:0:203.0.113.5', '::ffff:0:cb00:7105'],
    ['IPv6 that resembles IPv4 as IPv6', '10.0.0.1', '::ffff:12', '::255.255.0.18'],
    ['leading zeros, which some read as octal', '10.0.0.1', '203.0.113.05', '10.0.0.1'],
    ['too many groups', '10.0.0.1', '0:0:0:0:0:0:ffff:203.0.113.5', '10.0.0.1'],
    ['an address as one number', '10.0.0.1', '3405803781', '10.0.0.1'],
    ['an IPv4 address with a port', '10.0.0.1', '203.0.113.5:1234', '203.0.113.5'],
    ['IPv6 with a port, quoted', '10.0.0.1', '"[2001:db9::5]:80"', '2001:db9::5'],
    ['a hidden client', '10.0.0.1', '1.1.1.1, unknown', '10.0.0.1'],
    ['an empty header', '10.0.0.1', '', '10.0.0.1'],
    ['only commas', '10.0.0.1', ',,,', '10.0.0.1'],
    ['a closed connection', undefined, '1.1.1.1', ''],
    ['8 KB of proxies', '10.0.0.1', '10.0.0.2,'.repeat(900), '10.0.0.1'],
    ['8 KB of proxies, well written', '10.0.0.1', Array(900).fill('10.0.0.2').join(','), '10.0.0.2'],
    ['all proxies that the service follows', '10.0.0.1', `203.0.113.5${',10.0.0.2'.repeat(31)}`, '203.0.113.5'],
    ['more proxies than the service follows', '10.0.0.1', `203.0.113.5${',10.0.0.2'.repeat(32)}`, '10.0.0.2'],
    ['8 KB of nonsense', '10.0.0.1', 'x'.repeat(8192), '10.0.0.1'],
  ];
  for (const [name, peer, forwarded, address] of rows) {
    const request = { headers: { 'x-forwarded-for': forwarded } } as unknown as IncomingMessage;
    const socket = { remoteAddress: peer } as Socket;
    test(name, () => assert.equal(addressOf({ request, socket }, proxies), address));
  }

  test('is read from all header lines that a trusted proxy sends', async () => {
    const text = await service.raw(
      'GET /api/params HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 203.0.113.5\r\n\r\n',
    );
    assert.match(text, /"address":"203\.0\.113\.5"/);
  });
});

describe('access', () => {
  const rows: [verb: string, path: string, authorization: string | undefined, status: number, code?: string][] = [
    ['GET', 'access', undefined, 401, 'CREDENTIAL_REQUIRED'],
    ['GET', 'access', 'Basic foreign', 401, 'CREDENTIAL_REQUIRED'],
    ['GET', 'access', 'plain', 200],
    ['POST', 'access', undefined, 401, 'CREDENTIAL_REQUIRED'],
    ['POST', 'access', 'plain', 403, 'SCOPE_MISSING'],
    ['POST', 'access', 'reader', 403, 'SCOPE_MISSING'],
    ['POST', 'access', 'writer', 200],
    ['GET', 'access/open', undefined, 200],
    ['GET', 'access/created', 'plain', 403, 'SCOPE_MISSING'],
  ];
  for (const [verb, path, authorization, status, code] of rows) {
    test(`${verb} ${path} with ${authorization} is ${status}`, async () => {
      const answer = await asRaw(
        await call(path, { method: verb, ...(authorization === undefined ? {} : { headers: { authorization } }) }),
      );
      if (code === undefined) assert.equal(answer.status, status);
      else assertEnvelope(answer, status, code);
      if (status === 401) assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    });
  }
});

describe('guards', () => {
  const ran = globalThis as unknown as { ran: boolean };
  const rows: [query: string, status: number, body: unknown, hasRun: boolean][] = [
    ['', 200, { index: true }, true],
    ['?wrap=1', 200, { wrapped: { index: true } }, true],
    ['?guard=answer', 202, { answered: 'by the guard' }, false],
    ['?guard=refuse', 403, 'NOT_YOURS', false],
    ['?guard=throw', 500, 'INTERNAL_ERROR', false],
    ['?guard=hang', 503, 'OPERATION_TIMEOUT', false],
    ['?guard=false', 500, 'INTERNAL_ERROR', false],
    ['?fail=1', 500, 'INTERNAL_ERROR', true],
  ];
  for (const [query, status, body, hasRun] of rows) {
    test(`${query} → ${status}`, async () => {
      ran.ran = false;
      const answer = await asRaw(await call(`guarded${query}`));
      if (typeof body === 'string') assertEnvelope(answer, status, body);
      else assert.deepEqual([answer.status, JSON.parse(answer.body)], [status, body]);
      assert.equal(ran.ran, hasRun);
    });
  }

  test('do not start the operation when they pass after the time limit', async () => {
    let letThrough = () => {};
    (globalThis as unknown as { work: Promise<void> }).work = new Promise((resolve) => {
      letThrough = resolve;
    });
    ran.ran = false;
    assertEnvelope(await asRaw(await call('guarded?guard=late')), 503, 'OPERATION_TIMEOUT');
    letThrough();
    while (!service.lines.some(({ event, group }) => event === 'operation-finished-late' && group === 'Guarded'))
      await new Promise((later) => setTimeout(later, 5));
    assert.equal(ran.ran, false);
  });

  test('run around routes', async () => {
    assert.deepEqual(await (await call('guarded/7?wrap=1')).json(), { wrapped: { path: { id: '7' } } });
    assert.equal((await call('guarded/7?guard=refuse')).status, 403);
  });

  test('cannot be called as operations', async () =>
    assert.equal((await call('guarded/_before', { method: 'POST' })).status, 405));

  test('keep a file from loading if they are not methods', async () =>
    assert.equal((await call('wrongGuard')).status, 500));
});

// Tests errors that an operation throws, at once or later. Each request gets one answer. Headers that an error may not
// set are dropped and logged.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { moduleUrl } from '../support/own-modules.ts';
import { asRaw, assertEnvelope, type LogLine, type Service, startService } from '../support/service.ts';

const ERRORS = moduleUrl('src/base/errors');

let service: Service;
before(async () => {
  const controllers = {
    'OddController.mjs': `
      import { HttpError } from ${JSON.stringify(ERRORS)};
      const getter = (name) => Object.defineProperty(new Error('g'), name, { get() { throw new Error('lazy ' + name); } });
      // An HttpError of another copy of the package is recognized by its mark alone.
      const mark = Symbol.for('gatefold.HttpError');
      const foreign = () => Object.assign(new Error('m'), { [mark]: true, code: 'X' });
      const cycle = () => { const error = new Error('x'); error.name = { error }; return error; };
      const make = {
        trailer: () => new HttpError(422, 'X', 'm', { headers: { Trailer: 'X-Sum' } }),
        headers: () => new HttpError(422, 'X', 'm', { headers: { get a() { throw new Error('h'); } } }),
        name: () => Object.assign(new Error('n'), { name: 5n }),
        cycle,
        message: () => getter('message'),
        stack: () => getter('stack'),
        cause: () => new HttpError(422, 'X', 'm', { cause: getter('message') }),
        status: () => Object.assign(new HttpError(422, 'X', 'm'), { status: 600 }),
        proxy: () => new Proxy({}, { getPrototypeOf() { throw new Error('trap'); } }),
        lists: () => new HttpError(422, 'X', 'm', { headers: {
          'Set-Cookie': ['a=1; Path=/', 'b=2'], 'X-One': ['1'], 'X-None': [], 'X-Split': ['1', '2\\r\\nX-Evil: 1'],
          'Cache-Control': ['public', 'x'] } }),
        status600: () => Object.assign(foreign(), { status: 600 }),
        status399: () => Object.assign(foreign(), { status: 399 }),
        status599: () => Object.assign(foreign(), { status: 599 }),
        own: () => new HttpError(422, 'X', 'm', { headers: {
          'Access-Control-Allow-Credentials': 'true', 'access-control-max-age': '1', 'Content-Length': '3', 'Transfer-Encoding': 'chunked',
          'Connection': 'keep-alive', 'Upgrade': 'h2c', 'X-Kept': 'yes', 'Cache-Control': 'public', 'Content-Type': 'text/html' } }),
      };
      const shared = new HttpError(409, 'TAKEN', '');
      export default class {
        shared(data, { query }) { shared.message = query.message; throw shared; }
        index(data, { query }) { throw make[query.kind](); }
        async later(data, { query }) { throw make[query.kind](); }
        later2() { return { then(done, fail) { throw make.proxy(); } }; }
      }`,
    'SlowController.mjs': `
      export default class {
        index() { return new Promise((done, fail) => setTimeout(() => fail(new Error('the pool is closed')), 60)); }
        big() { return 'x'.repeat(30_000_000); }
      }`,
  };
  service = await startService({
    controllers,
    settings: { OPERATION_TIMEOUT: '40ms', REQUEST_TIMEOUT: '200ms' },
    expectedErrors: ['request-failed'],
  });
});
after(() => service.close());

describe('an unusual error is answered', () => {
  const rows: [kind: string, status: number, code: string][] = [
    ['trailer', 422, 'X'],
    ['headers', 500, 'INTERNAL_ERROR'],
    ['name', 500, 'INTERNAL_ERROR'],
    ['cycle', 500, 'INTERNAL_ERROR'],
    ['message', 500, 'INTERNAL_ERROR'],
    ['stack', 500, 'INTERNAL_ERROR'],
    ['cause', 422, 'X'],
    ['status', 500, 'INTERNAL_ERROR'],
    ['proxy', 500, 'INTERNAL_ERROR'],
    ['status399', 500, 'INTERNAL_ERROR'],
    ['status599', 599, 'X'],
    ['status600', 500, 'INTERNAL_ERROR'],
  ];
  for (const [kind, status, code] of rows) {
    for (const when of ['', '/later']) {
      test(`${kind}${when}`, async () => {
        assertEnvelope(await asRaw(await fetch(`${service.url}/api/odd${when}?kind=${kind}`)), status, code);
      });
    }
  }

  test('later2 (a thenable that throws)', async () => {
    assertEnvelope(await asRaw(await fetch(`${service.url}/api/odd/later2`)), 500, 'INTERNAL_ERROR');
  });
});

test('headers that belong to the server are dropped from an HttpError, and each is logged', async () => {
  const answer = await fetch(`${service.url}/api/odd?kind=own`);
  const raw = await asRaw(answer);
  assertEnvelope(raw, 422, 'X');
  assert.equal(raw.headers.get('x-kept'), 'yes');
  assert.equal(raw.headers.get('cache-control'), 'no-store');
  assert.equal(raw.headers.get('content-length'), String(raw.body.length));
  for (const name of ['transfer-encoding', 'upgrade', 'access-control-allow-credentials', 'access-control-max-age'])
    assert.equal(raw.headers.get(name), undefined, name);
  const dropped = service.lines.filter(
    ({ event, reason }) => event === 'header-dropped' && reason === 'it belongs to the server',
  );
  assert.deepEqual(
    dropped
      .slice(-8)
      .map(({ header }) => String(header).toLowerCase())
      .sort(),
    [
      'access-control-allow-credentials',
      'access-control-max-age',
      'cache-control',
      'connection',
      'content-length',
      'content-type',
      'transfer-encoding',
      'upgrade',
    ],
  );
});

test('a list in the headers of an HttpError is a line for each entry, or dropped when an entry is wrong', async () => {
  service.lines.length = 0;
  const raw = await service.raw('GET /api/odd?kind=lists HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const [head = ''] = raw.split('\r\n\r\n');
  const lines = head.split('\r\n');
  assert.equal(lines[0], 'HTTP/1.1 422 Unprocessable Entity');
  const sent = lines.filter((line) => /^(set-cookie|x-(?!request|content)|cache)/i.test(line));
  assert.deepEqual(sent.sort(), ['Cache-Control: no-store', 'Set-Cookie: a=1; Path=/', 'Set-Cookie: b=2', 'X-One: 1']);
  const dropped = service.lines.filter(({ event }) => event === 'header-dropped').map(({ header }) => header);
  assert.deepEqual(dropped, ['X-Split', 'Cache-Control']);
});

test('an error object that is thrown again is answered with its current message', async () => {
  for (const message of ['one', 'other', 'one']) {
    const answer = await asRaw(await fetch(`${service.url}/api/odd/shared?message=${message}`));
    assert.equal(assertEnvelope(answer, 409, 'TAKEN').message, message);
  }
});

test('an error that an operation throws after its time limit is logged', async () => {
  assertEnvelope(
    await asRaw(await fetch(`${service.url}/api/slow`, { headers: { 'x-request-id': 'late' } })),
    503,
    'OPERATION_TIMEOUT',
  );
  const find = () => service.lines.find(({ event }) => event === 'operation-failed-late');
  while (find() === undefined) await new Promise((later) => setTimeout(later, 5));
  const { time, pid, stack, ...line } = find() as LogLine;
  assert.deepEqual(line, {
    level: 'warn',
    event: 'operation-failed-late',
    request_id: 'late',
    group: 'Slow',
    operation: 'index',
    error: 'the pool is closed',
    error_name: 'Error',
  });
  assert.match(String(stack), /SlowController/);
});

test('a connection is closed when its client does not read the answer', async () => {
  const accepted = once(service.app.server, 'connection');
  const client = connect(service.port, '127.0.0.1');
  client.on('error', () => {});
  client.pause();
  client.write('GET /api/slow/big HTTP/1.1\r\nHost: x\r\n\r\n');
  const [socket] = (await accepted) as [Socket];
  await once(socket, 'close');
  client.destroy();
});

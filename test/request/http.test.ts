// Tests over raw sockets: requests that node:http accepts and this server refuses, connections, time-outs, overload.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { assertEnvelope, parseRaw, type Service, startService } from '../support/service.ts';

let service: Service;
before(async () => {
  service = await startService({ expectedErrors: ['request-failed'], settings: { BODY_LIMIT: '1000' } });
});
after(() => service.close());

const get = (lines: string, version = '1.1') => `GET /api/test HTTP/${version}\r\n${lines}\r\n`;

describe('refused requests', () => {
  const many = (count: number) => 'A:\r\n'.repeat(count);
  const rows: [name: string, request: string, status: number, code: string][] = [
    ['Host missing', get(''), 400, 'MALFORMED_HOST'],
    ['Host repeated', get('Host: x\r\nHost: x\r\n'), 400, 'MALFORMED_HOST'],
    ['Host repeated in HTTP/1.0', get('Host: x\r\nHost: x\r\n', '1.0'), 400, 'MALFORMED_HOST'],
    ['Host empty', get('Host:\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with a comma', get('Host: a,b\r\n'), 400, 'MALFORMED_HOST'],
    ['Host of 1,001 characters', get(`Host: ${'a'.repeat(1001)}\r\n`), 400, 'MALFORMED_HOST'],
    ['Host with a user part', get('Host: u@a\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with a path', get('Host: a/b\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with a backslash', get('Host: a\\b\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with a space', get('Host: a b\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with a port that is not a number', get('Host: a:b\r\n'), 400, 'MALFORMED_HOST'],
    ['Host with two colons', get('Host: a:1:2\r\n'), 400, 'MALFORMED_HOST'],
    ['a byte above 0x7F in the target', 'GET /api/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'MALFORMED_PATH'],
    ['a byte above 0x7F in the query', 'GET /api/test?\xe9 HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'MALFORMED_PATH'],
    ['more than 1,000 header lines', get(`Host: x\r\n${many(1000)}`), 400, 'TOO_MANY_HEADERS'],
    [
      'a second Authorization behind 990 header lines',
      get(`Host: x\r\n${many(990)}Authorization: a\r\nAuthorization: b\r\n`),
      400,
      'DUPLICATE_AUTHORIZATION',
    ],
    [
      'an empty Authorization beside a full one',
      get('Host: x\r\nAuthorization:\r\nAuthorization: b\r\n'),
      400,
      'DUPLICATE_AUTHORIZATION',
    ],
    ['a header section over 16 KiB', get(`Host: x\r\nA: ${'a'.repeat(17_000)}\r\n`), 431, 'HEADERS_TOO_LARGE'],
    ['a request line that is not HTTP', 'HELLO\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['TLS on a plain port', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'MALFORMED_REQUEST'],
    ['HTTP/2 prior knowledge', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['HTTP/3.0', get('Host: x\r\n', '3.0'), 400, 'MALFORMED_REQUEST'],
    ['white space before the colon', get('Host : x\r\n'), 400, 'MALFORMED_REQUEST'],
    ['a NUL in a header', get('Host: x\r\nA: a\0b\r\n'), 400, 'MALFORMED_REQUEST'],
    ['a folded header line', get('Host: x\r\nA: a\r\n b\r\n'), 400, 'MALFORMED_REQUEST'],
    [
      'Content-Length and Transfer-Encoding',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'two Content-Lengths',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'a negative Content-Length',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'an unknown transfer coding',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      501,
      'UNSUPPORTED_TRANSFER_CODING',
    ],
    [
      'an unknown transfer coding in a separate line',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      501,
      'UNSUPPORTED_TRANSFER_CODING',
    ],
    [
      'two content codings in separate lines',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}',
      415,
      'UNSUPPORTED_ENCODING',
    ],
    [
      'an empty transfer coding',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'a transfer coding in HTTP/1.0',
      'POST /api/test HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'a chunk size that is not a number',
      'POST /api/test HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    ['an unknown expectation', get('Host: x\r\nExpect: tea\r\n'), 417, 'EXPECTATION_FAILED'],
  ];
  for (const [name, request, status, code] of rows) {
    test(`${name} → ${status} ${code}`, async () => {
      assertEnvelope(parseRaw(await service.raw(Buffer.from(request, 'latin1'))), status, code);
    });
  }
});

test('a request of HTTP/2.0 is refused with 505', async () => {
  const text = await service.raw(get('Host: x\r\n', '2.0'));
  assert.match(text, /^HTTP\/1\.1 505 [\s\S]*"error_code":"HTTP_VERSION_NOT_SUPPORTED"/);
});

describe('accepted requests', () => {
  const rows: [name: string, request: string][] = [
    ['HTTP/1.0 without Host', get('', '1.0')],
    ['Host with an IPv6 address', get('Host: [::1]:3000\r\n')],
    ['header names in any case', get('hOsT: x\r\nX-REQUEST-ID: abc\r\n')],
    ['exactly 1,000 header lines', get(`Host: x\r\n${'A:\r\n'.repeat(999)}`)],
    ['an upgrade that is ignored', get('Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n')],
    ['an empty line before the request', `\r\n${get('Host: x\r\n')}`],
    ['a query that contains a question mark', 'GET /api/test??a=b HTTP/1.1\r\nHost: x\r\n\r\n'],
  ];
  for (const [name, request] of rows) {
    test(name, async () => {
      assert.equal(parseRaw(await service.raw(request)).status, 200);
    });
  }

  test('pipelined requests are answered in order', async () => {
    const text = await service.raw(
      'GET /api/test/hello HTTP/1.1\r\nHost: x\r\n\r\nGET /api/absent HTTP/1.1\r\nHost: x\r\n\r\nGET /api/test HTTP/1.1\r\nHost: x\r\n\r\n',
      3,
    );
    assert.deepEqual(
      Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), (match) => match[1]),
      ['200', '404', '200'],
    );
  });

  // The head of the 200 is sent before the parser reaches the bytes, and it keeps the connection. So a 400 follows. If
  // the head is sent later, it says `Connection: close`, and nothing follows (pipelining.test.ts).
  test('bytes that are not HTTP are refused after the answer to the request before them', async () => {
    const text = await service.raw('GET /api/test HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n', 2);
    assert.deepEqual(
      Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), (match) => match[1]),
      ['200', '400'],
    );
  });
});

describe('request id', () => {
  const rows: [name: string, sent: string, kept: boolean][] = [
    ['well formed', 'abc.DEF_1-2', true],
    ['128 characters', 'a'.repeat(128), true],
    ['129 characters', 'a'.repeat(129), false],
    ['with a space', 'a b', false],
    ['with a quote', 'a"b', false],
    ['empty', '', false],
    ['not ASCII', 'é', false],
  ];
  for (const [name, sent, kept] of rows) {
    test(`${name}: ${kept ? 'kept' : 'replaced'}`, async () => {
      const answer = parseRaw(await service.raw(Buffer.from(get(`Host: x\r\nX-Request-Id: ${sent}\r\n`), 'latin1')));
      const id = answer.headers.get('x-request-id') ?? '';
      assert.match(id, /^[A-Za-z0-9._-]{1,128}$/);
      assert.equal(id === sent, kept);
    });
  }
});

describe('Expect: 100-continue', () => {
  const post = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  test('gets 100 Continue when the body will be read', async () => {
    const socket = connect(service.port, '127.0.0.1');
    socket.write(post('/api/test', 2));
    const [interim] = await once(socket, 'data');
    assert.match(String(interim), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    socket.write('{}');
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  for (const [name, path, length, status] of [
    ['a group that does not exist', '/api/absent', 2, 404],
    ['a body over the limit', '/api/test', 1001, 413],
  ] as const) {
    test(`gets no 100 Continue for ${name}`, async () => {
      const text = await service.raw(post(path, length));
      assert.doesNotMatch(text, /100 Continue/);
      const answer = parseRaw(text);
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get('connection'), 'close');
    });
  }
});

describe('body limit', () => {
  test('a Content-Length over the limit is refused before the body arrives, and the connection ends', async () => {
    const answer = parseRaw(await service.raw('POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n'));
    assertEnvelope(answer, 413, 'BODY_TOO_LARGE');
    assert.equal(answer.headers.get('connection'), 'close');
  });

  test('the refusal reaches a client that is still sending its body', async () => {
    const answer = parseRaw(
      await service.raw(
        `POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n${'a'.repeat(4_000_000)}`,
      ),
    );
    assertEnvelope(answer, 413, 'BODY_TOO_LARGE');
  });

  test('a chunked body is refused when its chunks exceed the limit', async () => {
    const chunk = `1f4\r\n${'1'.repeat(500)}\r\n`;
    assertEnvelope(
      parseRaw(
        await service.raw(`POST /api/test HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`),
      ),
      413,
      'BODY_TOO_LARGE',
    );
  });

  test('a body of exactly the limit is accepted', async () => {
    const body = JSON.stringify('a'.repeat(998));
    const answer = parseRaw(
      await service.raw(`POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n${body}`),
    );
    assert.equal(answer.status, 200);
  });
});

describe('timeouts', () => {
  const cases: [name: string, settings: Record<string, string>, bytes: string][] = [
    ['a client that sends nothing', { HEADERS_TIMEOUT: '100ms' }, ''],
    ['a client that stops within the head', { HEADERS_TIMEOUT: '100ms' }, 'GET /api/test HTTP/1.1\r\nHost:'],
    [
      'a client that stops within the body',
      { REQUEST_TIMEOUT: '100ms', HEADERS_TIMEOUT: '50ms' },
      'POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12',
    ],
  ];
  for (const [name, settings, bytes] of cases) {
    test(`${name} gets 408`, async (t) => {
      const slow = await startService({ settings });
      t.after(slow.close);
      assertEnvelope(parseRaw(await slow.raw(bytes)), 408, 'REQUEST_TIMEOUT');
    });
  }

  test('an idle connection is closed after KEEP_ALIVE_TIMEOUT', async (t) => {
    const idle = await startService({ settings: { KEEP_ALIVE_TIMEOUT: '50ms' } });
    t.after(idle.close);
    const text = await idle.raw(get('Host: x\r\n'), 2);
    assert.match(text, /^HTTP\/1\.1 200 /);
  });
});

describe('overload', () => {
  test('requests beyond MAX_IN_FLIGHT are refused at once with Retry-After', async (t) => {
    const controllers = {
      'HeldController.mjs':
        'let release; const held = new Promise((done) => { release = done; }); export default { index: () => held, deleted: () => (release({ held: true }), "free") };',
    };
    const busy = await startService({
      controllers,
      settings: { MAX_IN_FLIGHT: '2' },
      expectedErrors: ['request-failed'],
    });
    t.after(busy.close);
    const first = fetch(`${busy.url}/api/held`);
    while (busy.app.inFlight() < 1) await once(busy.app.server, 'request');
    const second = fetch(`${busy.url}/api/held`);
    while (busy.app.inFlight() < 2) await once(busy.app.server, 'request');
    const third = await fetch(`${busy.url}/api/held`);
    assert.equal(third.status, 503);
    assert.equal(third.headers.get('retry-after'), '1');
    assert.equal(((await third.json()) as { error_code: string }).error_code, 'OVERLOADED');
    // Otherwise, a page would see an error of CORS, and never the 503.
    const preflight = await fetch(`${busy.url}/api/held`, { method: 'OPTIONS' });
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [200, '*']);
    const raw = connect(busy.port, '127.0.0.1');
    raw.destroy();
    const controller = (await import(`file://${busy.dir}/HeldController.mjs`)) as { default: { deleted(): void } };
    controller.default.deleted();
    for (const answer of [await first, await second]) assert.deepEqual(await answer.json(), { held: true });
  });
});

test('a request whose client disconnects within the body is no longer in flight, and logs no error', async (t) => {
  const left = await startService({ settings: { LOG_LEVEL: 'info' } });
  t.after(left.close);
  for (const leave of ['destroy', 'resetAndDestroy', 'closeAllConnections'] as const) {
    for (const head of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
      const raw = connect(left.port, '127.0.0.1');
      raw.on('error', () => {});
      raw.write(`POST /api/test HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n3\r\nabc`);
      await once(left.app.server, 'request');
      assert.equal(left.app.inFlight(), 1);
      if (leave === 'closeAllConnections') left.app.server.closeAllConnections();
      else raw[leave]();
      while (left.app.inFlight() > 0) await new Promise(setImmediate);
    }
  }
  assert.equal(left.lines.filter(({ event }) => event === 'request').length, 6);
});

test('a request whose client disconnects while its group is imported is no longer in flight', async (t) => {
  const gate = globalThis as unknown as { gateOfHttpTest?: Promise<void> };
  let open = () => {};
  gate.gateOfHttpTest = new Promise((done) => {
    open = done;
  });
  const source = `
    await globalThis.gateOfHttpTest;
    export default class {
      static operations = { upload: { body: 'stream' } };
      index() { return 1; }
      created(data) { return data; }
      async upload(pieces) { for await (const piece of pieces) if (piece.length === 0) return 2; }
    }`;
  const left = await startService({ controllers: { 'GatedController.mjs': source } });
  t.after(left.close);
  const heads = [
    'Content-Length: 10\r\n\r\nabc',
    'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    'Content-Length: 3\r\n\r\n"a"',
  ];
  const rows = heads.flatMap((head) =>
    ['gated', 'gated/upload'].flatMap((path) =>
      (['destroy', 'resetAndDestroy'] as const).map((leave) => [head, path, leave] as const),
    ),
  );
  const closed: Promise<unknown>[] = [];
  const leavers: (() => void)[] = [];
  for (const [head, path, leave] of rows) {
    const accepted = once(left.app.server, 'connection');
    const raw = connect(left.port, '127.0.0.1');
    raw.write(`POST /api/${path} HTTP/1.1\r\nHost: x\r\n${head}`);
    const [peer] = (await accepted) as [Socket];
    const before = left.app.inFlight();
    while (left.app.inFlight() === before) await new Promise(setImmediate);
    closed.push(new Promise((done) => peer.once('close', done)));
    leavers.push(() => void raw[leave]());
  }
  for (const leave of leavers) leave();
  await Promise.all(closed);
  open();
  assert.equal((await fetch(`${left.url}/api/gated`)).status, 200);
  for (const end = performance.now() + 60_000; left.app.inFlight() > 0 && performance.now() < end; )
    await new Promise(setImmediate);
  assert.equal(left.app.inFlight(), 0);
});

test('a client that disconnects after a complete body is logged once, with status 499', async (t) => {
  const shared = globalThis as unknown as { answerOfHttpTest?: () => void };
  const source =
    'export default { created: () => new Promise((done) => { globalThis.answerOfHttpTest = () => done({}); }) };';
  const left = await startService({ controllers: { 'HeldController.mjs': source } });
  t.after(left.close);
  const accepted = once(left.app.server, 'connection');
  const raw = connect(left.port, '127.0.0.1');
  raw.write('POST /api/held HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
  const [peer] = (await accepted) as [Socket];
  while (shared.answerOfHttpTest === undefined) await new Promise(setImmediate);
  const closed = once(peer, 'close');
  raw.destroy();
  await closed;
  shared.answerOfHttpTest();
  while (left.app.inFlight() > 0) await new Promise(setImmediate);
  assert.deepEqual(
    left.lines.map(({ event, status }) => [event, status]),
    [['request', 499]],
  );
});

test('a body that is complete before its group is imported reaches the operation', async (t) => {
  const service = await startService({
    controllers: {
      'SlowController.mjs':
        'await new Promise((done) => setTimeout(done, 50)); export default { created: (data) => ({ data }), updated: (data) => ({ data }) };',
    },
  });
  t.after(service.close);
  const body = JSON.stringify({ text: 'x'.repeat(1000) });
  const post = (path: string, framed: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framed}`;
  // The second request is chunked and pipelined behind the first.
  const answers = await service.raw(
    post('/api/slow', `Content-Length: ${body.length}\r\n\r\n${body}`) +
      post('/api/slow', `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`),
    2,
  );
  assert.equal(answers.split(JSON.stringify({ data: JSON.parse(body) })).length, 3, answers.slice(0, 500));
});

test('an answer of a draining service ends its connection', async (t) => {
  const draining = await startService();
  t.after(draining.close);
  draining.app.setDraining();
  for (const request of [
    get('Host: x\r\n'),
    'OPTIONS /api HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /x HTTP/1.1\r\nHost: x\r\n\r\n',
  ]) {
    assert.equal(parseRaw(await draining.raw(request, 2)).headers.get('connection'), 'close');
  }
});

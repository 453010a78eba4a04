// The log line of each request: its fields, its caller, and that it is written when the last byte is sent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createAccessLog } from '../../src/request/access-log.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { type LogLine, type Service, startService } from '../support/service.ts';

function lineOf(facts: object, status = 200, bytes = 96, took = 12.3456): Record<string, unknown> {
  const lines: string[] = [];
  const exchange = {
    resolvedPath: { path: { raw: '/api/test' } },
    verb: 'GET',
    groupInUrl: 'test',
    group: 'Test',
    operation: 'index',
    caller: { credentialId: '' },
    requestId: 'r-1',
    startedAt: 5,
  };
  createAccessLog({ write: (line) => void lines.push(line), flush() {} })(
    { ...exchange, ...facts } as unknown as Exchange,
    status,
    bytes,
    5 + took,
  );
  assert.equal(lines.length, 1);
  assert.ok(lines[0]?.endsWith('}\n') && lines[0].indexOf('\n') === lines[0].length - 1);
  const { time, pid, level, event, ...rest } = JSON.parse(lines[0] as string);
  assert.deepEqual([pid, level, event], [process.pid, 'info', 'request']);
  assert.ok(Math.abs(Date.parse(time) - Date.now()) < 5000);
  return rest;
}

describe('a line of the access log', () => {
  const usual = {
    method: 'GET',
    path: '/api/test',
    page: 'test',
    operation: 'index',
    status: 200,
    duration_ms: 12.346,
    bytes: 96,
    request_id: 'r-1',
  };
  const rows: [name: string, facts: object, line: object][] = [
    ['has the facts of the request', {}, usual],
    [
      'names the group that answers, not the group in the URL',
      { groupInUrl: 'other', group: 'Sdk' },
      { ...usual, page: 'sdk' },
    ],
    [
      'names an explicit route',
      { groupInUrl: 'register', group: '', operation: 'register' },
      { ...usual, page: 'register', operation: 'register' },
    ],
    [
      'has an empty page and operation when no group answers',
      { groupInUrl: 'x', group: '', operation: '' },
      { ...usual, page: '', operation: '' },
    ],
    ['names the credential', { caller: { credentialId: 'A1b2' } }, { ...usual, credential: 'A1b2' }],
    ['names an operation that is a route', { operation: 'GET {id}/"\\' }, { ...usual, operation: 'GET {id}/"\\' }],
    [
      'has a path with quotes and backslashes unchanged',
      { resolvedPath: { path: { raw: '/api/a"b\\c%20{' } } },
      { ...usual, path: '/api/a"b\\c%20{' },
    ],
    ['has an empty path when the request has none', { resolvedPath: undefined }, { ...usual, path: '' }],
  ];
  for (const [name, facts, line] of rows) test(name, () => assert.deepEqual(lineOf(facts), line));
});

describe('the access log of a service', () => {
  const controllers = {
    'TestController.mjs': `export default class { index() { return { ok: true } } big() { return 'x'.repeat(30_000_000) } }`,
    'HoldController.mjs': `export default class {
      created(data, { signal }) { globalThis.hasBegunToHold = true; return new Promise((_, fail) => signal.addEventListener('abort', () => fail(new Error('left')))) }
    }`,
    'SdkController.mjs': 'export default class { index() { return { sdk: true } } }',
  };
  let service: Service;
  before(async () => {
    const row = { application: { id: 'known', name: 'n' }, handler: 'Sdk', methods: undefined };
    const lost = { application: { id: 'lost', name: 'n' }, handler: 'Absent', methods: undefined };
    const credentials = {
      identify(text: string) {
        if (text === 'refused') return { kind: 'refused' as const, reason: 'expired', id: 'old' };
        return text === 'known'
          ? { kind: 'row' as const, row }
          : text === 'lost'
            ? { kind: 'row' as const, row: lost }
            : { kind: 'foreign' as const };
      },
    };
    service = await startService({
      controllers,
      settings: { REQUEST_TIMEOUT: '1s' },
      parts: { credentials: credentials as never },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => service.close());

  const linesOf = (id: string, { lines } = service): LogLine[] => lines.filter(({ request_id }) => request_id === id);
  async function lineOfRequest(id: string, of = service): Promise<LogLine> {
    for (;;) {
      const line = linesOf(id, of).find(({ event }) => event === 'request');
      if (line !== undefined) return line;
      await new Promise((later) => setTimeout(later, 5));
    }
  }

  test('a line is written after the last byte is sent, not before', async (t) => {
    // A client that reads slowly is not cut here.
    const patient = await startService({ controllers });
    t.after(patient.close);
    const client = connect(patient.port, '127.0.0.1');
    client.write('GET /api/test/big HTTP/1.1\r\nHost: x\r\nX-Request-Id: slow\r\n\r\n');
    let read = 0;
    for await (const chunk of client) {
      if (read === 0) assert.deepEqual(linesOf('slow', patient), []);
      read += chunk.length;
      if (read > 30_000_000) break;
    }
    const { status, bytes } = await lineOfRequest('slow', patient);
    assert.deepEqual([status, bytes], [200, '{"data":""}'.length + 30_000_000]);
  });

  for (const leave of ['resetAndDestroy', 'destroy', 'end'] as const) {
    test(`a client that disconnects within the answer is logged as 499 with the bytes sent: ${leave}`, async () => {
      const client = connect(service.port, '127.0.0.1');
      client.write(`GET /api/test/big HTTP/1.1\r\nHost: x\r\nX-Request-Id: left-${leave}\r\n\r\n`);
      await once(client, 'data');
      client.pause();
      client[leave]();
      const { status, bytes } = await lineOfRequest(`left-${leave}`);
      assert.equal(status, 499);
      assert.ok((bytes as number) > 0 && (bytes as number) < 30_000_000, String(bytes));
      client.destroy();
    });
  }

  test('a client that leaves while its operation runs is logged as 499, although it has sent a whole body', async () => {
    const client = connect(service.port, '127.0.0.1');
    const head = 'POST /api/hold HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Id: whole';
    client.write(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`);
    while (!('hasBegunToHold' in globalThis)) await new Promise((turn) => setImmediate(turn));
    client.destroy();
    assert.equal((await lineOfRequest('whole')).status, 499);
  });

  const rows: [
    name: string,
    path: string,
    method: string,
    authorization: string,
    line: object,
    other: object | undefined,
  ][] = [
    ['a credential', '/api/test', 'GET', 'known', { page: 'sdk', credential: 'known', status: 200 }, undefined],
    [
      'a refused credential',
      '/api/test',
      'GET',
      'refused',
      { page: '', credential: 'old', status: 401 },
      { event: 'request-refused', level: 'info', credential: 'old', reason: 'expired' },
    ],
    [
      'a foreign Authorization on an absent group',
      '/api/absent',
      'GET',
      'foreign',
      { page: '', status: 500 },
      { event: 'request-refused', level: 'info', error_code: 'DELEGATED_GROUP_NOT_FOUND', stack: undefined },
    ],
    [
      'a verb operation that the group lacks',
      '/api/test',
      'PATCH',
      '',
      { page: 'test', status: 500 },
      { event: 'request-refused', level: 'info', page: 'test', stack: undefined },
    ],
    ['HEAD', '/api/test', 'HEAD', '', { status: 200, bytes: 0 }, undefined],
    [
      'a handler that does not exist',
      '/api/test',
      'GET',
      'lost',
      { page: '', credential: 'lost', status: 500 },
      { event: 'request-failed', level: 'error', credential: 'lost' },
    ],
  ];
  for (const [name, path, method, authorization, expected, other] of rows) {
    test(name, async () => {
      const id = name.replaceAll(' ', '-');
      await fetch(service.url + path, {
        method,
        headers: { 'x-request-id': id, ...(authorization !== '' && { authorization }) },
      });
      const line = await lineOfRequest(id);
      const pick = (from: LogLine | undefined, like: object) =>
        Object.fromEntries(Object.keys(like).map((key) => [key, from?.[key]]));
      assert.deepEqual(pick(line, expected), expected);
      const others = linesOf(id).filter(({ event }) => event !== 'request');
      assert.equal(others.length, other === undefined ? 0 : 1);
      if (other !== undefined) assert.deepEqual(pick(others[0], other), other);
    });
  }
});

test('a request whose client has left, and whose operation does not end, has its line when the worker gives it up', async (t) => {
  const running = await startService({
    controllers: {
      'XController.mjs': "export default { index: () => new Promise(() => process.emit('test:endless')) }",
    },
  });
  t.after(() => running.close());
  const begun = once(process, 'test:endless');
  const client = connect(running.port, '127.0.0.1').on('error', () => {});
  client.write('GET /api/x HTTP/1.1\r\nHost: x\r\nX-Request-Id: endless\r\n\r\n');
  await begun;
  client.destroy();
  const line = () => running.lines.find(({ event, request_id: id }) => event === 'request' && id === 'endless');
  for (let turn = 0; turn < 1000 && line() === undefined; turn++) {
    running.app.giveUpWork();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.deepEqual([line()?.status, line()?.bytes], [499, 0]);
});

test('an operation is noted once, by its verb, its route and the id of its request, when its first code runs', async (t) => {
  const notes: string[][] = [];
  const running = await startService({
    controllers: {
      'XController.mjs': `export default {
        operations: { 'GET {id}': { access: () => true } }, 'GET {id}': () => ({}), created: () => ({}) }`,
    },
    parts: { noteBegin: (...note) => void notes.push(note) },
  });
  t.after(() => running.close());
  for (const path of ['x/7', 'absent'])
    await fetch(`${running.url}/api/${path}`, { headers: { 'x-request-id': path.replace('/', '-') } });
  assert.deepEqual(notes, [['GET /api/x/{id}', 'x-7']]);
});

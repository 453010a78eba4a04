// Checks the files in deploy/ with the real programs where they are installed: systemd-analyze, haproxy and nginx.
// Requests go through both proxies, which must forward some fields and may repeat some requests. deploy/try.sh does a
// longer check, with rolls and a kill.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { parseSettings } from '../../src/base/config.ts';
import { settingRows } from '../../src/base/settings.ts';
import type { Answer } from '../support/cluster-client.ts';
import { createFolder, DEPLOY, nginxArguments, read, run, startProxy, without } from '../support/deploy-proxy.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const DEFAULTS = parseSettings({}, [], { cores: 1 });
const SETTING_NAMES = settingRows({ cores: 1 }).map(({ name }) => name);
/** The milliseconds after DRAIN_TIMEOUT until the service has ended at the latest (KILL_GRACE of workers/pool.ts). */
const GRACE = 13_000;

describe('gatefold.service', () => {
  const unit = new Map<string, string[]>();
  for (const [, key = '', value = ''] of read('gatefold.service').matchAll(/^(\w+)=(.*)$/gm))
    unit.set(key, [...(unit.get(key) ?? []), value]);
  const only = (key: string) => unit.get(key)?.[0] ?? '';
  const environment = new Map((unit.get('Environment') ?? []).map((pair) => pair.split('=') as [string, string]));

  test('systemd-analyze verifies the unit and rates its exposure as low', { skip: without('systemd-analyze') }, (t) => {
    const path = join(createFolder(t), 'gatefold.service');
    // systemd-analyze checks that the programs of the unit exist.
    writeFileSync(
      path,
      read('gatefold.service').replace('/usr/bin/node', process.execPath).replaceAll('/opt/gatefold', ROOT),
    );
    assert.deepEqual(run('systemd-analyze', ['verify', path]), { status: 0, output: '' });
    const { status, output } = run('systemd-analyze', [
      'security',
      '--offline=true',
      '--threshold=20',
      '--no-pager',
      path,
    ]);
    if (/unrecognized option|Unknown option/.test(output)) return t.skip('this systemd-analyze does not judge a file');
    assert.equal(status, 0, output.split('\n').slice(-3).join('\n'));
  });

  test('the unit sets only known settings, and lets the service write only to the data folder', () => {
    for (const name of environment.keys()) assert.ok(SETTING_NAMES.includes(name), name);
    assert.equal(environment.get('DATA_DIR'), `/var/lib/${only('StateDirectory')}`);
    assert.equal(only('ProtectSystem'), 'strict');
    assert.equal(unit.has('ReadWritePaths'), false);
    assert.ok(environment.get('CONTROLLERS_DIR')?.startsWith(`${only('ReadOnlyPaths')}/`));
  });

  test('the unit gives a stop time to drain, and ends the whole process group', () => {
    const { drainTimeout } = parseSettings(Object.fromEntries(environment), [], { cores: 1 });
    assert.ok(Number(only('TimeoutStopSec')) * 1000 > drainTimeout + GRACE);
    assert.equal(only('KillMode'), 'mixed');
    assert.equal(only('ExecReload'), '/bin/kill -HUP $MAINPID');
    assert.equal(only('OOMPolicy'), 'continue');
  });

  test('the unit lets V8 compile code', () => assert.equal(unit.has('MemoryDenyWriteExecute'), false));
});

describe('haproxy.cfg and nginx.conf', () => {
  test('haproxy accepts haproxy.cfg without a warning', { skip: without('haproxy') }, () => {
    const { status, output } = run('haproxy', ['-c', '-f', join(DEPLOY, 'haproxy.cfg')]);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /WARNING/);
  });

  test('nginx accepts nginx.conf', { skip: without('nginx') }, (t) => {
    const { status, output } = run('nginx', ['-t', ...nginxArguments(createFolder(t), read('nginx.conf'))]);
    assert.equal(status, 0, output);
  });

  const milliseconds = (text: string | undefined) => Number(text?.replace('s', '')) * 1000;
  const haproxy = (name: string) =>
    milliseconds(new RegExp(`^ *timeout ${name} (\\d+s)$`, 'm').exec(read('haproxy.cfg'))?.[1]);
  const nginx = (name: string) => new RegExp(`^ *${name} (\\S+);`, 'm').exec(read('nginx.conf'))?.[1];
  const rows: readonly [string, boolean][] = [
    ['HAProxy waits longer for an answer than an operation may take', haproxy('server') > DEFAULTS.operationTimeout],
    [
      'nginx waits longer for an answer than an operation may take',
      milliseconds(nginx('proxy_read_timeout')) > DEFAULTS.operationTimeout,
    ],
    ['HAProxy waits for a header section as long as the service', haproxy('http-request') === DEFAULTS.headersTimeout],
    [
      'nginx waits for a header section as long as the service',
      milliseconds(nginx('client_header_timeout')) === DEFAULTS.headersTimeout,
    ],
    ['HAProxy waits for a body as long as the service', haproxy('client') === DEFAULTS.requestTimeout],
    [
      'nginx waits for a body as long as the service',
      milliseconds(nginx('client_body_timeout')) === DEFAULTS.requestTimeout,
    ],
    [
      'nginx accepts a body as large as the service',
      Number(nginx('client_max_body_size')?.replace('m', '')) * 2 ** 20 === DEFAULTS.bodyLimit,
    ],
    ['nginx closes idle connections to the service before a draining worker does', upstreamIdle() < 1500],
  ];
  function upstreamIdle(): number {
    return milliseconds(/upstream gatefold \{[\s\S]*?keepalive_timeout (\d+s);/.exec(read('nginx.conf'))?.[1]);
  }
  for (const [name, holds] of rows) test(name, () => assert.ok(holds));
});

for (const proxy of ['haproxy', 'nginx'] as const) {
  describe(`through ${proxy}`, { skip: without(proxy) }, () => {
    test('the proxy forwards the target, Authorization and a valid request id unchanged', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      const answer = await ask('GET /api//test%2Fhello?x=%20&x=a+b HTTP/1.1', [
        'Authorization: Bearer gfk_a  b, c',
        'X-Request-Id: order-7.A_b',
      ]);
      assert.equal(answer.status, 200);
      const [line, ...headers] = seen.at(-1)?.split('\r\n') ?? [];
      assert.equal(line, 'GET /api//test%2Fhello?x=%20&x=a+b HTTP/1.1');
      assert.deepEqual(valuesOf(headers, 'authorization'), ['Bearer gfk_a  b, c']);
      assert.deepEqual(valuesOf(headers, 'x-request-id'), ['order-7.A_b']);
      assert.deepEqual(valuesOf(headers, 'x-forwarded-for'), ['127.0.0.1']);
    });

    test('the proxy replaces a missing or invalid request id, and the X-Forwarded-For of the client', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      for (const sent of [[], ['X-Request-Id: a b'], [`X-Request-Id: ${'a'.repeat(129)}`]]) {
        await ask('GET /api/test HTTP/1.1', [...sent, 'X-Forwarded-For: 192.0.2.1']);
        const headers = seen.at(-1)?.split('\r\n') ?? [];
        assert.match(valuesOf(headers, 'x-request-id').join(), /^[0-9a-f-]{32,36}$/);
        assert.deepEqual(valuesOf(headers, 'x-forwarded-for'), ['127.0.0.1']);
      }
    });

    test('the proxy never merges two Authorization headers', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      const answer = await ask('GET /api/test HTTP/1.1', ['Authorization: Bearer a', 'Authorization: Bearer b']);
      const arrived = seen
        .map((head) => valuesOf(head.split('\r\n'), 'authorization'))
        .filter(({ length }) => length > 0);
      // HAProxy forwards both fields, and the service refuses them. nginx refuses them itself.
      if (proxy === 'haproxy') assert.deepEqual(arrived, [['Bearer a', 'Bearer b']]);
      else assertEnvelope(answer, 400, 'MALFORMED_REQUEST');
      if (proxy === 'nginx') assert.deepEqual(arrived, []);
    });

    const repeated = { GET: true, HEAD: true, PUT: true, DELETE: true, OPTIONS: true, POST: false, PATCH: false };
    for (const [method, isRepeated] of Object.entries(repeated)) {
      test(`the proxy sends an unanswered ${method} ${isRepeated ? 'again' : 'only once'}`, async (t) => {
        const { ask, seen } = await startProxy(t, proxy, ({ count }) => (count === 1 ? 'hang up' : 'answer'));
        const answer = await ask(`${method} /api/test HTTP/1.1`, ['Content-Length: 0', 'X-Request-Id: once']);
        assert.equal(seen.length, isRepeated ? 2 : 1);
        if (isRepeated) assert.equal(answer.status, 200);
        else assertEnvelope(answer, 502, 'UPSTREAM_FAILED', 'once');
      });
    }

    test('the proxy adds no CORS or cache header to an answer of the service, 503 or 200', async (t) => {
      const { ask } = await startProxy(t, proxy, ({ count }) => (count === 1 ? 'refuse' : 'answer'));
      for (const status of [503, 200]) {
        const answer = await ask('POST /api/test HTTP/1.1', ['Content-Length: 0']);
        assert.equal(answer.status, status);
        assert.equal(valuesOf(answer.headers.split('\r\n'), 'access-control-allow-origin').length, 1);
        assert.equal(valuesOf(answer.headers.split('\r\n'), 'cache-control').length, 0);
      }
    });

    if (proxy !== 'nginx') return;
    test('the proxy answers a body above the limit with the error envelope, and forwards nothing', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      assertEnvelope(
        await ask('POST /api/test HTTP/1.1', [`Content-Length: ${DEFAULTS.bodyLimit + 1}`, 'X-Request-Id: big']),
        413,
        'BODY_TOO_LARGE',
        'big',
      );
      assert.equal(seen.length, 0);
    });
  });
}

test('the Dockerfile copies existing files and uses a Node that loads TypeScript', () => {
  const text = read('Dockerfile');
  for (const [, names = ''] of text.matchAll(/^COPY (?!--from)(.+) \S+$/gm))
    for (const name of names.split(' ')) assert.ok(existsSync(join(ROOT, name)), name);
  for (const [, major] of text.matchAll(/^FROM node:(\d+)-/gm)) assert.ok(Number(major) >= 24);
});

test('bash accepts the syntax of try.sh', { skip: without('bash') }, () => {
  assert.deepEqual(run('bash', ['-n', join(DEPLOY, 'try.sh')]), { status: 0, output: '' });
});

function valuesOf(lines: readonly string[], name: string): string[] {
  return lines
    .filter((line) => line.toLowerCase().startsWith(`${name}:`))
    .map((line) => line.slice(name.length + 1).trim());
}

function assertEnvelope({ status, headers, body }: Answer, expected: number, code: string, id?: string): void {
  assert.equal(status, expected, body);
  const lines = headers.split('\r\n');
  assert.deepEqual(valuesOf(lines, 'content-type'), ['application/json; charset=UTF-8']);
  assert.deepEqual(valuesOf(lines, 'access-control-allow-origin'), ['*']);
  assert.deepEqual(valuesOf(lines, 'cache-control'), ['no-store']);
  const envelope = JSON.parse(body) as Record<string, unknown>;
  assert.deepEqual(Object.keys(envelope), ['status', 'error_code', 'message', 'timestamp', 'request_id']);
  assert.deepEqual([envelope.status, envelope.error_code], ['error', code]);
  assert.ok(Number.isInteger(envelope.timestamp) && Math.abs(Number(envelope.timestamp) - Date.now() / 1000) < 60);
  if (id !== undefined) assert.equal(envelope.request_id, id);
}

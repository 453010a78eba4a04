// What deploy/ ships, held against the real programs where they are installed: systemd-analyze, haproxy, nginx, the
// Kubernetes types. Requests go through both proxies, for what they must pass on and may repeat. The whole journey, with
// rolls and a kill, is deploy/try.sh.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseSettings, type Settings, settingRows } from '../src/config.ts';
import { openConnection } from './support/cluster-client.ts';
import { type Plain, parsePlainYaml } from './support/plain-yaml.ts';

const ROOT = resolve(import.meta.dirname, '..');
const DEPLOY = join(ROOT, 'deploy');
const DEFAULTS = parseSettings({}, [], { cores: 1 });
const SETTING_NAMES = settingRows({ cores: 1 }).map(({ name }) => name);
/** What a worker gets after DRAIN_TIMEOUT before it is killed. */
const GRACE = 2000;

const read = (name: string) => readFileSync(join(DEPLOY, name), 'utf8');

/** The path of a program, or undefined. Debian keeps servers where a user's PATH does not look. */
function find(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, program)).find(existsSync);
}

/** To be given as `skip`: false, or what is missing. */
const without = (program: string) => (find(program) === undefined ? `there is no ${program} on this machine` : false);

function createFolder(test: Pick<TestContext, 'after'>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-deploy-')));
  chmodSync(folder, 0o755);
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function run(program: string, args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(find(program) ?? program, args, { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

describe('gatefold.service', () => {
  const unit = new Map<string, string[]>();
  for (const [, key = '', value = ''] of read('gatefold.service').matchAll(/^(\w+)=(.*)$/gm))
    unit.set(key, [...(unit.get(key) ?? []), value]);
  const only = (key: string) => unit.get(key)?.[0] ?? '';
  const environment = new Map((unit.get('Environment') ?? []).map((pair) => pair.split('=') as [string, string]));

  test('systemd-analyze finds it sound, and exposed little', { skip: without('systemd-analyze') }, (t) => {
    const path = join(createFolder(t), 'gatefold.service');
    // It wants the programs to be there.
    writeFileSync(path, read('gatefold.service').replace('/usr/bin/node', process.execPath).replaceAll('/opt/gatefold', ROOT));
    assert.deepEqual(run('systemd-analyze', ['verify', path]), { status: 0, output: '' });
    const { status, output } = run('systemd-analyze', ['security', '--offline=true', '--threshold=20', '--no-pager', path]);
    if (/unrecognized option|Unknown option/.test(output)) return t.skip('this systemd-analyze does not judge a file');
    assert.equal(status, 0, output.split('\n').slice(-3).join('\n'));
  });

  test('every variable it sets is a setting, and what is writable is the folder of the tables', () => {
    for (const name of environment.keys()) assert.ok(SETTING_NAMES.includes(name), name);
    assert.equal(environment.get('DATA_DIR'), `/var/lib/${only('StateDirectory')}`);
    assert.equal(only('ProtectSystem'), 'strict');
    assert.equal(unit.has('ReadWritePaths'), false);
    assert.ok(environment.get('CONTROLLERS_DIR')?.startsWith(`${only('ReadOnlyPaths')}/`));
  });

  test('a stop has time to drain, and ends the whole group', () => {
    const { drainTimeout } = parseSettings(Object.fromEntries(environment), [], { cores: 1 });
    assert.ok(Number(only('TimeoutStopSec')) * 1000 > drainTimeout + GRACE);
    assert.equal(only('KillMode'), 'mixed');
    assert.equal(only('ExecReload'), '/bin/kill -HUP $MAINPID');
    assert.equal(only('OOMPolicy'), 'continue');
  });

  test('V8 may compile', () => assert.equal(unit.has('MemoryDenyWriteExecute'), false));
});

describe('haproxy.cfg and nginx.conf', () => {
  test('haproxy.cfg: haproxy takes it as it is', { skip: without('haproxy') }, () => {
    const { status, output } = run('haproxy', ['-c', '-f', join(DEPLOY, 'haproxy.cfg')]);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /WARNING/);
  });

  test('nginx.conf: nginx takes it', { skip: without('nginx') }, (t) => {
    const { status, output } = run('nginx', ['-t', ...nginxArguments(createFolder(t), read('nginx.conf'))]);
    assert.equal(status, 0, output);
  });

  const milliseconds = (text: string | undefined) => Number(text?.replace('s', '')) * 1000;
  const haproxy = (name: string) => milliseconds(new RegExp(`^ *timeout ${name} (\\d+s)$`, 'm').exec(read('haproxy.cfg'))?.[1]);
  const nginx = (name: string) => new RegExp(`^ *${name} (\\S+);`, 'm').exec(read('nginx.conf'))?.[1];
  const rows: readonly [string, boolean][] = [
    ['HAProxy waits longer for an answer than an operation may take', haproxy('server') > DEFAULTS.operationTimeout],
    ['nginx waits longer for an answer than an operation may take', milliseconds(nginx('proxy_read_timeout')) > DEFAULTS.operationTimeout],
    ['HAProxy gives a header section as long as the service', haproxy('http-request') === DEFAULTS.headersTimeout],
    ['nginx gives a header section as long as the service', milliseconds(nginx('client_header_timeout')) === DEFAULTS.headersTimeout],
    ['HAProxy waits for a body as long as the service', haproxy('client') === DEFAULTS.requestTimeout],
    ['nginx waits for a body as long as the service', milliseconds(nginx('client_body_timeout')) === DEFAULTS.requestTimeout],
    [
      'nginx takes a body as large as the service does',
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
    test('target, Authorization and a sound request id arrive as they were sent', async (t) => {
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

    test('a missing or unsound request id is replaced by one, and X-Forwarded-For of the client counts for nothing', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      for (const sent of [[], ['X-Request-Id: a b'], [`X-Request-Id: ${'a'.repeat(129)}`]]) {
        await ask('GET /api/test HTTP/1.1', [...sent, 'X-Forwarded-For: 192.0.2.1']);
        const headers = seen.at(-1)?.split('\r\n') ?? [];
        assert.match(valuesOf(headers, 'x-request-id').join(), /^[0-9a-f-]{32,36}$/);
        assert.deepEqual(valuesOf(headers, 'x-forwarded-for'), ['127.0.0.1']);
      }
    });

    test('two Authorization headers are never made one', async (t) => {
      const { ask, seen } = await startProxy(t, proxy);
      const answer = await ask('GET /api/test HTTP/1.1', ['Authorization: Bearer a', 'Authorization: Bearer b']);
      const arrived = seen.map((head) => valuesOf(head.split('\r\n'), 'authorization')).filter(({ length }) => length > 0);
      // HAProxy passes both on, for the service to refuse; nginx refuses them itself.
      if (proxy === 'haproxy') assert.deepEqual(arrived, [['Bearer a', 'Bearer b']]);
      else assertEnvelope(answer, 400, 'MALFORMED_REQUEST');
      if (proxy === 'nginx') assert.deepEqual(arrived, []);
    });

    const repeated = { GET: true, HEAD: true, PUT: true, DELETE: true, OPTIONS: true, POST: false, PATCH: false };
    for (const [method, isRepeated] of Object.entries(repeated)) {
      test(`${method} that a machine took and did not answer is ${isRepeated ? 'answered by another' : 'sent once'}`, async (t) => {
        const { ask, seen } = await startProxy(t, proxy, ({ count }) => (count === 1 ? 'hang up' : 'answer'));
        const answer = await ask(`${method} /api/test HTTP/1.1`, ['Content-Length: 0', 'X-Request-Id: once']);
        assert.equal(seen.length, isRepeated ? 2 : 1);
        if (isRepeated) assert.equal(answer.status, 200);
        else assertEnvelope(answer, 502, 'UPSTREAM_FAILED', 'once');
      });
    }

    test('an answer of the service is passed on with its own headers alone, whatever its status', async (t) => {
      const { ask } = await startProxy(t, proxy, ({ count }) => (count === 1 ? 'refuse' : 'answer'));
      for (const status of [503, 200]) {
        const answer = await ask('POST /api/test HTTP/1.1', ['Content-Length: 0']);
        assert.equal(answer.status, status);
        assert.equal(valuesOf(answer.headers.split('\r\n'), 'access-control-allow-origin').length, 1);
        assert.equal(valuesOf(answer.headers.split('\r\n'), 'cache-control').length, 0);
      }
    });

    if (proxy !== 'nginx') return;
    test('a body above the limit is refused in the envelope, before it is read', async (t) => {
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

describe('kubernetes', () => {
  const folder = join(DEPLOY, 'kubernetes');
  const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.yaml'));
  const manifests = new Map(files.map((name) => [name, parsePlainYaml(readFileSync(join(folder, name), 'utf8')) as Record<string, Plain>]));
  const deployment = manifests.get(join('base', 'deployment.yaml'));
  const spec = at(deployment, 'spec', 'template', 'spec');
  const container = at(spec, 'containers', 0);

  test('every manifest has the fields that the API has, and no other', { skip: withoutTypes() }, (t) => {
    const types = dirname(createRequire(import.meta.url).resolve('kubernetes-types/package.json'));
    const path = join(createFolder(t), 'manifests.ts');
    const text = [...manifests].flatMap(([name, manifest], i) => {
      if (manifest.kind === 'Kustomization') return [];
      const module = String(manifest.apiVersion).includes('/') ? manifest.apiVersion : `core/${manifest.apiVersion}`;
      // A patch has only what it changes; its sum is checked with kubectl below.
      if (name.endsWith('mount.yaml')) return [];
      return [
        `import type { ${manifest.kind} as T${i} } from ${JSON.stringify(join(types, String(module)))};`,
        `export const m${i}: T${i} = ${JSON.stringify(manifest)}; // ${name}`,
      ];
    });
    writeFileSync(path, text.join('\n'));
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const { status, output } = run(tsc, [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--ignoreConfig',
      '--types',
      '',
      '--module',
      'nodenext',
      path,
    ]);
    assert.equal(status, 0, output);
  });

  test('kubectl puts base and patch together', { skip: without('kubectl') }, () => {
    const { status, output } = run('kubectl', ['kustomize', join(folder, 'live-controllers')]);
    assert.equal(status, 0, output);
    for (const part of ['mountPath: /app/controllers', 'mountPath: /data', 'kind: PodDisruptionBudget'])
      assert.ok(output.includes(part), part);
  });

  test('a kustomization names every manifest beside it', () => {
    for (const [name, manifest] of manifests) {
      if (manifest.kind !== 'Kustomization') continue;
      const named = [
        ...((manifest.resources ?? []) as string[]),
        ...((manifest.patches ?? []) as { path: string }[]).map(({ path }) => path),
      ];
      for (const path of named) assert.ok(existsSync(join(folder, dirname(name), path)), path);
      const beside = files
        .filter((file) => dirname(file) === dirname(name) && file !== name)
        .map((file) => file.slice(dirname(name).length + 1));
      assert.deepEqual(named.filter((path) => path.endsWith('.yaml')).sort(), beside.sort());
    }
  });

  test('every variable it sets is a setting that makes sense', () => {
    const rows = at(container, 'env') as readonly { name: string; value?: string }[];
    for (const { name } of rows) assert.ok(SETTING_NAMES.includes(name), name);
    const settings = settingsOfPod();
    const port = (name: string) =>
      (at(container, 'ports') as readonly { name: string; containerPort: number }[]).find((row) => row.name === name)?.containerPort;
    assert.deepEqual([port('http'), port('ops')], [settings.port, settings.opsPort]);
    assert.equal(settings.opsHost, '0.0.0.0');
    assert.equal(settings.workers, Number(at(container, 'resources', 'requests', 'cpu')));
    const mounts = (at(container, 'volumeMounts') as readonly { mountPath: string; readOnly: boolean }[]).filter(
      ({ readOnly }) => readOnly,
    );
    assert.ok(mounts.some(({ mountPath }) => mountPath === settings.dataDir));
  });

  test('a pod has time to leave the endpoints, and to drain', () => {
    const pause = Number(at(container, 'lifecycle', 'preStop', 'exec', 'command', 1)) * 1000;
    assert.ok(pause > 0);
    assert.ok(Number(at(spec, 'terminationGracePeriodSeconds')) * 1000 > pause + settingsOfPod().drainTimeout + GRACE);
  });

  test('probes ask the operations port: readiness /readyz, liveness /livez', () => {
    for (const [probe, path] of [
      ['startupProbe', '/readyz'],
      ['readinessProbe', '/readyz'],
      ['livenessProbe', '/livez'],
    ] as const) {
      assert.deepEqual(at(container, probe, 'httpGet'), { path, port: 'ops' });
    }
  });

  test('it runs as nobody in particular, and can become nobody else', () => {
    assert.equal(at(spec, 'securityContext', 'runAsNonRoot'), true);
    assert.equal(at(spec, 'automountServiceAccountToken'), false);
    assert.deepEqual(at(container, 'securityContext'), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.match(read('Dockerfile'), new RegExp(`^USER ${at(spec, 'securityContext', 'runAsUser')}:`, 'm'));
  });

  test('no secret is written down', () => {
    assert.deepEqual(at(manifests.get(join('once', 'tables.yaml')), 'stringData'), {
      'production.json': '{"production":[]}\n',
      'identity-providers.json': '[]\n',
    });
  });

  function settingsOfPod(): Settings {
    const rows = at(container, 'env') as readonly { name: string; value?: string }[];
    return parseSettings(Object.fromEntries(rows.map(({ name, value }) => [name, value])), [], { cores: 64 });
  }
});

test('Dockerfile: what it copies is there, and runs on a Node that loads TypeScript', () => {
  const text = read('Dockerfile');
  for (const [, names = ''] of text.matchAll(/^COPY (?!--from)(.+) \S+$/gm))
    for (const name of names.split(' ')) assert.ok(existsSync(join(ROOT, name)), name);
  for (const [, major] of text.matchAll(/^FROM node:(\d+)-/gm)) assert.ok(Number(major) >= 24);
});

test('try.sh: bash takes it', { skip: without('bash') }, () => {
  assert.deepEqual(run('bash', ['-n', join(DEPLOY, 'try.sh')]), { status: 0, output: '' });
});

function withoutTypes(): string | false {
  try {
    createRequire(import.meta.url).resolve('kubernetes-types/package.json');
    return false;
  } catch {
    return 'the package kubernetes-types is not installed';
  }
}

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}

function valuesOf(lines: readonly string[], name: string): string[] {
  return lines.filter((line) => line.toLowerCase().startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim());
}

interface ProxyAnswer {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
}

function assertEnvelope({ status, headers, body }: ProxyAnswer, expected: number, code: string, id?: string): void {
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

interface RunningProxy {
  ask(line: string, headers: readonly string[]): Promise<ProxyAnswer>;
  /** The head of each request that reached a machine, health checks apart. */
  readonly seen: readonly string[];
}

type Behaviour = (request: { readonly count: number }) => 'answer' | 'refuse' | 'hang up';

/** The proxy with the configuration that is shipped, in front of three machines that write down what they are sent. */
async function startProxy(t: TestContext, proxy: 'haproxy' | 'nginx', behave: Behaviour = () => 'answer'): Promise<RunningProxy> {
  const seen: string[] = [];
  const machines = await Promise.all([1, 2, 3].map(() => startMachine(t, seen, behave)));
  const port = await freePort();
  const folder = createFolder(t);
  const config = read(proxy === 'haproxy' ? 'haproxy.cfg' : 'nginx.conf')
    .replace(/10\.0\.0\.1([123]):3000/g, (_, n: string) => `127.0.0.1:${machines[Number(n) - 1]}`)
    .replace('check port 3001', 'check')
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace('listen 80 ', `listen 127.0.0.1:${port} `)
    .replace('/run/haproxy/', `${folder}/`)
    .replace('/dev/log local0', 'stdout format raw local0')
    .replace(process.getuid?.() === 0 ? /^$/ : /^ *(user|group|chroot) .*$/gm, '');
  const path = join(folder, 'haproxy.cfg');
  if (proxy === 'haproxy') writeFileSync(path, config);
  const args = proxy === 'haproxy' ? ['-db', '-f', path] : [...nginxArguments(folder, config), '-g', 'daemon off; master_process off;'];
  const child = spawn(find(proxy) ?? proxy, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  t.after(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const ask = async (line: string, headers: readonly string[]): Promise<ProxyAnswer> => {
    const connection = openConnection(port);
    const outcome = await connection.ask(`${[line, 'Host: api.example.com', ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n`);
    connection.close();
    if ('kind' in outcome) throw new Error(`${outcome.kind}: ${outcome.detail}; ${output}`);
    return outcome;
  };
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Cannot start ${proxy}: ${output}`);
    const isUp = await isListening(port);
    if (isUp) return { ask, seen };
  }
}

/** An HTTP server on plain sockets: what arrives is to be seen byte by byte. */
async function startMachine(t: TestContext, seen: string[], behave: Behaviour): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.setEncoding('latin1').on('data', (data) => {
      const head = String(data).split('\r\n\r\n')[0] ?? '';
      if (head.startsWith('GET /readyz ')) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      seen.push(head);
      const behaviour = behave({ count: seen.length });
      if (behaviour === 'hang up') return void socket.end();
      const body = head.startsWith('HEAD') ? '' : '{}';
      const status = behaviour === 'answer' ? '200 OK' : '503 Service Unavailable';
      socket.write(`HTTP/1.1 ${status}\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isListening(port: number): Promise<boolean> {
  const { socket } = openConnection(port);
  const connected = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'close').then(() => false)]).catch(
    () => false,
  );
  socket.destroy();
  return connected;
}

/** nginx with the configuration, but with files of its own. */
function nginxArguments(folder: string, config: string): string[] {
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ');
  mkdirSync(join(folder, 'logs'));
  const text = config
    .replace('/run/nginx.pid', `${folder}/nginx.pid`)
    .replaceAll('/var/log/nginx/', `${folder}/logs/`)
    .replace(/^http \{$/m, `http { ${own}`)
    .replace(process.getuid?.() === 0 ? /^$/ : /^user .*$/m, '');
  writeFileSync(join(folder, 'nginx.conf'), text);
  return ['-c', join(folder, 'nginx.conf'), '-p', `${folder}/`, '-e', join(folder, 'logs', 'error.log')];
}

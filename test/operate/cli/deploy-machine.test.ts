// The part of `gatefold deploy` that runs on the machine, without ssh: which files are removed and which are kept.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pruneCopies, removeRelease } from '../../../src/operate/cli/deploy/folders.ts';
import { extract, runNpm, setModesAndCount } from '../../../src/operate/cli/deploy/release.ts';
import { readEnvironment, readRecord, restart, serviceGroup } from '../../../src/operate/cli/deploy/serving.ts';
import { createFolder } from '../../support/folder.ts';

test('pruneCopies removes old copies of Gatefold and keeps each copy in use', (t) => {
  const names = ['released', 'next', 'running', 'unused', 'half.part7', 'left.gone'];
  const dir = createFolder(t, {
    ...Object.fromEntries([...names, 'young'].map((name) => [`runtime/${name}/package.json`, '{}'])),
    'releases/20200101T000000000Z/.gatefold-release.json': '{"before":null,"runtime":"released","packages":""}',
    'current/node_modules/tsx/package.json': '{}',
  });
  const runtime = join(dir, 'runtime');
  symlinkSync('next', join(runtime, 'current'));
  symlinkSync('../current/node_modules', join(runtime, 'node_modules'));
  for (const name of names) utimesSync(join(runtime, name), 0, 0);
  pruneCopies(dir, join(runtime, 'running'));
  assert.deepEqual(readdirSync(runtime).sort(), ['current', 'next', 'node_modules', 'released', 'running', 'young']);
  assert.deepEqual(readdirSync(join(dir, 'current/node_modules')), ['tsx']);
});

test('an interrupted removal does not stop a later removal of the same name', (t) => {
  const dir = createFolder(t, {
    'runtime/0.1.0/package.json': '{}',
    'runtime/0.1.0.gone/dist/cli.js': '',
    'releases/20200101T000000000Z/a.js': '',
    'releases/.20200101T000000000Z.gone/a.js': '',
  });
  utimesSync(join(dir, 'runtime/0.1.0'), 0, 0);
  removeRelease(dir, '20200101T000000000Z');
  pruneCopies(dir, join(dir, 'runtime/0.2.0'));
  assert.deepEqual([readdirSync(join(dir, 'runtime')), readdirSync(join(dir, 'releases'))], [[], []]);
});

test('pruneCopies keeps every copy of Gatefold while a release has no valid note of its copy', (t) => {
  const note = 'releases/20200101T000000000Z/.gatefold-release.json';
  for (const text of ['{', 'null', '{"before":null}', undefined]) {
    const dir = createFolder(t, { 'runtime/0.1.0/package.json': '{}', 'releases/20200101T000000000Z/a.js': '' });
    if (text !== undefined) writeFileSync(join(dir, note), text);
    utimesSync(join(dir, 'runtime/0.1.0'), 0, 0);
    pruneCopies(dir, join(dir, 'runtime/0.2.0'));
    assert.deepEqual(readdirSync(join(dir, 'runtime')), ['0.1.0'], `note: ${text}`);
  }
});

test('a script that fails has its error and the cause in the message, and neither the source nor the stack', (t) => {
  const printed = [
    '> shop@1.0.0 predeploy',
    '/srv/shop/node_modules/drizzle/session.ts:42',
    '      throw new DrizzleQueryError(query, params, error as Error);',
    '            ^',
    'DrizzleQueryError: Failed query: ALTER TABLE "taks" ADD COLUMN "priority" integer;',
    '    at Session.queryWithCache (/srv/shop/node_modules/drizzle/session.ts:42:13)',
    '  cause: PostgresError: relation "taks" does not exist',
    '      at ErrorResponse (/srv/shop/node_modules/postgres/connection.js:815:30)',
    'npm error',
  ];
  const bin = createFolder(t, { npm: `#!/bin/sh\ncat <<'END'\n${printed.join('\n')}\nEND\nexit 1\n` });
  chmodSync(join(bin, 'npm'), 0o755);
  assert.throws(() => runNpm(['run', 'predeploy'], bin, { PATH: `${bin}:${process.env.PATH}` }), {
    message:
      'npm run predeploy ended with 1: DrizzleQueryError: Failed query: ALTER TABLE "taks" ADD COLUMN "priority" integer; | ' +
      'cause: PostgresError: relation "taks" does not exist',
  });
});

test('extract gives a stream up after a minute of silence, which begins again with each byte', async (t) => {
  const refresh = t.mock.fn();
  const setTimeout = t.mock.method(globalThis, 'setTimeout', () => ({ refresh }));
  const input = new PassThrough();
  const extracting = extract(input, createFolder(t, {}));
  const calls = setTimeout.mock.calls as unknown as readonly { readonly arguments: readonly [() => void, number] }[];
  const [endConnection = () => {}, ms] = calls[0]?.arguments ?? [];
  t.after(() => endConnection());
  for (const count of [1, 2]) {
    const arrival = once(input, 'data');
    input.write('x');
    await arrival;
    assert.deepEqual([ms, refresh.mock.callCount()], [60_000, count]);
  }
  endConnection();
  await assert.rejects(extracting, { message: 'Cannot extract the files: the connection is lost' });
});

describe('extract names why a stream is no release', () => {
  const rows: [name: string, tar: string | undefined, message: RegExp][] = [
    ['by the first line of tar', '#!/bin/sh\ncat >/dev/null\necho first >&2\necho second >&2\nexit 2\n', /: first$/],
    ['by the exit code of a silent tar', '#!/bin/sh\ncat >/dev/null\nexit 3\n', /: tar ended with 3$/],
    ['by the exit code of a tar that reads nothing', '#!/bin/sh\nexit 3\n', /: tar ended with 3$/],
    ['when there is no tar', undefined, /^there is no tar$/],
  ];
  // More than a pipe takes, so a tar that ends early breaks it.
  const pieces = Array<string>(16).fill('x'.repeat(65_536));
  for (const [name, tar, message] of rows)
    test(name, async (t) => {
      const bin = createFolder(t);
      if (tar !== undefined) writeFileSync(join(bin, 'tar'), tar, { mode: 0o755 });
      const path = process.env.PATH;
      t.after(() => {
        process.env.PATH = path;
      });
      process.env.PATH = tar === undefined ? bin : `${bin}:${path}`;
      await assert.rejects(extract(Readable.from(pieces), bin), { message });
    });
});

test('runNpm names a missing npm with its remedy, and an npm that cannot be started', (t) => {
  const bin = createFolder(t);
  assert.throws(() => runNpm(['ci'], bin, { PATH: bin }), {
    message: 'There is no npm on this machine: on Debian, apt-get install npm brings it',
  });
  writeFileSync(join(bin, 'npm'), '', { mode: 0o644 });
  assert.throws(() => runNpm(['ci', '--omit=dev', 'x'], bin, { PATH: bin }), /^Error: npm ci --omit=dev: .*EACCES/);
});

test('readRecord says who may read the record, and readEnvironment names a file that ends the shell', (t) => {
  const dir = createFolder(t, { env: 'exit 3\n', 'data/generation.json': '{}' });
  assert.throws(() => readEnvironment(dir), {
    message: `Cannot read ${join(dir, 'env')}: it is not what a shell reads`,
  });
  const mocks = (['statSync', 'accessSync'] as const).map((name) =>
    t.mock.method(fs, name, () => {
      throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
    }),
  );
  syncBuiltinESMExports();
  try {
    const reason = 'permission denied. Deploy as the user of the service, or as root';
    for (const [read, name] of [
      [() => readRecord(join(dir, 'data')), 'data/generation.json'],
      [() => readEnvironment(dir), 'env'],
    ] as const)
      assert.throws(read, { message: `Cannot read ${join(dir, name)}: ${reason}` });
  } finally {
    for (const { mock } of mocks) mock.restore();
    syncBuiltinESMExports();
  }
});

test('a restart that stays in the foreground ends the deployment, and not the service', async (t) => {
  const dir = createFolder(t, { restart: '#!/bin/sh\necho a line of the log; echo $$ >pid; exec sleep 600\n' });
  chmodSync(join(dir, 'restart'), 0o755);
  await assert.rejects(restart(dir, 10), {
    message: `${join(dir, 'restart')} has not ended for 0.01 s: have it start the service in the background`,
  });
  const pid = () => existsSync(join(dir, 'pid')) && Number(readFileSync(join(dir, 'pid'), 'utf8'));
  while (!pid()) await sleep(5);
  process.kill(Number(pid()));
});

describe('the modes of a release', () => {
  const FILES: Readonly<Record<string, readonly [received: number, own: string, service: string]>> = {
    'a.js': [0o644, '644', '644'],
    'b.js': [0o666, '644', '644'],
    'run.sh': [0o755, '755', '755'],
    'config/prod.json': [0o600, '600', '640 group'],
    'config/team.json': [0o660, '600', '640 group'],
    'config/tool.sh': [0o700, '700', '750 group'],
    'closed/a.json': [0o644, '644', '644'],
  };
  const FOLDERS = { config: ['755', '755'], closed: ['700', '750 group'], 'closed/inner': ['755', '755'] } as const;
  const GROUP = 12_345;

  const modesAfter = (t: TestContext, group: number | undefined): Record<string, string> => {
    const files = Object.keys(FILES);
    const folder = createFolder(t, Object.fromEntries([...files, 'closed/inner/x'].map((path) => [path, 'ab'])));
    for (const [path, [mode]] of Object.entries(FILES)) chmodSync(join(folder, path), mode);
    symlinkSync('config/prod.json', join(folder, 'link'));
    const order = { fileCount: files.length + 2, bytes: 2 * files.length + 2, closedFolders: ['closed', 'gone'] };
    setModesAndCount(folder, order, group);
    assert.throws(() => setModesAndCount(folder, { ...order, bytes: 1 }, group), / have arrived: the stream was cut/);
    return Object.fromEntries(
      [...files, ...Object.keys(FOLDERS)].map((path) => {
        const { mode, gid } = statSync(join(folder, path));
        return [path, `${(mode & 0o7777).toString(8)}${gid === GROUP ? ' group' : ''}`];
      }),
    );
  };
  const expected = (column: 0 | 1) => ({
    ...Object.fromEntries(Object.entries(FILES).map(([path, [, ...modes]]) => [path, modes[column]])),
    ...Object.fromEntries(Object.entries(FOLDERS).map(([path, modes]) => [path, modes[column]])),
  });

  test('keep a file or a folder closed that not everybody could read, if this user runs the service', (t) => {
    assert.deepEqual(modesAfter(t, undefined), expected(0));
  });

  const needsRoot = process.getuid?.() === 0 ? false : 'only root can set any group';
  test('let the group of another user read it, if that user runs the service', { skip: needsRoot }, (t) => {
    assert.deepEqual(modesAfter(t, GROUP), expected(1));
  });

  test('are refused with a remedy, when this user may not set the group', { skip: process.getuid?.() === 0 }, (t) => {
    assert.throws(
      () => modesAfter(t, 0),
      /The service could not read .*: deploy as the user of the service, or as root/,
    );
  });

  test('are refused with a remedy, when the group cannot be set', (t) => {
    assert.throws(
      () => modesAfter(t, 2 ** 40),
      /The service could not read \S+, which is not for everybody: deploy as the user of the service, or as root \(/,
    );
  });

  test('have the group of the data folder, unless this user owns it', (t) => {
    const dir = createFolder(t, { 'data/x': '', 'tables/x': '' });
    assert.equal(serviceGroup(dir, join(dir, 'tables')), undefined);
    assert.equal(serviceGroup(dir, join(dir, 'missing')), undefined);
    assert.equal(serviceGroup(join(dir, 'nowhere'), join(dir, 'missing')), undefined);
    if (process.getuid?.() !== 0) return;
    chownSync(join(dir, 'data'), GROUP + 1, GROUP);
    assert.equal(serviceGroup(dir, join(dir, 'missing')), GROUP);
    assert.equal(serviceGroup(dir, join(dir, 'tables')), undefined);
  });
});

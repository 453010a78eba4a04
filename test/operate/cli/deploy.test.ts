// `gatefold deploy` without a machine: its arguments, the files that are copied, and the scripts that a machine runs.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { releaseName } from '../../../src/operate/cli/deploy/folders.ts';
import { planProject } from '../../../src/operate/cli/deploy/project.ts';
import { probeCommand } from '../../../src/operate/cli/deploy/remote.ts';
import {
  isRunning,
  readEnvironment,
  readRecord,
  runProgram,
  waitForRelease,
} from '../../../src/operate/cli/deploy/serving.ts';
import { makeCommand, serviceScript, socketOf, unitOf, userOf } from '../../../src/operate/cli/deploy/setup.ts';
import { MARK, quote, runRemote } from '../../../src/operate/cli/deploy/ssh.ts';
import { parseTarget } from '../../../src/operate/cli/deploy/target.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';

const HOSTILE = `/srv/a shop's "best" $HOME \`id\` %h ; & ä`;

describe('parseTarget', () => {
  const rows: [text: string, host: string, dir: string][] = [
    ['vm', 'vm', '/srv/shop'],
    ['ada@vm', 'ada@vm', '/srv/shop'],
    ['ada@vm:/opt/api/', 'ada@vm', '/opt/api'],
    ['vm:api', 'vm', 'api'],
    ['vm:', 'vm', '/srv/shop'],
    ['vm:/a:b', 'vm', '/a:b'],
    [`vm:${HOSTILE}`, 'vm', HOSTILE],
    ['fe80::1', 'fe80::1', '/srv/shop'],
    ['ada@::1', 'ada@::1', '/srv/shop'],
    ['[::1]:/opt/api', '::1', '/opt/api'],
    ['ada@[::1]:api', 'ada@::1', 'api'],
    ['ssh://ada@vm:2222', 'ssh://ada@vm:2222', '/srv/shop'],
    ['ssh://ada@vm:2222/opt/api', 'ssh://ada@vm:2222', '/opt/api'],
  ];
  for (const [text, host, dir] of rows)
    test(text, () => assert.deepEqual(parseTarget(text, 'shop'), { name: text, host, dir }));
  for (const text of [
    '',
    ':/srv',
    '-oProxyCommand=id',
    '-oProxyCommand=id:/srv',
    'a b',
    'vm:/',
    'vm://',
    'vm:~/api',
    'vm:/srv/../etc',
    'vm:/a\nb',
    'vm:/a\\b',
  ])
    test(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parseTarget(text, 'shop')));
});

const PROJECT = { 'package.json': '{"name":"@ada/shop"}', 'controllers/AController.js': '', 'lib/a.js': 'abc' };

describe('planProject', () => {
  const plan = (root: string, settings: object = {}) =>
    planProject(root, {
      controllersDir: join(root, 'controllers'),
      dataDir: join(root, 'data'),
      tlsCert: undefined,
      tlsKey: undefined,
      ...settings,
    });

  test('lists the files of the project without keys, tables and certificates', (t) => {
    const root = makeProject(t, {
      ...PROJECT,
      'data/production.json': '{}',
      'tls/cert.pem': '',
      'tables/production.json': '{}',
      'secret.txt': '',
      '.env': '',
      '.env.local': '',
      '.env-production': '',
      'lib/.envrc': '',
      'lib/.ENV': '',
      'keys/putty.ppk': '',
      'keys/id_ed25519_sk': '',
      'keys/id_ed25519_sk.pub': '',
      'config/prod.env': '',
      'config/secrets.json': '',
      'config/secret.prod.yaml': '',
      'config/credentials.json': '',
      'lib/secrets.ts': '',
      'lib/secrets.test.mjs': '',
      'lib/credentials/find.ts': '',
      'lib/vite.env.d.ts': '',
      '.htpasswd': '',
      '.netrc': '',
      '.pgpass': '',
      '.git-credentials': '',
      'lib/server.KEY': '',
      'config/ca.pem': '',
      '.git/HEAD': '',
      'node_modules/x/index.js': '',
      'lib/node_modules/x.js': '',
      'lib/data/table.js': 'code',
      '.npmrc': '',
      '-rf': '',
    });
    symlinkSync('a.js', join(root, 'lib/link.js'));
    symlinkSync('nowhere', join(root, 'lib/.#a.js'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    symlinkSync('secret.txt', join(root, 'linked.txt'));
    const link = join(makeProject(t, {}), 'link');
    symlinkSync(root, link);
    const planned = plan(root, { dataDir: join(root, 'tables'), tlsKey: join(root, 'linked.txt') });
    assert.deepEqual(
      plan(root, { dataDir: join(link, 'tables'), tlsCert: join(root, 'linked.txt') }).files,
      planned.files,
      'a setting names a secret through a link',
    );
    const files = [
      '-rf',
      '.npmrc',
      'keys/id_ed25519_sk.pub',
      'controllers/AController.js',
      'lib/a.js',
      'lib/secrets.ts',
      'lib/secrets.test.mjs',
      'lib/credentials/find.ts',
      'lib/vite.env.d.ts',
      'lib/data/table.js',
      'lib/link.js',
    ];
    assert.deepEqual([...planned.files].sort(), [...files, 'package.json'].sort());
    assert.equal(planned.bytes, 3 + 4 + '{"name":"@ada/shop"}'.length);
    const leftOut = ['.env', '.env.local', '.env-production', 'lib/.envrc', 'lib/.ENV', 'keys/putty.ppk'];
    leftOut.push('keys/id_ed25519_sk', '.netrc', '.pgpass', '.git-credentials');
    leftOut.push('config/prod.env', 'config/secrets.json', 'config/secret.prod.yaml', 'config/credentials.json');
    leftOut.push('.htpasswd', 'config/ca.pem', 'lib/.#a.js', 'lib/server.KEY', 'pipe');
    assert.deepEqual([...planned.leftOut].sort(), leftOut.sort());
    assert.deepEqual([planned.name, planned.controllers, planned.hasTypeScript], ['shop', 'controllers', false]);
  });

  test('leaves out what .gatefoldignore names, as .gitignore would', (t) => {
    const paths = ['a.out', 'lib/b.out', 'lib/test/a.js', 'test/a.js', 'docs/a.md', 'lib/docs/a.md', 'log', 'log1/x'];
    const kept = ['lib/test/deep/x/a.snap', 'lib/log', 'a/b/c/d.tmp', 'a.b', 'aXb', 'lib/AGENTS.md', 'AGENTS.md'];
    const files = Object.fromEntries([...paths, ...kept].map((path) => [path, '']));
    const ignored = (...lines: string[]) => {
      const root = makeProject(t, { ...PROJECT, ...files, '.gatefoldignore': `# a comment\r\n\n${lines.join('\n')}` });
      return Object.keys(files).filter((path) => !plan(root).files.includes(path));
    };
    assert.deepEqual(ignored(), []);
    assert.deepEqual(ignored('*.out'), ['a.out', 'lib/b.out']);
    assert.deepEqual(ignored('test'), ['lib/test/a.js', 'test/a.js', 'lib/test/deep/x/a.snap']);
    assert.deepEqual(ignored('/test/'), ['test/a.js']);
    assert.deepEqual(ignored('lib/docs'), ['lib/docs/a.md']);
    assert.deepEqual(ignored('log?'), ['log1/x']);
    assert.deepEqual(ignored('log/'), []);
    assert.deepEqual(ignored('lib/**/*.snap', 'a/**/d.tmp'), ['lib/test/deep/x/a.snap', 'a/b/c/d.tmp']);
    assert.deepEqual(ignored('a.b  '), ['a.b']);
    assert.deepEqual(ignored('**/AGENTS.md'), ['lib/AGENTS.md', 'AGENTS.md']);
    assert.deepEqual(ignored('/**.out', '/a/**d.tmp', 'log1/**'), ['a.out', 'log1/x']);
    for (const line of ['!test', 'a[bc]', 'a\\ b'])
      assert.throws(() => ignored(line), /Cannot read \.gatefoldignore: .* has !, \[ or \\\. Write names/);
    // A file that is not read would send what it names.
    assert.throws(() => ignored('t\0e\0s\0t\0'), /Cannot read .*gatefoldignore: it is not UTF-8\. Save it as UTF-8/);
    const root = makeProject(t, PROJECT);
    mkdirSync(join(root, '.gatefoldignore'));
    assert.throws(() => plan(root), /Cannot read .*gatefoldignore.* is a folder and is not read/);
  });

  test('leaves out an .npmrc with a token or a password, and sends any other', (t) => {
    const name = '$'.concat('{NPM_TOKEN}');
    const texts: [text: string, isSent: boolean][] = [
      ['//registry.example.com/:_authToken=npm_1', false],
      ['a=1\n "//registry.example.com/:_authToken" = "npm_1"', false],
      ['_auth=aGk=', false],
      ['//r/:_password=x', false],
      [`//r/:_authToken=a${name}`, false],
      ['proxy=http://ada:pass@proxy.example.com', false],
      [`//r/:_authToken=${name}\nlegacy-peer-deps=true`, true],
      [`//r/:_authToken="${name}"`, true],
      ['_auth=\n//r/:always-auth=true', true],
      ['# _authToken=npm_1\n@ada:registry=https://r.example.com/@ada/', true],
    ];
    for (const [text, isSent] of texts) {
      const { files, leftOut } = plan(makeProject(t, { ...PROJECT, 'tools/.npmrc': text }));
      assert.equal(files.includes('tools/.npmrc'), isSent, text);
      const remedy = ' (has a token or a password: keep it in ~/.npmrc, here and on the machine)';
      assert.deepEqual(leftOut, isSent ? [] : [`tools/.npmrc${remedy}`]);
    }
  });

  test('names the outermost folders that not everybody can read', (t) => {
    const files = ['a/x', 'a/b/x', 'ab/x', 'c/d/x', 'e/x', 'f/x'];
    const root = makeProject(t, { ...PROJECT, ...Object.fromEntries(files.map((path) => [path, ''])) });
    const modes = { '.': 0o700, 'a/b': 0o700, a: 0o750, ab: 0o711, c: 0o755, 'c/d': 0o754, e: 0o705, f: 0o775 };
    for (const [folder, mode] of Object.entries(modes)) chmodSync(join(root, folder), mode);
    assert.deepEqual([...plan(root).closedFolders].sort(), ['a', 'ab', 'c/d']);
  });

  const latin1 = (root: string, folder: string) => Buffer.from(join(root, folder, 'caf\xe9'), 'latin1');
  for (const [kind, make] of [
    ['file', (path: Buffer) => writeFileSync(path, '')],
    ['folder', (path: Buffer) => mkdirSync(path)],
  ] as const)
    test(`refuses a ${kind} whose name is not UTF-8, by name`, (t) => {
      const root = makeProject(t, PROJECT);
      try {
        make(latin1(root, 'lib'));
      } catch {
        return t.skip('this file system takes only UTF-8');
      }
      assert.throws(() => plan(root), /Cannot deploy .*\/lib\/caf\uFFFD: its name .* is not UTF-8\. Rename it/);
    });

  test('refuses a folder without package.json, and says what makes one', (t) => {
    const root = makeProject(t, PROJECT);
    rmSync(join(root, 'package.json'));
    assert.throws(() => plan(root), {
      message: `Cannot deploy ${root}: it has no package.json. Run: npx gatefold init`,
    });
  });

  const locked = (resolved: string, name = 'x', link = false): Record<string, string> => ({
    ...PROJECT,
    'package-lock.json': JSON.stringify({ packages: { [`node_modules/${name}`]: { resolved, link } } }),
  });
  const refused: [name: string, files: Record<string, string>, RegExp, settings?: object][] = [
    ['a package.json without a name', { ...PROJECT, 'package.json': '{}' }, /has no name/],
    ['a package.json that is not JSON', { ...PROJECT, 'package.json': '{' }, /it is not JSON/],
    [
      'dependencies without a lock file',
      { ...PROJECT, 'package.json': '{"name":"a","dependencies":{"x":"1"}}' },
      /npm install$/,
    ],
    ['a linked package outside the project', locked('../x', 'x', true), /npm pack --silent \.\.\/x/],
    ['a package tarball outside the project', locked('file:/opt/x.tgz'), /comes from \/opt\/x\.tgz/],
    ['a controllers folder outside the project', PROJECT, /not inside of/, { controllersDir: '/srv/controllers' }],
    ['a missing controllers folder', PROJECT, /Cannot read the controllers folder/, { controllersDir: 'other' }],
    ['a file name with a line feed', { ...PROJECT, 'lib/a\nb.js': '' }, /control character/],
  ];
  for (const [name, files, reason, settings = {}] of refused)
    test(`refuses ${name}`, (t) => {
      const root = makeProject(t, files);
      const absolute = Object.fromEntries(Object.entries(settings).map(([key, path]) => [key, resolve(root, path)]));
      assert.throws(() => plan(root, absolute), reason);
    });

  for (const resolved of ['https://example.org/x.tgz', 'vendor/x', 'file:vendor/x.tgz'])
    test(`accepts a project with a package from ${resolved}`, (t) => {
      plan(makeProject(t, locked(resolved)));
    });

  test('names the top of a workspace, whose lock file counts', (t) => {
    const top = makeProject(t, {
      'package.json': '{"name":"top"}',
      'package-lock.json': '{}',
      'apps/a/package.json': '{"name":"a","dependencies":{"x":"1"}}',
    });
    const root = join(top, 'apps/a');
    const message = new RegExp(
      `The lock file is in ${top}: deploy from there, with CONTROLLERS_DIR=apps/a/controllers$`,
    );
    mkdirSync(join(root, 'controllers'));
    assert.throws(() => plan(root), message);
    for (const path of ['data/production.json', 'controllers/data/x']) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), '');
    }
    const { files } = plan(top, { controllersDir: join(root, 'controllers') });
    assert.deepEqual([...files].sort(), [
      'apps/a/controllers/data/x',
      'apps/a/package.json',
      'package-lock.json',
      'package.json',
    ]);
  });

  test('accepts a project whose gatefold is a link to a checkout', (t) => {
    plan(makeProject(t, locked('../gatefold', 'gatefold', true)));
  });

  for (const target of ['../..', '/etc/hosts', '../../NAME/package.json'])
    test(`refuses a link out of the project, to ${target}`, (t) => {
      const root = makeProject(t, PROJECT);
      symlinkSync(target.replace('NAME', basename(root)), join(root, 'lib/link'));
      assert.throws(() => plan(root), /A link must be relative and lead into the project/);
    });
});

test('releaseName returns the time in UTC, to the millisecond', () => {
  assert.equal(releaseName(Date.UTC(2026, 10, 22, 21, 35, 0, 7)), '20261122T213500007Z');
});

/**
 * Runs the script of the probe in this process, and returns the path that others can write. The shell gets a program
 * `node` that prints its arguments. The tests of each shell start the real one.
 */
function createProbe(t: { after(done: () => void): void }): (dir: string) => string | undefined {
  const bin = makeProject(t);
  writeFileSync(join(bin, 'node'), '#!/bin/sh\nprintf "%s\\0" "$@"\n', { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  return (dir) => {
    const command = probeCommand({ dir, gatefoldCopy: '1', setup: true });
    const [flag, script = '', order] = execFileSync('sh', ['-c', command], { env, encoding: 'utf8' }).split('\0');
    assert.equal(flag, '-e');
    let printed = '';
    const log = (text: string) => {
      printed += text;
    };
    const before = process.umask();
    try {
      const here = Object.assign(Object.create(process), { argv: [process.execPath, order] });
      new Function('require', 'process', 'console', script)(createRequire(import.meta.url), here, { log });
    } finally {
      process.umask(before);
    }
    return JSON.parse(printed.slice(MARK.length)).writableByOthers;
  };
}

test('the probe ends for a folder that nobody can make', {
  skip: existsSync('/proc/self') ? false : 'no /proc',
}, () => {
  const command = probeCommand({ dir: '/proc/shop/api', gatefoldCopy: '1', setup: true });
  const printed = execFileSync('sh', ['-c', command], { encoding: 'utf8', timeout: 60_000, killSignal: 'SIGKILL' });
  assert.equal(JSON.parse(printed.slice(MARK.length)).refusal, 'ENOENT');
});

test('the probe reports paths in DIR that other users can write', (t) => {
  const dir = join(makeProject(t), HOSTILE);
  const probe = createProbe(t);
  assert.equal(probe(dir), undefined);
  for (const name of ['env', 'run', 'gatefold', 'restart']) writeFileSync(join(dir, name), '', { mode: 0o755 });
  for (const name of ['', 'env', 'run', 'gatefold', 'restart', 'runtime'])
    for (const mode of [0o775, 0o757]) {
      chmodSync(join(dir, name), mode);
      assert.equal(probe(dir), join(dir, name), 'the probe reports a path that others can write');
      chmodSync(join(dir, name), 0o755);
    }
  if (process.getuid?.() === 0) {
    chownSync(join(dir, 'restart'), 12_345, 0);
    assert.equal(probe(dir), join(dir, 'restart'));
  }
});

describe('the probe and the folders above DIR', () => {
  const probe = createProbe({ after });
  type Change = (top: string) => void;
  const mode = (path: string, bits: number) => (top: string) => chmodSync(join(top, path), bits);
  const owner = (path: string, uid: number) => (top: string) => chownSync(join(top, path), uid, 0);
  const OTHER = 12_345;
  const rows: [name: string, changes: Change[], reported?: string | undefined, dir?: string][] = [
    ['nothing', []],
    ['a folder above that everybody can write', [mode('.', 0o777)], '.'],
    ['a folder above that its group can write', [mode('srv', 0o775)], 'srv'],
    ['a folder above like /tmp', [mode('.', 0o1777)]],
    ['the folder of another user', [owner('srv', OTHER)], 'srv'],
    ['the folder of another user in one like /tmp', [mode('.', 0o1777), owner('srv', OTHER)], 'srv'],
    ['the link of another user in one like /tmp', [mode('.', 0o1777), lchown('link')], 'link', 'link/shop'],
    ['a link to a folder below others', [], undefined, 'link/shop'],
    ['a link to a folder that everybody can write', [mode('aside/deep', 0o777)], 'link', 'link/shop'],
    ['a link to a folder below one that everybody can write', [mode('aside', 0o777)], 'aside', 'link/shop'],
    ['a link to itself', [], undefined, 'loop/shop'],
  ];
  function lchown(path: string): Change {
    return (top) => lchownSync(join(top, path), OTHER, 0);
  }
  for (const [name, changes, reported, target = 'srv/shop'] of rows)
    test(name, (t) => {
      const top = makeProject(t, { 'srv/.keep': '', 'aside/deep/.keep': '' });
      symlinkSync('aside/deep', join(top, 'link'));
      symlinkSync('loop', join(top, 'loop'));
      try {
        for (const change of changes) change(top);
      } catch {
        return t.skip('only root can give a file away');
      }
      assert.equal(probe(join(top, target)), reported === undefined ? undefined : join(top, reported));
      const isMade = existsSync(join(top, target));
      assert.equal(
        isMade,
        reported === undefined && target !== 'loop/shop',
        'nothing is made where others can change it',
      );
    });
});

const which = (program: string) => execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
/** Each installed shell once: `sh` is often one of the others. */
const SHELLS = [['dash'], ['bash'], ['busybox', 'sh'], ['sh']]
  .filter(([program = '']) => spawnSync(program, ['-c', ':']).error === undefined)
  .filter(([program = ''], index, shells) => {
    const path = realpathSync(which(program));
    return !shells.slice(0, index).some(([other = '']) => realpathSync(which(other)) === path);
  });

for (const [program = '', ...words] of SHELLS) {
  const sh = (script: string, options: object = {}) =>
    spawnSync(program, [...words, '-c', script], { encoding: 'utf8', ...options });

  describe(`scripts on the machine, run by ${program}`, () => {
    test('quote passes every word unchanged', () => {
      for (const word of [HOSTILE, '', "'", '-n', 'a\nb']) assert.equal(sh(`printf %s ${quote(word)}`).stdout, word);
    });

    test('the probe reports the version of Node, or a missing Node', (t) => {
      const dir = join(makeProject(t), HOSTILE);
      const question = { dir, gatefoldCopy: '1', setup: true };
      const { stdout } = sh(probeCommand(question), { env: process.env });
      assert.ok(stdout.startsWith(MARK), stdout);
      const { node, isSetUp, hasGatefoldCopy, dir: found } = JSON.parse(stdout.slice(MARK.length));
      assert.deepEqual([node, isSetUp, hasGatefoldCopy, found], [process.versions.node, false, false, dir]);
      assert.ok(existsSync(join(dir, 'runtime')));
      assert.equal(JSON.parse(stdout.slice(MARK.length)).writableByOthers, undefined);
      const builtIn = sh(probeCommand(question).replace('command -v node', 'command -v no-such-node'));
      assert.equal(builtIn.stdout, `${MARK}{"node":null}\n`);
    });

    test('the scripts start the server, and commands, with the settings of the env file', (t) => {
      const root = makeProject(t);
      const dir = join(root, HOSTILE);
      mkdirSync(join(dir, 'runtime/current/dist'), { recursive: true });
      const script = 'const { cwd, env } = process; const { NODE_ENV, CONTROLLERS_DIR, DATA_DIR, GREETING } = env;\n';
      const print = 'console.log(JSON.stringify([cwd(), NODE_ENV, CONTROLLERS_DIR, DATA_DIR, GREETING]));\n';
      for (const name of ['server.js', 'cli.js'])
        writeFileSync(
          join(dir, 'runtime/current/dist', name),
          script + print.replace('GREETING]', 'GREETING, ...process.argv.slice(2)]'),
        );
      writeFileSync(join(dir, 'env'), "GREETING='good day'\nDATA_DIR=/var/lib/shop\n");
      const { NODE_ENV, CONTROLLERS_DIR, DATA_DIR, ...env } = process.env;
      const expected = [dir, 'production', join(dir, "current/src/a'b"), '/var/lib/shop', 'good day'];
      for (const program of ['server', 'cli'] as const) {
        const script = serviceScript(program, dir, "src/a'b", process.execPath);
        const { stdout, stderr } = sh(`set -- 'an argument'\n${script}`, { cwd: root, env });
        assert.deepEqual(JSON.parse(stdout || 'null'), [...expected, 'an argument'], stderr);
      }
      assert.equal(readEnvironment(dir).GREETING, 'good day');
    });

    test('the scripts refuse an env file of which a line does not set its setting', (t) => {
      const dir = makeProject(t);
      const [run, name] = [serviceScript('server', dir, 'controllers', 'echo'), './env does not set'];
      const ended = (env: string) => {
        writeFileSync(join(dir, 'env'), env);
        const { status, stdout, stderr } = sh(run, { env: { PATH: process.env.PATH } });
        return [status, stdout, stderr.split('\n').at(-2)];
      };
      const address = 'postgres://u@db/d?sslmode=verify-full&application_name=shop';
      assert.deepEqual(ended(`PORT=1\nSTORE=${address}\n`), [1, '', `${name} STORE: quote its value: STORE='...'`]);
      assert.throws(() => readEnvironment(dir), {
        message: `${dir}/env does not set STORE: quote its value: STORE='...'`,
      });
      for (const line of ['RATE_LIMIT=100/s burst 500', 'export RATE_LIMIT=100/s&true'])
        assert.deepEqual(ended(`${line}\n`), [1, '', `${name} RATE_LIMIT: quote its value: RATE_LIMIT='...'`]);
      assert.deepEqual(ended('S3_BUCKET=a b\n'), [1, '', `${name} S3_BUCKET: quote its value: S3_BUCKET='...'`]);
      assert.throws(() => readEnvironment(dir), /env does not set S3_BUCKET: quote its value/);
      const right = `HOST=\nexport STORE='${address}' RATE_LIMIT="1/s burst 5"\nKEY="a\nLAST==\n"\n# DOMAINS=a&b\n`;
      assert.equal(ended(right)[1], 'runtime/current/dist/server.js\n');
    });
  });
}

test('a deployment makes DIR/gatefold once, and root runs it as the owner of the data folder', (t) => {
  const dir = makeProject(t, { 'runtime/current/dist/cli.js': 'console.log(process.getuid());' });
  const path = join(dir, 'gatefold');
  assert.deepEqual(makeCommand({ dir, controllers: 'controllers' }), [`Made ${path}`]);
  const run = () => spawnSync(path, { encoding: 'utf8' });
  assert.equal(run().stdout, `${process.getuid?.()}\n`, run().stderr);
  // A Node in a folder of root alone cannot run as another user.
  const isReachable = spawnSync('runuser', ['-u', 'nobody', '--', process.execPath, '-v']).status === 0;
  if (process.getuid?.() === 0 && isReachable) {
    const [nobody = 0] = execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }).split('\n').map(Number);
    chmodSync(dir, 0o755);
    chownSync(join(dir, 'data'), nobody, nobody);
    assert.equal(run().stdout, `${nobody}\n`, run().stderr);
  }
  writeFileSync(path, '#!/bin/sh\n# mine\n');
  assert.deepEqual(makeCommand({ dir, controllers: 'controllers' }), []);
  assert.match(readFileSync(path, 'utf8'), /mine/);
});

test('readEnvironment refuses an env file that no shell can parse', (t) => {
  const dir = makeProject(t, { env: 'A=(\n' });
  assert.throws(() => readEnvironment(dir), /^Error: Cannot read .*\/env: line 1 is not what a shell reads$/);
});

/** Puts a program in the place of ssh. Returns its folder. */
function fakeSsh(t: TestContext, text: string): string {
  const bin = makeProject(t);
  writeFileSync(join(bin, 'ssh'), text, { mode: 0o755 });
  const path = process.env.PATH;
  t.after(() => {
    process.env.PATH = path;
  });
  process.env.PATH = `${bin}:${path}`;
  return bin;
}

test('runRemote fails when the connection breaks within a line of the answer', async (t) => {
  fakeSsh(t, `#!/bin/sh\nprintf '\\033]0;vm\\007${MARK}{"step":"a"}\\n${MARK}{"resu'\nexit 255\n`);
  const lines: unknown[] = [];
  const onLine = (line: unknown) => void lines.push(line);
  await assert.rejects(runRemote({ host: 'vm', command: 'true', onLine }), /Cannot reach vm: the connection broke/);
  assert.deepEqual(lines, [{ step: 'a' }]);
});

test('runRemote ends ssh at once when tar cannot read a file, and names tar', async (t) => {
  const late = 'setTimeout(() => require("node:fs").writeFileSync(__dirname + "/late", ""), 20_000);';
  const bin = fakeSsh(t, `#!${process.execPath}\nprocess.stdin.resume();\n${late}\n`);
  const files = { root: bin, paths: ['package.json', 'missing'] };
  await assert.rejects(runRemote({ host: 'vm', command: 'true', files, onLine() {} }), /^Error: Cannot read .*: tar: /);
  assert.equal(existsSync(join(bin, 'late')), false, 'ssh was ended');
});

test('runRemote cuts a line without an end, and reads the lines after it', async (t) => {
  const long = '"x".repeat(9 << 20)';
  const write = `process.stdout.write('${MARK}' + JSON.stringify(${long}) + '\\n${MARK}1\\r\\n${MARK}2');`;
  fakeSsh(t, `#!${process.execPath}\n${write}\nprocess.stderr.write(${long}); process.exitCode = 3;\n`);
  const lines: unknown[] = [];
  const run = runRemote({ host: 'vm', command: 'true', onLine: (line) => void lines.push(line) });
  await assert.rejects(run, ({ message }: Error) => /^vm: x{2000}$/.test(message));
  assert.deepEqual(lines, [1, 2]);
});

describe('deploy ignores lines that are no answer of Gatefold', () => {
  const machine = '{"node":"24.0.0","dir":"/x","user":"ada","isSetUp":true,"hasGatefoldCopy":true}';
  const noShell = /^vm: not deployed\. vm:\/x: no POSIX shell answers there$/m;
  const incomplete = /^vm: not deployed\. vm:\/x: the answer is incomplete$/m;
  const rows: [lines: string[], message: RegExp][] = [
    [['null'], noShell],
    [['5'], noShell],
    [['[]'], noShell],
    [['{"node":{"a":1},"dir":["x"],"isSetUp":true,"hasGatefoldCopy":true}'], noShell],
    [[machine.replace('true', '1')], noShell],
    [[machine, 'null'], incomplete],
    [[machine, '{"step":{"a":1}}', '{"result":null}', '{"result":{"state":"serving"}}'], incomplete],
    [
      [machine, '{"result":{"state":"__proto__","errors":[],"notes":[],"release":"x","current":"y","before":null}}'],
      incomplete,
    ],
    [
      [machine, '{"result":{"state":"serving","errors":[1],"notes":[],"release":"x","current":"y","before":null}}'],
      incomplete,
    ],
  ];
  for (const [lines, message] of rows)
    test(lines.at(-1) ?? '', async (t) => {
      const text = lines.map((line) => `${MARK}${line}\n`).join('');
      fakeSsh(t, `#!/bin/sh\ncat <<'END'\n${text}END\ncat >/dev/null\n`);
      const project = { cwd: makeProject(t, PROJECT), env: {} };
      const { code, out, err } = await runHere(runGatefold, ['deploy', 'vm:/x'], project);
      assert.equal(code, 1);
      assert.doesNotMatch(err, /object/);
      assert.match(out, message);
    });
});

describe('gatefold deploy --dry-run', () => {
  const dryRun = (t: TestContext, machine: string, ...words: string[]) => {
    const text = `#!/bin/sh\necho "$*" >>"$(dirname "$0")/asked"\ncat <<'END'\n${MARK}${machine}\nEND\n`;
    const bin = fakeSsh(t, text);
    const project = { cwd: makeProject(t, { ...PROJECT, '.env': '' }), env: {} };
    const asked = () => readFileSync(join(bin, 'asked'), 'utf8').match(/"gatefoldCopy":.*?}/g);
    return { asked, ran: runHere(runGatefold, ['deploy', '--dry-run', 'vm:x', ...words], project) };
  };
  const NEW = '{"node":"24.0.0","dir":"/home/x","user":"ada","isSetUp":false,"hasGatefoldCopy":false}';

  test('lists the files and what the machine would get, and only asks the machine', async (t) => {
    const { asked, ran } = dryRun(t, NEW.replace('"isSetUp":false', '"isSetUp":true'));
    const { code, out } = await ran;
    assert.equal(code, 0, out);
    assert.deepEqual(out.trim().split('\n').sort(), [
      'controllers/AController.js',
      'left out: .env',
      'lib/a.js',
      'package.json',
      'vm: /home/x would get 3 files, 23 bytes, and this Gatefold',
    ]);
    assert.equal(asked()?.length, 1);
  });

  test('makes no folder with --setup, and accepts a machine without one', async (t) => {
    const { asked, ran } = dryRun(t, NEW, '--setup');
    assert.equal((await ran).code, 0);
    assert.match(String(asked()), /"setup":false/);
  });

  test('exits with 1 for a machine that could not be deployed to', async (t) => {
    const { code, out } = await dryRun(t, NEW).ran;
    assert.equal(code, 1);
    assert.match(out, /^vm: not possible\. vm:x has no \/home\/x\. The first time: gatefold deploy --setup$/m);
  });
});

test('gatefold deploy ends where the page cannot be built, before it asks a machine', async (t) => {
  const bin = fakeSsh(t, '#!/bin/sh\ntouch "$(dirname "$0")/asked"\n');
  const scripts = { 'build:web': 'echo "error: no such module" && exit 3' };
  const cwd = makeProject(t, { ...PROJECT, 'package.json': JSON.stringify({ name: 'shop', scripts }) });
  const { code, err } = await runHere(runGatefold, ['deploy', 'vm'], { cwd, env: { PATH: process.env.PATH } });
  assert.equal(code, 1);
  assert.match(err, /npm run build:web ended with 3: .*error: no such module/);
  assert.equal(existsSync(join(bin, 'asked')), false);
});

test('readEnvironment reads the settings of an env file whose commands print text', (t) => {
  const env = "echo hunter2\nGREETING=$(echo hello)\nNODE_OPTIONS='--import ./current/none.mjs'\n";
  const { GREETING, NODE_OPTIONS } = readEnvironment(makeProject(t, { env }));
  assert.deepEqual([GREETING, NODE_OPTIONS], ['hello', '--import ./current/none.mjs']);
  assert.equal('NODE_OPTIONS' in readEnvironment(makeProject(t, { env: 'unset NODE_OPTIONS' })), false);
});

test('the error about an invalid env file contains none of its text', (t) => {
  const dir = makeProject(t, { env: 'A=1\nPASSWORD=(hunter2\nB=$(hunter3' });
  const path = process.env.PATH;
  const shells = SHELLS.map(([program = '']) => which(program));
  t.after(() => {
    process.env.PATH = path;
  });
  for (const [i, program] of shells.entries()) {
    const bin = join(dir, String(i));
    mkdirSync(bin);
    symlinkSync(program, join(bin, 'sh'));
    process.env.PATH = `${bin}:${path}`;
    assert.throws(
      () => readEnvironment(dir),
      ({ message }: Error) => message.startsWith('Cannot read ') && !message.includes('hunter'),
      program,
    );
  }
});

const UNIT = readFileSync(resolve(import.meta.dirname, '../../../deploy/gatefold.service'), 'utf8');

test('the systemd unit of a project starts DIR/run as the user of the project', (t) => {
  const unit = unitOf(UNIT, '/srv/shop', 'shop');
  assert.doesNotMatch(unit, /\/opt\/|\/var\/lib\/|EnvironmentFile|StateDirectory|WorkingDirectory/);
  assert.match(unit, /^ExecStart=\/bin\/sh "\/srv\/shop\/run"$/m);
  assert.match(unit, /^User=shop\nGroup=shop$/m);
  assert.match(unitOf(UNIT, '/home/ada/shop', 'shop'), /^ProtectHome=read-only$/m);
  if (spawnSync('systemd-analyze', ['--version']).error !== undefined) return t.skip('there is no systemd-analyze');
  const root = makeProject(t);
  for (const name of ['shop', `a shop's "best" %h $x`]) {
    const dir = join(root, name);
    mkdirSync(join(dir, 'data'), { recursive: true });
    writeFileSync(join(dir, 'run'), '#!/bin/sh\n', { mode: 0o755 });
    const path = join(root, 'shop.service');
    writeFileSync(path, unitOf(UNIT, dir, 'shop').replaceAll(/^(?:User|Group)=.*\n/gm, ''));
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
    assert.deepEqual([status, stdout + stderr], [0, ''], name);
  }
});

test('the socket of a project has its name, and the service asks for it', () => {
  const read = (name: string) => readFileSync(resolve(import.meta.dirname, '../../../deploy', name), 'utf8');
  assert.match(unitOf(read('gatefold.service'), '/srv/shop', 'shop'), /^After=.* shop\.socket$/m);
  const socket = socketOf(read('gatefold.socket'), 'shop');
  assert.match(socket, /^ListenStream=3000\nFileDescriptorName=http\nBacklog=4096$/m);
  assert.doesNotMatch(socket, /gatefold\./);
  assert.match(
    serviceScript('server', '/srv/shop', 'controllers', '/usr/bin/node'),
    /\$\{READY:=all\}[\s\S]*\nexec \S+ runtime/,
  );
});

test('userOf returns a valid user name for any project name', () => {
  assert.deepEqual(['shop', '9.Shop', 'x'.repeat(40)].map(userOf), ['shop', '_9-shop', 'x'.repeat(31)]);
});

test('waitForRelease returns no error only while the service serves the release', async (t) => {
  const dir = makeProject(t, { 'releases/a/x': '', 'releases/b/x': '' });
  const at = join(dir, 'data/generation.json');
  const wait = (release: string) => waitForRelease({ dir, dataDir: join(dir, 'data'), release, maxWait: 0 });
  const record = { pid: process.pid, folder: dir, release: join(dir, 'releases/a'), errors: [], draining: [] };
  assert.match((await wait('a'))[0] ?? '', /has not answered/);
  writeFileSync(at, JSON.stringify({ ...record, state: 'serving' }));
  assert.deepEqual(await wait('a'), []);
  assert.match((await wait('b'))[0] ?? '', /has not answered/);
  const file = 'AController.js';
  const errors = [{ file, at: join(dir, 'releases/a/AController.js:3'), error: 'SyntaxError' }, { error: 'no worker' }];
  writeFileSync(at, JSON.stringify({ ...record, state: 'rejected', errors }));
  assert.deepEqual(await wait('a'), ['AController.js:3: SyntaxError', 'no worker']);
  writeFileSync(at, JSON.stringify({ ...record, state: 'stopped' }));
  assert.match((await wait('a'))[0] ?? '', /has not answered/);
  assert.equal(isRunning(undefined), false);
});

test('waitForRelease reports a crashed service as not answering, and a failed start with its error', async (t) => {
  const dir = makeProject(t, { 'releases/a/x': '' });
  const { pid } = spawnSync('true');
  const record = { pid, folder: dir, release: join(dir, 'releases/a'), draining: [] };
  const wait = (state: string, errors: object[]) => {
    writeFileSync(join(dir, 'data/generation.json'), JSON.stringify({ ...record, state, errors }));
    return waitForRelease({ dir, dataDir: join(dir, 'data'), release: 'a', maxWait: 0 });
  };
  assert.match((await wait('serving', []))[0] ?? '', /has not answered/);
  assert.deepEqual(await wait('rejected', [{ error: 'the port is taken' }]), ['the port is taken']);
  assert.deepEqual(await wait('rejected', []), ['the service has refused it']);
});

test('the error about an invalid generation record does not suggest another user', (t) => {
  const dir = makeProject(t, { 'data/generation.json': '{' });
  assert.throws(
    () => readRecord(join(dir, 'data')),
    ({ message }: Error) => message.startsWith('Cannot read ') && !message.includes('root'),
  );
});

test('runProgram reports the signal that ended a program', () => {
  assert.throws(() => runProgram('sh', ['-c', 'kill -9 $$']), /it ended with SIGKILL$/);
});

describe('gatefold deploy', () => {
  const rows: [words: string[], code: number, err: RegExp][] = [
    [[], 2, /missing HOST\[:DIR\]…/],
    [['vm', '--keep', '0'], 2, /--keep takes a whole number/],
    [['vm', '--back', '--setup'], 2, /exclude each other/],
    [['vm', '--back', '--dry-run'], 2, /exclude each other/],
    [['vm', '-vm'], 2, /./],
    [['vm:~/x'], 2, /without ~/],
  ];
  for (const [words, code, err] of rows)
    test(`refuses wrong arguments: ${words.join(' ') || 'none'}`, async (t) => {
      const ran = await runHere(runGatefold, ['deploy', ...words], { cwd: makeProject(t, PROJECT), env: {} });
      assert.equal(ran.code, code);
      assert.match(ran.err, err);
    });
});

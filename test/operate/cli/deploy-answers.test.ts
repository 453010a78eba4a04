// `gatefold deploy` prints the answers of machines. A shell script stands for ssh: it prints the answers, and keeps what
// it was asked and how many bytes it got.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { MARK, runRemote } from '../../../src/operate/cli/deploy/ssh.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { answerInspections, inspection } from '../../support/inspection-here.ts';

const PROJECT = { 'package.json': '{"name":"@ada/shop"}', 'controllers/AController.js': '', 'lib/a.js': 'abc' };
const MACHINE = { node: '24.0.0', dir: '/x', user: 'ada', isSetUp: true, hasGatefoldCopy: true };
const RESULT = { release: 'R2', before: 'R1', state: 'serving', current: 'R2', errors: [], notes: [] };

/** Puts a script in the place of ssh. Returns its folder. */
function fakeSsh(t: TestContext, script: string): string {
  const bin = makeProject(t);
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\ncd '${bin}'\n${script}\n`, { mode: 0o755 });
  const path = process.env.PATH;
  t.after(() => {
    process.env.PATH = path;
  });
  process.env.PATH = `${bin}:${path}`;
  return bin;
}

async function deploy(
  t: TestContext,
  answers: readonly object[],
  words: readonly string[],
  files = {},
  programs: Readonly<Record<string, string>> = {},
) {
  const text = answers.map((answer) => MARK + JSON.stringify(answer)).join('\n');
  const bin = fakeSsh(t, `echo "$*" >>asked\ncat <<'END'\n${text}\nEND\nwc -c >>bytes`);
  for (const [name, script] of Object.entries(programs)) writeFileSync(join(bin, name), script, { mode: 0o755 });
  const cwd = makeProject(t, { ...PROJECT, ...files });
  const env = Object.keys(programs).length === 0 ? {} : { PATH: process.env.PATH };
  const ran = await runHere(runGatefold, ['deploy', ...words], { cwd, env });
  const asked = existsSync(join(bin, 'asked')) ? readFileSync(join(bin, 'asked'), 'utf8') : '';
  const orders = [...asked.matchAll(/deploy-on-machine '(.*)'/g)].map(([, order = '']) => JSON.parse(order));
  const bytes = () => readFileSync(join(bin, 'bytes'), 'utf8').trim().split('\n').map(Number);
  return { ...ran, asked, orders, bytes };
}

test('deploy prints the steps and the result, and sends the files', async (t) => {
  const answers = [MACHINE, { step: 'npm ci' }, { result: { ...RESULT, notes: ['a note'] } }];
  const { code, out, err, orders, bytes } = await deploy(t, answers, ['vm:x'], { '.env': '' });
  assert.deepEqual([code, out], [0, 'vm: a note\nvm: /x serves R2, before it R1\n']);
  assert.equal(err, 'left out: .env\nvm:x: 3 files, 23 bytes\nvm:x: npm ci\n');
  const [{ releaseName, gatefoldCopy, ...order }] = orders;
  assert.match(releaseName, /^\d{8}T\d{9}Z$/);
  assert.deepEqual(order, {
    ...{ name: 'shop', controllers: 'controllers', hasTypeScript: false, hasPage: false, bytes: 23, closedFolders: [] },
    ...{ fileCount: 3, action: 'release', keep: 5, setup: false, dir: '/x' },
  });
  assert.equal(bytes()[0], 0);
  assert.ok(Number(bytes()[1]) > 1000, 'a tar stream');
});

test('deploy sends the types that it has written and the page that it has built, and prints what is not written', async (t) => {
  const scripts = { 'build:web': 'x' };
  const files = {
    'package.json': JSON.stringify({ name: 'shop', scripts }),
    'controllers/BController.ts': '',
  };
  const broken = { group: 'B', file: 'BController.ts', path: '/x', ok: false, error: 'no luck', operations: [] };
  let isAsked = false;
  answerInspections(t, ({ settings: { controllersDir } }) => {
    if (!isAsked) writeFileSync(join(controllersDir, 'made.ts'), '');
    isAsked = true;
    return inspection({ groups: [broken] });
  });
  const npm = `#!/bin/sh\n[ "$*" = "run build:web" ] && echo >built.html\n`;
  const { code, err, orders } = await deploy(t, [MACHINE, { result: RESULT }], ['vm'], files, { npm });
  assert.deepEqual(err.split('\n'), [
    'BController.ts does not load: no luck',
    'npm run build:web',
    'vm: 6 files, 47 bytes',
    '',
  ]);
  assert.deepEqual([code, orders[0].fileCount, orders[0].hasTypeScript, orders[0].hasPage], [0, 6, true, true]);
});

test('deploy --back neither writes types nor builds a page', async (t) => {
  const files = { 'package.json': '{"name":"shop","scripts":{"build:web":"x"}}', 'controllers/BController.ts': '' };
  const { code, err } = await deploy(t, [MACHINE, { result: RESULT }], ['vm', '--back'], files);
  assert.deepEqual([code, err], [0, '']);
});

test('deploy sends its own Gatefold to a machine that has another one', async (t) => {
  const { err, asked } = await deploy(t, [{ ...MACHINE, hasGatefoldCopy: false }, { result: RESULT }], ['vm']);
  assert.match(err, /^vm: Gatefold (\S+)\nvm: 3 files, 23 bytes\n$/);
  assert.match(asked, /\/x\/runtime\/\S+\n/);
});

test('deploy --back sends no file', async (t) => {
  const { code, err, orders, bytes } = await deploy(t, [MACHINE, { result: RESULT }], ['vm', '--back', '--keep', '7']);
  assert.deepEqual([code, err, orders[0].action, orders[0].keep, bytes()], [0, '', 'back', 7, [0, 0]]);
});

describe('deploy ends with the result of a machine', () => {
  const failed = { ...RESULT, state: 'failed', current: 'R1', errors: ['A.js:3: no'], notes: ['more'] };
  const rows: [name: string, result: object, words: string[], code: number, out: string][] = [
    ['the first release', { ...RESULT, before: null }, ['vm'], 0, 'vm: /x serves R2, before it nothing\n'],
    [
      'a failure, without the machines after it',
      failed,
      ['vm', 'b', 'c'],
      1,
      'vm: A.js:3: no\nvm: more\nvm: R2 does not serve. /x/current leads to R1\nUntouched: b, c\n',
    ],
    [
      'no service with --setup',
      { ...RESULT, state: 'unstarted' },
      ['vm', 'b', '--setup'],
      0,
      'vm: /x has R2, and nothing serves it yet\nb: /x has R2, and nothing serves it yet\n',
    ],
    [
      'no service',
      { ...RESULT, state: 'unstarted' },
      ['vm', 'b'],
      1,
      'vm: /x has R2, and nothing serves it yet\nUntouched: b\n',
    ],
  ];
  for (const [name, result, words, code, out] of rows)
    test(name, async (t) => {
      const ran = await deploy(t, [MACHINE, { result }], words);
      assert.deepEqual([ran.code, ran.out], [code, out]);
    });

  test('--json has the machines, and those that are untouched', async (t) => {
    const { out } = await deploy(t, [MACHINE, { result: failed }], ['vm:x', 'b', '--json']);
    assert.deepEqual(JSON.parse(out), {
      ok: false,
      machines: [{ host: 'vm', dir: '/x', result: failed }],
      untouched: ['b'],
    });
  });
});

describe('deploy refuses a machine', () => {
  const rows: [machine: object, reason: string][] = [
    [
      { node: null },
      'vm:x has no node in the PATH of ssh: install Node 22.18 or later (nodejs.org/en/download), or link it into /usr/local/bin',
    ],
    [{ ...MACHINE, node: '18.20.0' }, 'vm:x has Node 18.20.0: install Node 20 or later, better 22.18 or later'],
    [
      { ...MACHINE, refusal: 'EACCES' },
      'vm:x: ada may not write to /x (EACCES). Run there: sudo install -d -o ada /x; or deploy as root',
    ],
    [{ ...MACHINE, refusal: 'ENOSPC' }, 'vm:x: cannot write to /x: no space is left on the disk'],
    [{ ...MACHINE, refusal: 'ENOTDIR' }, 'vm:x: cannot write to /x: a part of the path is not a folder'],
    [
      { ...MACHINE, writableByOthers: '/x/run' },
      'vm:x: others than ada can change /x/run, and so run programs as ada. Deploy as its owner, to another folder, or run there: chown ada /x/run && chmod go-w /x/run',
    ],
    [{ ...MACHINE, isSetUp: false }, 'vm:x has no /x. The first time: gatefold deploy --setup'],
  ];
  for (const [machine, reason] of rows)
    test(reason, async (t) => {
      const { code, out, orders } = await deploy(t, [machine, { result: RESULT }], ['vm:x', 'b']);
      assert.deepEqual([code, out, orders], [1, `vm: not deployed. ${reason}\nUntouched: b\n`, []]);
    });

  test('but not one with Node 20', async (t) => {
    assert.equal((await deploy(t, [{ ...MACHINE, node: '20.0.0' }, { result: RESULT }], ['vm'])).code, 0);
  });
});

describe('a failure of ssh', () => {
  const rows: [script: string, message: string][] = [
    ['exit 255', 'Cannot reach vm: the connection broke'],
    ['exit 7', 'vm: the command ended with exit code 7'],
    ['for n in 1 2 3 4; do echo " $n " >&2; echo >&2; done; exit 1', 'vm: 2 | 3 | 4'],
    [
      'echo "Host key verification failed." >&2; exit 255',
      'Cannot reach vm: Host key verification failed. Run ssh vm once, and compare its key with the key of the machine',
    ],
    [
      'echo "a@vm: Permission denied (publickey)." >&2; exit 255',
      'Cannot reach vm: a@vm: Permission denied (publickey). ssh must sign in without a question: ssh-copy-id vm brings the key there, and ssh-add opens a key with a passphrase',
    ],
    ['kill -9 $$', 'Cannot reach vm: the connection broke'],
  ];
  for (const [script, message] of rows)
    test(message, async (t) => {
      fakeSsh(t, script);
      await assert.rejects(runRemote({ host: 'vm', command: 'true', onLine() {} }), { message });
    });

  const until = (file: string) => `until [ -e ${file} ]; do sleep 0.01; done`;
  for (const [name, ssh, tar, message] of [
    [
      'ssh',
      `exec 0<&-; touch closed; ${until('written')}; echo full >&2; exit 1`,
      `cat >/dev/null; ${until('closed')}; printf x; touch written`,
      'vm: full',
    ],
    ['tar', 'cat >/dev/null', 'exit 2', /^Cannot read .*: tar: exit code 2$/],
  ] as const)
    test(`${name} that reads nothing has its message`, async (t) => {
      const bin = fakeSsh(t, ssh);
      writeFileSync(join(bin, 'tar'), `#!/bin/sh\n${tar}\n`, { mode: 0o755 });
      // The names are more than a pipe takes, so a tar that reads nothing breaks it.
      const files = { root: bin, paths: Array<string>(16).fill('x'.repeat(65_536)) };
      await assert.rejects(runRemote({ host: 'vm', command: 'true', files, onLine() {} }), { message });
    });

  test('There is no ssh on this machine', async (t) => {
    fakeSsh(t, '');
    process.env.PATH = makeProject(t);
    await assert.rejects(runRemote({ host: 'vm', command: 'true', onLine() {} }), {
      message: 'There is no ssh on this machine',
    });
  });

  test('ssh asks nothing, and ends a silent connection', async (t) => {
    const bin = fakeSsh(t, 'echo "$*" >asked');
    await runRemote({ host: 'ada@vm', command: 'true', onLine() {} });
    const options = '-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4';
    assert.equal(readFileSync(join(bin, 'asked'), 'utf8'), `${options} -T -- ada@vm true\n`);
  });
});

// `gatefold deploy --setup` on a machine with systemd. The folders of systemd are in a temporary folder here, and
// nothing is run: the test keeps each program that setUp calls. test/slow/deploy-machines.slow.ts runs them.
import assert from 'node:assert/strict';
import childProcess from 'node:child_process';
import fs, { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Order } from '../../../src/operate/cli/deploy/order.ts';
import { setUp } from '../../../src/operate/cli/deploy/setup.ts';
import { createFolder } from '../../support/folder.ts';

const UNITS = '/etc/systemd/system';

interface Machine {
  /** The units that are there before, by their paths. */
  readonly units?: Readonly<Record<string, string>>;
  /** The home folder of the user `shop`. Default: there is no such user. */
  readonly home?: string;
  readonly uid?: number;
  /** The path of Node. */
  readonly node?: string;
}

/** Sets DIR up on a machine with systemd. */
function setUpOn(t: TestContext, dir: string, { units = {}, home, uid = 0, node = '/usr/bin/node' }: Machine = {}) {
  const root = createFolder(t, { 'run/systemd/system/x': '', 'etc/systemd/system/x': '' });
  const here = (path: unknown) =>
    (/^\/(?:etc|run|(?:usr\/(?:local\/)?)?lib)\/systemd\//.test(String(path)) ? root : '') + path;
  for (const [path, text] of Object.entries(units)) {
    mkdirSync(dirname(here(path)), { recursive: true });
    writeFileSync(here(path), text);
  }
  const programs: string[] = [];
  const user = home === undefined ? undefined : `shop:x:1:1::${home}:/bin/sh\n`;
  const mocks = [
    ...(['existsSync', 'readFileSync', 'openSync', 'chmodSync'] as const).map((name) => {
      const original = fs[name] as (...values: unknown[]) => unknown;
      return t.mock.method(fs, name, (path: unknown, ...more: unknown[]) => original(here(path), ...more));
    }),
    t.mock.method(process as { getuid(): number }, 'getuid', () => uid),
    t.mock.method(
      childProcess,
      'spawnSync',
      (program: string, args: readonly string[], options?: { encoding?: string }) => {
        programs.push([program, ...args].join(' '));
        const isQuestion = program === 'getent' || program === 'id';
        const stdout = program === 'getent' ? (user ?? '') : '';
        return {
          status: isQuestion && user === undefined ? 1 : 0,
          stdout: options?.encoding === 'utf8' ? stdout : Buffer.from(stdout),
          stderr: '',
        };
      },
    ),
  ];
  syncBuiltinESMExports();
  const { execPath } = process;
  process.execPath = node;
  try {
    const notes = setUp({ dir, name: 'shop', controllers: 'controllers', hasPage: false } as Order);
    return { notes, programs, unit: (name: string) => join(root, UNITS, name) };
  } finally {
    process.execPath = execPath;
    for (const { mock } of mocks) mock.restore();
    syncBuiltinESMExports();
  }
}

const createDir = (t: TestContext) => {
  const dir = createFolder(t);
  mkdirSync(join(dir, 'runtime'));
  return dir;
};

test('--setup with systemd makes a unit, a socket and a user, who owns the data and may read the settings', (t) => {
  const dir = createDir(t);
  const { notes, programs, unit } = setUpOn(t, dir);
  const made = [
    ...['env', 'run', 'restart'].map((name) => join(dir, name)),
    ...['shop.service', 'shop.socket'].map((name) => join(UNITS, name)),
  ];
  assert.deepEqual(notes, [
    ...made.map((path) => `Made ${path}`),
    'The unit shop.service starts the service as user shop: journalctl -u shop',
  ]);
  assert.deepEqual(programs, [
    'getent passwd shop',
    'id -u shop',
    `useradd --system --user-group --home-dir ${dir} --shell /usr/sbin/nologin shop`,
    `chown shop: ${dir}/data`,
    `chgrp shop ${dir}/env`,
    'systemctl daemon-reload',
    'systemctl enable --quiet shop.service shop.socket',
  ]);
  assert.equal(readFileSync(join(dir, 'restart'), 'utf8'), '#!/bin/sh\nexec systemctl restart shop.service\n');
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  assert.deepEqual([join(dir, 'restart'), unit('shop.service'), unit('shop.socket')].map(modeOf), [
    '755',
    '644',
    '644',
  ]);
  assert.match(readFileSync(unit('shop.service'), 'utf8'), new RegExp(`^ExecStart=/bin/sh "${dir}/run"$`, 'm'));
  assert.match(readFileSync(unit('shop.socket'), 'utf8'), /^Description=.*shop$/m);
  // The second time, everything is there.
  const units = { [`${UNITS}/shop.service`]: readFileSync(unit('shop.service'), 'utf8') };
  const again = setUpOn(t, dir, { home: dir, units });
  assert.deepEqual(again.notes.slice(0, -1), [`Made ${UNITS}/shop.socket`]);
  assert.equal(
    again.programs.some((line) => line.startsWith('useradd')),
    false,
  );
});

for (const [name, machine] of [
  ['a unit of another folder', { units: { [`${UNITS}/shop.service`]: 'ExecStart=/bin/sh "/srv/other/run"\n' } }],
  ['a unit of a package', { units: { '/usr/lib/systemd/system/shop.service': '' } }],
  ['a unit of a package below /lib', { units: { '/lib/systemd/system/shop.service': '' } }],
  ['a user with another home', { home: '/home/shop' }],
] as const)
  test(`--setup makes nothing beside ${name}`, (t) => {
    const dir = createDir(t);
    assert.throws(() => setUpOn(t, dir, machine), {
      message: `The unit shop.service or the user shop is there already, and not for ${dir}: give package.json another name`,
    });
    assert.equal(existsSync(join(dir, 'env')), false);
  });

test('--setup with systemd refuses a Node that the unit could not run', (t) => {
  const dir = createDir(t);
  const nodes = ['/root/.nvm/versions/node/v24.0.0/bin/node', '/home/ada/.volta/bin/node'];
  for (const node of nodes)
    assert.throws(() => setUpOn(t, dir, { node }), {
      message: `The service could not run ${node}, because systemd closes the folders of users to it: install Node for all users (nodejs.org/en/download)`,
    });
  assert.equal(existsSync(join(dir, 'env')), false);
  // A script that is there names its own Node.
  writeFileSync(join(dir, 'run'), '');
  assert.equal(setUpOn(t, dir, { node: nodes[0] as string }).notes[0], `Made ${dir}/env`);
});

test('--setup by another user than root makes no unit', (t) => {
  const dir = createDir(t);
  const { notes, programs } = setUpOn(t, dir, { uid: 1000 });
  assert.deepEqual([notes.at(-1), programs], [`Have ${join(dir, 'run')} started with the machine`, []]);
});

test('--setup fails where it cannot write', (t) => {
  const dir = join(createFolder(t), 'missing');
  assert.throws(() => setUpOn(t, dir, { uid: 1000 }), { code: 'ENOENT' });
});

// The process of a deployment on its machine, in this process: what it does with the folder, and what it answers. A
// record that leads through the link `current` stands for a service that loads each release at once.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { acquireLock } from '../../../src/base/folder-lock.ts';
import { runOnMachine } from '../../../src/operate/cli/deploy/machine.ts';
import type { Order, Reply, Result } from '../../../src/operate/cli/deploy/order.ts';
import { MARK } from '../../../src/operate/cli/deploy/ssh.ts';
import { createFolder } from '../../support/folder.ts';

const FILES = { 'package.json': '{"name":"shop"}', 'controllers/AController.js': 'old' };
const release = (number: number) => `2026010${number}T000000000Z`;
const [R1, R2, R3, R4, R5] = [1, 2, 3, 4, 5].map(release) as [string, string, string, string, string];

interface Ran {
  readonly steps: readonly string[];
  readonly result: Result | undefined;
  readonly error: string;
}

/** A folder DIR on the machine, with two copies of Gatefold. */
function createMachine(t: TestContext) {
  const dir = realpathSync(createFolder(t, { 'runtime/one/package.json': '{}', 'runtime/two/package.json': '{}' }));
  const recordPath = join(dir, 'data/generation.json');
  const record = {
    pid: process.pid,
    runtime: join(dir, 'runtime/one'),
    folder: join(dir, 'current/controllers'),
    release: join(dir, 'current/controllers'),
    serving: join(dir, 'current/controllers'),
    state: 'serving',
    generation: 1,
    errors: [] as object[],
    draining: [] as string[],
  };
  return {
    dir,
    record,
    write(change: object = {}): void {
      mkdirSync(join(dir, 'data'), { recursive: true });
      writeFileSync(recordPath, JSON.stringify({ ...record, ...change }));
    },
    note: (name: string) => JSON.parse(readFileSync(join(dir, 'releases', name, '.gatefold-release.json'), 'utf8')),
    current: () => [readlinkSync(join(dir, 'current')), readlinkSync(join(dir, 'runtime/current'))],
    releases: () => readdirSync(join(dir, 'releases')).sort(),
    /**
     * Runs an order with these files. `onStep` is called before the process does the step, and its error is that of
     * the connection.
     */
    async run(change: Partial<Order>, files: Record<string, string> = FILES, onStep = (_step: string) => {}) {
      const names = Object.keys(files);
      const root = createFolder(t, files);
      const order: Order = {
        ...{ action: 'release', dir, releaseName: R1, fileCount: names.length, gatefoldCopy: 'one', keep: 5 },
        ...{ name: 'shop', controllers: 'controllers', hasTypeScript: false, hasPage: false, setup: false },
        ...{ bytes: Object.values(files).join('').length, closedFolders: [], ...change },
      };
      const tar = execFileSync('tar', ['-c', '-f', '-', ...names], { cwd: root });
      return runHere(t, order, tar, onStep);
    },
  };
}

async function runHere(t: TestContext, order: Order, tar: Buffer, onStep: (step: string) => void): Promise<Ran> {
  const replies: Reply[] = [];
  let error = '';
  const { stdout, umask } = process;
  const before = umask();
  const code = process.exitCode;
  const write = stdout.write.bind(stdout) as (...values: unknown[]) => boolean;
  const mocks = [
    t.mock.method(process, 'exit', () => {}),
    t.mock.getter(process, 'stdin', () => Readable.from([tar])),
    t.mock.method(process.stderr, 'write', (text: string) => {
      error += text;
      return true;
    }),
    t.mock.method(stdout, 'write', (text: string, ...more: unknown[]) => {
      if (!String(text).startsWith(MARK)) return write(text, ...more);
      const reply: Reply = JSON.parse(text.slice(MARK.length));
      replies.push(reply);
      let failure: unknown;
      try {
        if ('step' in reply) onStep(reply.step);
      } catch (error) {
        failure = error;
      }
      (more.at(-1) as (error?: unknown) => void)(failure);
      return true;
    }),
  ];
  const listeners = [process.listeners('SIGHUP'), stdout.listeners('error')] as const;
  // An earlier test that failed has set it.
  process.exitCode = undefined;
  try {
    await runOnMachine(JSON.stringify(order));
    assert.equal(process.exitCode === 1, error !== '', 'the exit code says whether the order failed');
    assert.equal(mocks[0]?.mock.callCount(), 1, 'the process ends, also with unread standard input');
    const added = [process.listenerCount('SIGHUP'), stdout.listenerCount('error')];
    assert.deepEqual(added, [listeners[0].length + 1, listeners[1].length + 1], 'a lost connection ends no process');
  } finally {
    for (const { mock } of mocks) mock.restore();
    for (const listener of process.listeners('SIGHUP'))
      if (!listeners[0].includes(listener)) process.off('SIGHUP', listener);
    for (const listener of stdout.listeners('error'))
      if (!listeners[1].includes(listener)) stdout.off('error', listener as () => void);
    process.exitCode = code;
    umask(before);
  }
  const steps = replies.flatMap((reply) => ('step' in reply ? reply.step : []));
  const [result] = replies.flatMap((reply) => ('result' in reply ? reply.result : []));
  return { steps, result, error };
}

test('a first release starts nothing, and says how to start it', async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  mkdirSync(join(dir, 'data'));
  const { steps, result, error } = await machine.run({});
  assert.deepEqual([steps, error], [[`swap to ${R1}`], '']);
  assert.deepEqual(result, {
    ...{ release: R1, before: null, current: R1, errors: [], state: 'unstarted' },
    notes: [`Made ${join(dir, 'gatefold')}`, `No service runs. Start it: ${join(dir, 'run')}`],
  });
  assert.deepEqual(machine.current(), [`releases/${R1}`, 'one']);
  assert.deepEqual(machine.note(R1).before, null);
  assert.equal(machine.note(R1).runtime, 'one');
  assert.equal(readFileSync(join(dir, 'current/controllers/AController.js'), 'utf8'), 'old');
  assert.equal(statSync(join(dir, 'releases', R1)).mode & 0o777, 0o755);
  assert.deepEqual([machine.releases(), existsSync(join(dir, 'deploy.lock'))], [[R1], false]);
});

test('releases serve one after the other, the oldest ones go, and back leads to the one before', async (t) => {
  const machine = createMachine(t);
  await machine.run({});
  machine.write();
  mkdirSync(join(machine.dir, 'releases/.half.part'));
  mkdirSync(join(machine.dir, 'runtime/old'));
  utimesSync(join(machine.dir, 'runtime/old'), 0, 0);
  for (const [name, before] of [
    [R2, R1],
    [R3, R2],
    [R4, R3],
  ] as const) {
    const { result } = await machine.run({ releaseName: name, keep: 1 });
    assert.deepEqual(result, { release: name, before, current: name, errors: [], notes: [], state: 'serving' });
    assert.equal(machine.note(name).before, before);
  }
  assert.deepEqual(machine.releases(), [R3, R4]);
  assert.equal(existsSync(join(machine.dir, 'runtime/old')), false);
  // A release runs with the Gatefold that deployed it, also after the way back.
  const { steps, result } = await machine.run({ action: 'back', keep: 1, gatefoldCopy: 'two' });
  assert.equal(machine.current()[1], 'one');
  assert.deepEqual([steps, result?.release, result?.before, result?.state], [[`swap to ${R3}`], R3, R4, 'serving']);
  assert.equal(machine.current()[0], `releases/${R3}`);
  // R2, from which R3 could go back, is not there any more.
  assert.equal((await machine.run({ action: 'back' })).error, `There is no release before ${R3} in ${machine.dir}\n`);
  const again = await machine.run({ releaseName: R4 });
  assert.equal(again.error, `${join(machine.dir, 'releases', R4)} exists already\n`);
});

test('DATA_DIR begins at DIR, and its folder must be there for a service that says what it serves', async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  writeFileSync(join(dir, 'env'), 'DATA_DIR=state\n');
  const { notes } = (await machine.run({})).result ?? {};
  const state = join(dir, 'state');
  assert.match(notes?.at(-1) ?? '', new RegExp(`^There is no ${state}, .*: make this folder for its user$`));
  machine.write();
  renameSync(join(dir, 'data'), state);
  assert.equal((await machine.run({ releaseName: R2 })).result?.state, 'serving');
});

describe('a release that does not serve', () => {
  const fail = (machine: ReturnType<typeof createMachine>, name: string) => ({
    errors: [
      { file: 'AController.js', at: join(machine.dir, `releases/${name}/controllers/AController.js:3`), error: 'no' },
    ],
  });

  test('is removed, and the one before it serves again', async (t) => {
    const machine = createMachine(t);
    await machine.run({});
    machine.write();
    const { steps, result } = await machine.run({ releaseName: R2 }, FILES, (step) =>
      machine.write(step === `swap to ${R2}` ? fail(machine, R2) : {}),
    );
    assert.deepEqual(steps, [`swap to ${R2}`, `swap back to ${R1}`]);
    assert.deepEqual(result, {
      ...{ release: R2, before: R1, current: R1, errors: ['controllers/AController.js:3: no'], notes: [] },
      state: 'failed',
    });
    assert.deepEqual([machine.releases(), machine.current()], [[R1], [`releases/${R1}`, 'one']]);
  });

  test('is never current without the folder that the service reads', async (t) => {
    const machine = createMachine(t);
    await machine.run({});
    machine.write();
    const files = { 'package.json': '{}', 'src/controllers/AController.js': 'old' };
    const { result } = await machine.run({ releaseName: R2, controllers: 'src/controllers' }, files, (step) => {
      if (step === `swap back to ${R1}`) assert.equal(machine.current()[0], `releases/${R1}`);
    });
    const cure = 'If .gatefoldignore names it, remove the line; if it was renamed, make a link';
    assert.deepEqual(result?.errors, [`${R2} has no controllers, which the service reads. ${cure}`]);
    assert.deepEqual([result?.state, machine.releases()], ['failed', [R1]]);
  });

  test('stays while a worker of it serves, and a release before it that fails, too, is named', async (t) => {
    const machine = createMachine(t);
    await machine.run({});
    machine.write();
    const draining = [join(machine.dir, 'releases', R2, 'controllers')];
    await machine.run({ releaseName: R2 }, FILES, (step) =>
      machine.write(step === `swap to ${R2}` ? fail(machine, R2) : { draining }),
    );
    assert.deepEqual(machine.releases(), [R1, R2]);
    const { result } = await machine.run({ releaseName: R3 }, FILES, () =>
      machine.write({ errors: [{ error: 'a disk' }] }),
    );
    assert.deepEqual([result?.errors, result?.notes], [['a disk'], [`${R1} does not serve: a disk`]]);
    assert.deepEqual(machine.releases(), [R1, R2, R3]);
  });

  test('stays when it is the first one', async (t) => {
    const machine = createMachine(t);
    machine.write({ folder: join(machine.dir, 'releases/x'), errors: [{ error: 'no' }] });
    mkdirSync(join(machine.dir, 'releases/x'), { recursive: true });
    const { result } = await machine.run({});
    assert.deepEqual(
      [result?.state, result?.notes.at(-1)],
      ['failed', 'No release was there before, so this one stays'],
    );
    assert.deepEqual(machine.releases(), [R1, 'x']);
  });
});

test('another Gatefold is started by DIR/restart, or by the operator', async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  await machine.run({});
  machine.write();
  const first = await machine.run({ releaseName: R2, gatefoldCopy: 'two' });
  assert.deepEqual(first.result?.notes, [
    'Start the service again: it runs another Gatefold than two, which is there now',
  ]);
  assert.deepEqual(machine.current(), [`releases/${R2}`, 'two']);
  const restarted = JSON.stringify({ ...machine.record, pid: process.ppid, runtime: join(dir, 'runtime/two') });
  // The service keeps the output of the script open.
  const script = `#!/bin/sh\nsleep 600 & echo $! >>sleeping\ncat >data/generation.json <<'END'\n${restarted}\nEND\n`;
  writeFileSync(join(dir, 'restart'), script, { mode: 0o755 });
  const second = await machine.run({ releaseName: R3, gatefoldCopy: 'two' });
  assert.deepEqual(
    [second.result?.state, second.result?.notes],
    ['serving', ['The service was started again, because it now runs Gatefold two']],
  );
  // A service that has stopped is started without a note.
  machine.write({ state: 'stopped' });
  const third = await machine.run({ releaseName: R4, gatefoldCopy: 'two' });
  assert.deepEqual([third.result?.state, third.result?.notes], ['serving', []]);
  for (const pid of readFileSync(join(dir, 'sleeping'), 'utf8').trim().split('\n')) process.kill(Number(pid));
  writeFileSync(join(dir, 'restart'), '#!/bin/sh\necho one; echo two >&2; exit 3\n', { mode: 0o755 });
  machine.write({ state: 'stopped' });
  const { result } = await machine.run({ releaseName: R5, gatefoldCopy: 'two' });
  assert.deepEqual([result?.state, result?.errors], ['failed', [`${join(dir, 'restart')}: one | two`]]);
});

test('packages are installed, or copied from the release before, and predeploy has the settings of the service', async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  const npm =
    '#!/bin/sh\necho "$GREETING $DATA_DIR $*" >>"$LOG"\n[ "$1" = ci ] && mkdir -p node_modules/x w/node_modules/y\n[ "$2" != fail ]\n';
  const bin = createFolder(t, { npm });
  chmodSync(join(bin, 'npm'), 0o755);
  const log = join(bin, 'log');
  writeFileSync(join(dir, 'env'), `GREETING=hi\nLOG='${log}'\nPATH="${bin}:$PATH"\n`);
  const files = { ...FILES, 'package-lock.json': '{"packages":{"node_modules/x":{},"w":{},"w/node_modules/y":{}}}' };
  const asked = () => readFileSync(log, 'utf8').trimEnd().split('\n');
  assert.deepEqual((await machine.run({}, files)).steps, ['npm ci', `swap to ${R1}`]);
  assert.deepEqual(asked(), [`hi ${dir}/data ci --omit=dev --no-audit --no-fund`]);
  machine.write();
  const scripts = { ...files, 'package.json': '{"name":"shop","scripts":{"predeploy":"x"}}' };
  assert.deepEqual((await machine.run({ releaseName: R2 }, scripts)).steps, ['npm run predeploy', `swap to ${R2}`]);
  assert.deepEqual(asked().slice(1), [`hi ${dir}/data run predeploy`]);
  for (const path of ['node_modules/x', 'w/node_modules/y']) assert.ok(existsSync(join(dir, 'current', path)), path);
  const other = { ...files, 'package-lock.json': '{"packages":{"":{}}}' };
  assert.deepEqual((await machine.run({ releaseName: R3 }, other)).steps, ['npm ci', `swap to ${R3}`]);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\necho no table; exit 7\n');
  const failed = await machine.run(
    { releaseName: R4 },
    { ...other, ...scripts, 'package-lock.json': other['package-lock.json'] },
  );
  assert.equal(
    failed.error,
    `npm run predeploy ended with 7: no table. Its settings are those of ${join(dir, 'env')}\n`,
  );
  assert.deepEqual(machine.releases(), [R1, R2, R3]);
});

test('a deployment does not wait long for another one that holds the lock', async (t) => {
  const machine = createMachine(t);
  const lock = await acquireLock(join(machine.dir, 'deploy.lock'));
  t.after(() => lock.release());
  let passed = 0;
  const { now } = performance;
  const clock = t.mock.method(performance, 'now', () => {
    passed += 2000;
    return now.call(performance) + passed;
  });
  const { error } = await machine.run({});
  clock.mock.restore();
  assert.match(error, /^Another deployment to \S+ is under way\. Cannot lock \S+: process \d+ has held it for 3 s\n$/);
  assert.ok(error.includes(`process ${process.pid} `), error);
});

test('a connection that is lost before the swap leaves no release', async (t) => {
  const machine = createMachine(t);
  const { error, result } = await machine.run({}, FILES, () => {
    throw new Error('EPIPE');
  });
  assert.deepEqual([error, result], ['The connection is lost, and nothing has changed\n', undefined]);
  assert.deepEqual([machine.releases(), existsSync(join(machine.dir, 'current'))], [[], false]);
});

describe('a full disk', () => {
  /** Only a folder whose name ends like this is on a full disk. */
  const fill = (t: TestContext, ending: string) => {
    const { statfsSync } = fs;
    const stat = t.mock.method(fs, 'statfsSync', (path: string) =>
      path.endsWith(ending) ? { bavail: 15, bsize: 4096 } : statfsSync(path),
    );
    syncBuiltinESMExports();
    t.after(() => {
      stat.mock.restore();
      syncBuiltinESMExports();
    });
  };
  const npmThatFails = (t: TestContext, dir: string, text: string) => {
    const bin = createFolder(t, { npm: `#!/bin/sh\necho '${text}'\nexit 1\n` });
    chmodSync(join(bin, 'npm'), 0o755);
    writeFileSync(join(dir, 'env'), `PATH="${bin}:$PATH"\n`);
  };
  const files = { ...FILES, 'package-lock.json': '{}' };
  const message = (dir: string) => `Cannot make the release: no space is left on the disk of ${dir}/releases`;

  test('of the data ends a deployment before it begins', async (t) => {
    const machine = createMachine(t);
    mkdirSync(join(machine.dir, 'data'));
    fill(t, '/data');
    const { error } = await machine.run({});
    const reason = 'the service could not answer there';
    assert.equal(error, `No space is left on the disk of ${machine.dir}/data: ${reason}\n`);
  });

  test('is the reason why a release fails, although the error does not say so', async (t) => {
    const machine = createMachine(t);
    npmThatFails(t, machine.dir, 'no luck');
    fill(t, '.part');
    const { error } = await machine.run({}, files);
    assert.equal(error, `${message(machine.dir)} (npm ci --omit=dev ended with 1: no luck)\n`);
    assert.deepEqual(machine.releases(), []);
  });

  test('is named by the error of npm', async (t) => {
    const machine = createMachine(t);
    npmThatFails(t, machine.dir, 'npm error code ENOSPC');
    assert.equal((await machine.run({}, files)).error, `${message(machine.dir)}\n`);
  });
});

test('a release with TypeScript needs tsx on an older Node, also when tsx is a development package', {
  skip: process.features.typescript ? 'this Node loads TypeScript itself' : false,
}, async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  const bin = createFolder(t, {
    npm: '#!/bin/sh\necho "$*" >>"$LOG"\n[ "$2" = --omit=dev ] || mkdir -p node_modules/tsx\n',
  });
  chmodSync(join(bin, 'npm'), 0o755);
  const log = join(bin, 'log');
  writeFileSync(join(dir, 'env'), `LOG='${log}'\nPATH="${bin}:$PATH"\n`);
  const without = await machine.run({ hasTypeScript: true }, { ...FILES, 'package-lock.json': '{}' });
  const remedy = 'install Node 22.18 or later on this machine, or tsx in the project (npm install tsx)';
  assert.equal(without.error, `Node ${process.versions.node} cannot load TypeScript: ${remedy}\n`);
  const manifest = '{"name":"shop","devDependencies":{"tsx":"4"}}';
  const files = { ...FILES, 'package.json': manifest, 'package-lock.json': '{}' };
  assert.equal((await machine.run({ hasTypeScript: true }, files)).error, '');
  assert.match(machine.note(R1).packages, / dev$/);
  assert.deepEqual(readFileSync(log, 'utf8').split('\n'), [
    'ci --omit=dev --no-audit --no-fund',
    'ci --include=dev --no-audit --no-fund',
    '',
  ]);
  // A project without TypeScript needs no tsx.
  assert.equal((await machine.run({ releaseName: R2 }, files)).error, '');
  assert.doesNotMatch(machine.note(R2).packages, / dev$/);
});

describe('a deployment changes nothing', () => {
  const rows: [
    name: string,
    error: (dir: string) => string,
    prepare: (machine: ReturnType<typeof createMachine>) => void,
    change?: Partial<Order>,
  ][] = [
    [
      'without a release to go back to',
      (dir) => `There is no release before the first one in ${dir}`,
      () => {},
      { action: 'back' },
    ],
    [
      'beside a service of another folder',
      (dir) => `The service at process ${process.pid} serves /srv/x, and no release of ${dir}: start it by ${dir}/run`,
      ({ write }) => write({ folder: '/srv/x' }),
    ],
    [
      'where current is no link',
      (dir) => `${dir}/current is not a link: move it away`,
      ({ dir }) => mkdirSync(join(dir, 'current')),
    ],
    [
      'where it cannot write',
      (dir) => `Cannot write to ${dir}: a part of the path is not a folder`,
      ({ dir }) => writeFileSync(join(dir, 'deploy.lock'), ''),
    ],
    [
      'after a file was lost',
      () => '2 of 3 files, 18 of 18 bytes have arrived: the stream was cut, or a file has changed meanwhile',
      () => {},
      { fileCount: 3 },
    ],
  ];
  for (const [name, error, prepare, change = {}] of rows)
    test(name, async (t) => {
      const machine = createMachine(t);
      prepare(machine);
      const ran = await machine.run(change);
      assert.deepEqual([ran.error, ran.result], [`${error(machine.dir)}\n`, undefined]);
      assert.deepEqual(machine.releases(), []);
    });
});

test('--setup makes each file once, and closes the settings and the data', {
  skip: existsSync('/run/systemd/system'),
}, async (t) => {
  const machine = createMachine(t);
  const { dir } = machine;
  const path = (name: string) => join(dir, name);
  const { result } = await machine.run({ setup: true, hasPage: true });
  const advice = `Have ${path('run')} started with the machine`;
  const made = ['env', 'run'].map((name) => `Made ${path(name)}`);
  assert.deepEqual(result?.notes.slice(0, -1), [...made, advice, `Made ${path('gatefold')}`]);
  const modeOf = (name: string) => (statSync(path(name)).mode & 0o777).toString(8);
  assert.deepEqual(['data', 'env', 'run', 'gatefold'].map(modeOf), ['700', '640', '755', '755']);
  assert.equal(readlinkSync(path('runtime/node_modules')), '../current/node_modules');
  const text = readFileSync(path('env'), 'utf8');
  assert.match(
    text,
    /^# Settings of the service .*\n# Quote .*\n# This file may have secrets\. .*\nPUBLIC_DIR=current\/web\/dist\nPUBLIC_FALLBACK=index\.html\n$/,
  );
  const again = await machine.run({ setup: true, releaseName: R2 });
  assert.deepEqual(again.result?.notes.slice(0, -1), [advice]);
});

// `gatefold deploy` to unusual machines: two machines, another user, hostile names, a full data folder, a connection
// that is cut before the swap, and systemd's folders.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { makeProject, startDeployed, until, valueFiles, writeFiles } from '../support/deployed.ts';
import { LOADER, modulePath } from '../support/own-modules.ts';
import { deploy, NO_SSH, spawnDeploy, startSshMachine } from '../support/ssh-machine.ts';

const ROOT = join(import.meta.dirname, '../..');
const CAN_MOUNT = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0;

describe('gatefold deploy to unusual machines', { skip: NO_SSH }, () => {
  it('deploys to two machines in turn, and a failure leaves the second machine unchanged', async (test) => {
    const one = await startDeployed(test);
    const two = await startDeployed(test);
    // Both sshd run on this machine, so each of them reaches both folders.
    const both = (...words: string[]) => one.deploy(`vm2:${two.dir}`, ...words);
    writeFiles(one.project, valueFiles('new'));
    const good = await both();
    assert.equal(good.code, 0, good.out + good.err);
    assert.deepEqual(good.out.match(/^vm\d: .* serves /gm)?.length, 2);
    for (const { port } of [one, two]) assert.equal(json(await ask(port, '/api/test')).value, 'new');
    const currents = [one.current(), two.current()];
    writeFiles(one.project, { 'lib/value.js': 'export const value = ;\n' });
    const bad = await both();
    assert.equal(bad.code, 1);
    assert.match(bad.out, /^Untouched: vm2:/m);
    assert.deepEqual([one.current(), two.current()], currents);
  });

  it('swaps no release when the connection is cut during predeploy', async (test) => {
    const shop = await startDeployed(test);
    const good = shop.current();
    const gate = join(shop.machine.folder, 'gate');
    const scripts = { predeploy: `while [ ! -e '${gate}' ]; do sleep 0.1; done; : > '${gate}.passed'` };
    writeFiles(shop.project, {
      ...valueFiles(1),
      'package.json': JSON.stringify({ name: 'shop', type: 'module', scripts }),
    });
    const cut = spawnDeploy(shop.machine, shop.project, [`vm1:${shop.dir}`]);
    await until('predeploy runs', () => cut.said().includes('npm run predeploy'));
    process.kill(-Number(cut.child.pid), 'SIGKILL');
    await cut.ended;
    const sshd = readFileSync(join(shop.machine.folder, 'sshd.pid'), 'utf8').trim();
    const sessions = () => readFileSync(`/proc/${sshd}/task/${sshd}/children`, 'utf8').trim();
    await until('sshd has ended the session', () => sessions() === '');
    writeFileSync(gate, '');
    await until('the lock is free', () => !existsSync(join(shop.dir, 'deploy.lock')));
    assert.ok(existsSync(`${gate}.passed`), 'predeploy finished');
    assert.equal(shop.current(), good);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 0);
    const next = await shop.deploy();
    assert.equal(next.code, 0, next.out + next.err);
    assert.deepEqual(shop.releases(), [good, shop.current()]);
  });

  it('copies hostile file names unchanged, and a second --setup keeps existing files', async (test) => {
    const machine = await startSshMachine(test);
    const dir = join(machine.folder, `-srv/ a shop's "best" $HOME \`id\` %h ; & ä\u{1f600}*`);
    const names = [
      ' a',
      'b\'"',
      '-rf',
      '--checkpoint=1',
      '[a]*?',
      '$(id)',
      'a\\101',
      'b\\n',
      'é',
      'e\u0301',
      '@list',
      '~',
    ];
    const project = makeProject(
      join(machine.folder, 'project'),
      Object.fromEntries([...names, ...names.map((name) => `${name}.d/.x`)].map((name) => [name, name])),
    );
    writeFiles(project, valueFiles(0));
    mkdirSync(join(project, 'real'));
    writeFileSync(join(project, 'real/x'), '');
    writeFiles(project, { 'config/prod.json': '{}', 'closed/x': '' });
    chmodSync(join(project, 'config/prod.json'), 0o600);
    chmodSync(join(project, 'closed'), 0o700);
    symlinkSync('real', join(project, 'a link'));
    const setUp = () => deploy(machine, project, ['--setup', `vm1:${dir}`]);
    const first = await setUp();
    assert.equal(first.code, 0, first.out + first.err);
    const tree = (root: string) =>
      (readdirSync(root, { recursive: true }) as string[]).filter((name) => name !== '.gatefold-release.json').sort();
    assert.deepEqual(tree(join(dir, 'current')), tree(project));
    for (const name of names) assert.equal(readFileSync(join(dir, 'current', name), 'utf8'), name);
    const modes = () => ['.', 'env', 'run', 'data'].map((name) => (statSync(join(dir, name)).mode & 0o777).toString(8));
    assert.deepEqual(modes(), ['755', '640', '755', '700']);
    const closed = () =>
      ['config', 'config/prod.json', 'closed', 'closed/x'].map((path) => {
        const { mode, gid } = statSync(join(dir, 'current', path));
        return `${(mode & 0o777).toString(8)}${gid === 12_345 ? ' group' : ''}`;
      });
    assert.deepEqual(closed(), ['755', '600', '700', '644'], 'nobody else can read what is closed in the project');
    if (process.getuid?.() === 0) chownSync(join(dir, 'data'), 12_345, 12_345);
    writeFileSync(join(dir, 'env'), 'PORT=1\n');
    writeFileSync(join(dir, 'run'), '#!/bin/sh\n# mine\n');
    const second = await setUp();
    assert.equal(second.code, 0, second.out + second.err);
    assert.doesNotMatch(second.out, /Made /);
    if (process.getuid?.() === 0)
      assert.deepEqual(closed(), ['755', '640 group', '750 group', '644'], 'the user of the service can read it');
    assert.deepEqual(modes(), ['755', '640', '755', '700']);
    assert.equal(readFileSync(join(dir, 'env'), 'utf8'), 'PORT=1\n');
    assert.match(readFileSync(join(dir, 'run'), 'utf8'), /mine/);
    chmodSync(join(dir, 'run'), 0o775);
    const open = await setUp();
    assert.equal(open.code, 1);
    assert.match(open.out, /can change .*\/run, and so run programs as /);
  });

  it('fails before the swap when the data folder is full', { skip: !CAN_MOUNT }, async (test) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatefold-data-'));
    test.after(() => {
      spawnSync('umount', ['-l', folder]);
      rmSync(folder, { recursive: true, force: true });
    });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'gatefold-test', folder]);
    const shop = await startDeployed(test);
    const good = shop.current();
    writeFileSync(join(shop.dir, 'env'), `DATA_DIR=${folder}\n`);
    spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'big')}`, 'bs=64k']);
    writeFiles(shop.project, valueFiles(1));
    const { code, out } = await shop.deploy();
    assert.equal(code, 1);
    assert.match(out, /No space is left on the disk of /);
    assert.equal(shop.current(), good);
  });

  it('sets up folders for a user who is not root', { skip: !CAN_MOUNT }, async (test) => {
    const uid = 12_345;
    const machine = await startSshMachine(test, { login: { name: 'ada', uid } });
    const mine = join(machine.folder, "ada's");
    mkdirSync(mine);
    chownSync(mine, uid, uid);
    const project = makeProject(join(machine.folder, 'project'), valueFiles(0));
    const made = await deploy(machine, project, ['--setup', `vm1:${mine}`]);
    assert.equal(made.code, 0, made.out + made.err);
    for (const name of ['run', 'env', 'data', 'current', 'runtime/current'])
      assert.equal(statSync(join(mine, name)).uid, uid);
    const foreign = await deploy(machine, project, ['--setup', `vm1:${machine.folder}/root's`]);
    assert.equal(foreign.code, 1);
    assert.match(
      foreign.out,
      /ada may not write to .* Run there: sudo install -d -o ada '.*\/root'\\''s'; or deploy as root/,
    );
    const open = join(machine.folder, 'root');
    mkdirSync(join(open, 'runtime'), { recursive: true });
    chownSync(open, uid + 1, uid);
    const other = await deploy(machine, project, ['--setup', `vm1:${open}`]);
    assert.match(other.out, /others than ada can change|ada may not write/);
    assert.deepEqual(readdirSync(open), ['runtime']);
  });
});

/** Gives the process its own /etc and /run, in which systemd seems to have started. */
const NAMESPACE = `mount -t tmpfs t /run && mkdir -p /run/systemd/system /run/etc && cp -a /etc/. /run/etc/ &&
mount --bind /run/etc /etc && export SYSTEMD_OFFLINE=1 && exec "$0" "$@"`;

it('gatefold deploy --setup creates a user and a unit once, and keeps those of other services', {
  skip: !CAN_MOUNT || spawnSync('systemctl', ['--version']).status !== 0,
}, (test) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-unit-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  const script = `
    import { mkdirSync, readFileSync } from 'node:fs';
    import { execFileSync } from 'node:child_process';
    import { setUp } from ${JSON.stringify(modulePath('src/operate/cli/deploy/setup'))};
    const attempt = (dir, name) => {
      try { return setUp({ dir, name, controllers: 'controllers' }).length } catch (error) { return error.message }
    };
    const dir = process.argv[1];
    // The deployment makes these folders before it calls setUp (machine.ts).
    for (const path of [dir, dir + '2']) mkdirSync(path + '/runtime', { recursive: true });
    const results = [[dir, 'shop'], [dir, 'shop'], [dir + '2', 'shop'], [dir, 'ssh'], [dir, 'daemon'], [dir, 'root']].map(
      ([dir, name]) => attempt(dir, name));
    const owner = (name) => execFileSync('stat', ['-c', '%U:%G %a', dir + '/' + name], { encoding: 'utf8' }).trim();
    const unit = readFileSync('/etc/systemd/system/multi-user.target.wants/shop.service', 'utf8');
    console.log(JSON.stringify({ results, owners: ['data', 'env', 'run', 'restart'].map(owner), unit }));`;
  const words = [
    '-m',
    'sh',
    '-c',
    NAMESPACE,
    process.execPath,
    ...LOADER,
    '--input-type=module',
    '-e',
    script,
    join(folder, 'shop'),
  ];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8', cwd: ROOT });
  assert.notEqual(stdout, '', stderr);
  const { results, owners, unit } = JSON.parse(stdout);
  assert.deepEqual(
    results.slice(0, 2),
    [6, 1],
    'the first run writes four files, a socket and a unit, the second run only the unit',
  );
  for (const result of results.slice(2)) assert.match(String(result), /is there already, and not for /);
  assert.deepEqual(owners, ['shop:shop 700', 'root:shop 640', 'root:root 755', 'root:root 755']);
  assert.match(unit, /^User=shop$/m);
});

// `gatefold deploy` to a real sshd on loopback: under load, and with failures in each step.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { ask, json, startLoad } from '../support/cluster-client.ts';
import { makeProject, RESTART, startDeployed, until, valueFiles, writeFiles } from '../support/deployed.ts';
import {
  deploy,
  type MachineOptions,
  NO_SSH,
  type SshMachine,
  spawnDeploy,
  startSshMachine,
} from '../support/ssh-machine.ts';

/** A package inside the project, so that `npm ci` needs no registry. */
const VENDOR = {
  'package.json': '{"name":"shop","type":"module","dependencies":{"greet":"file:vendor/greet"}}',
  'package-lock.json': JSON.stringify({
    name: 'shop',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'shop', dependencies: { greet: 'file:vendor/greet' } },
      'node_modules/greet': { resolved: 'vendor/greet', link: true },
      'vendor/greet': { version: '1.0.0' },
    },
  }),
  'vendor/greet/package.json': '{"name":"greet","version":"1.0.0","type":"module","exports":"./index.js"}',
  'vendor/greet/index.js': "export const greet = () => 'hi';\n",
};

describe('gatefold deploy, ten times', { skip: NO_SSH }, () => {
  it('loses no request, and keeps serving after the removal of old releases and the death of all workers', async (test) => {
    const files = {
      ...VENDOR,
      ...valueFiles(0),
      'controllers/GreetController.js':
        "import { greet } from 'greet';\nexport default class { index() { return { said: greet() }; } }\n",
    };
    const shop = await startDeployed(test, { files });
    const options = { port: shop.port, connections: 3 } as const;
    const loads = [
      startLoad(test, { ...options, mode: 'kept-alive', pause: 5 }),
      startLoad(test, { ...options, mode: 'one request a connection', pause: 10 }),
    ];
    for (let value = 1; value <= 10; value++) {
      writeFiles(shop.project, { 'lib/value.js': `export const value = ${value};\n` });
      const before = shop.current();
      const { code, out, err } = await shop.deploy('--keep', '3');
      assert.equal(code, 0, out + err);
      assert.match(out, new RegExp(`serves ${shop.current()}, before it ${before}\n$`));
      assert.equal(json(await ask(shop.port, '/api/test')).value, value);
      assert.equal(err.includes('npm ci'), false, 'npm ci is skipped for the same lock file');
    }
    const reports = await Promise.all(loads.map((load) => load.stop()));
    assert.deepEqual(
      reports.flatMap(({ failures }) => failures),
      [],
    );
    test.diagnostic(`${reports.map(({ answers }) => answers).join(' + ')} answers, none lost`);

    assert.equal(shop.record().generation, 11, 'each deployment makes one generation');
    assert.equal(
      statSync(join(shop.dir, 'current/lib/unchanged.js')).nlink,
      1,
      'a release shares no file with another release',
    );
    await until('the old generations have drained', () => shop.record().draining.length === 0);
    assert.equal((await shop.deploy('--keep', '1')).code, 0);
    assert.ok(shop.releases().length <= 2, 'at most the serving release and the release before remain');
    await until('the old generation has drained', () => shop.record().draining.length === 0);
    for (const name of readdirSync(join(shop.dir, 'releases')))
      if (name !== shop.current()) rmSync(join(shop.dir, 'releases', name), { recursive: true });
    const old = await workersOf(shop.port);
    for (const pid of old) process.kill(pid, 'SIGKILL');
    await until('other workers answer', async () => {
      const answer = await ask(shop.port, '/api/test').catch(() => undefined);
      return answer?.status === 200 && !old.has(Number(json(answer).pid));
    });
    assert.equal(json(await ask(shop.port, '/api/test')).value, 10);
    assert.equal(json(await ask(shop.port, '/api/greet')).said, 'hi');
    assert.equal(realpathSync(join(shop.dir, 'current')), join(realpathSync(shop.dir), 'releases', shop.current()));
  });
});

/** Sends requests until both workers have answered. Returns their process ids. */
async function workersOf(port: number): Promise<Set<number>> {
  const pids = new Set<number>();
  await until('both workers answer', async () => {
    pids.add(Number(json(await ask(port, '/api/test')).pid));
    return pids.size === 2;
  });
  return pids;
}

describe('gatefold deploy with a failure', { skip: NO_SSH }, () => {
  it('prints the place in a file that does not load, restores the link, and skips the next machine', async (test) => {
    const shop = await startDeployed(test);
    const load = startLoad(test, { port: shop.port, connections: 3, mode: 'one request a connection', pause: 15 });
    const good = shop.current();
    writeFiles(shop.project, { 'lib/value.js': 'export const value = ;\n' });
    const broken = await shop.deploy(`vm2:${shop.dir}`);
    assert.equal(broken.code, 1);
    assert.match(broken.out, /^vm1: lib\/value\.js:1: SyntaxError/m);
    assert.match(broken.out, /^Untouched: vm2:/m);
    assert.equal(shop.current(), good);
    assert.deepEqual(shop.releases(), [good], 'the failed release was removed');
    writeFiles(shop.project, {
      ...valueFiles(1),
      'controllers/NewController.js': 'export default class {\n  index( {}\n}\n',
    });
    const newGroup = await shop.deploy();
    assert.match(newGroup.out, /^vm1: controllers\/NewController\.js:3: SyntaxError/m);
    assert.equal(shop.current(), good);
    await until(
      'the good release serves',
      () => shop.record().state === 'serving' && shop.record().errors.length === 0,
    );
    assert.equal(json(await ask(shop.port, '/api/test')).value, 0);
    rmSync(join(shop.project, 'controllers/NewController.js'));
    const other = join(shop.machine.folder, 'other');
    const mended = await shop.deploy(`vm2:${other}`);
    assert.equal(mended.code, 1);
    assert.match(mended.out, /^vm1: .* serves /m);
    assert.match(mended.out, /^vm2: not deployed\. .* The first time: gatefold deploy --setup$/m);
    const both = await shop.deploy(`vm2:${other}`, '--setup');
    assert.equal(both.code, 0, both.out + both.err);
    assert.match(both.out, /^vm2: No service runs\. Start it: /m);
    const { failures } = await load.stop();
    assert.deepEqual(failures, []);
  });

  it('changes nothing when it is killed during the copy, and the next deployment succeeds', async (test) => {
    const shop = await startDeployed(test);
    const load = startLoad(test, { port: shop.port, connections: 3, mode: 'kept-alive', pause: 15 });
    const [good] = shop.releases();
    writeFiles(shop.project, valueFiles(1));
    writeFiles(shop.project, { 'big.bin': 'x'.repeat(2_000_000) });
    const tar = slowTar(shop.machine, 200_000);
    const cut = spawnDeploy(shop.machine, shop.project, [`vm1:${shop.dir}`], { env: tar });
    await until('files arrive', () => shop.releases().some((name) => name.endsWith('.part')));
    assert.equal(shop.current(), good);
    process.kill(-Number(cut.child.pid), 'SIGKILL');
    await cut.ended;
    await until('the lock is free', () => !existsSync(join(shop.dir, 'deploy.lock')));
    assert.equal(shop.current(), good);

    // The process on the machine is killed, too, while it holds the lock.
    const killed = spawnDeploy(shop.machine, shop.project, [`vm1:${shop.dir}`], { env: tar });
    const held = () =>
      existsSync(join(shop.dir, 'deploy.lock')) && readdirSync(join(shop.dir, 'deploy.lock')).length > 0;
    await until('files arrive', () => held() && shop.releases().some((name) => name.endsWith('.part')));
    process.kill(Number(readdirSync(join(shop.dir, 'deploy.lock'))[0]?.split('-')[0]), 'SIGKILL');
    const { code, out } = await killed.ended;
    assert.equal(code, 1, out);
    assert.ok(existsSync(join(shop.dir, 'deploy.lock')));
    const { failures } = await load.stop();
    assert.deepEqual(failures, []);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 0);
    const next = await shop.deploy();
    assert.equal(next.code, 0, next.out + next.err);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 1);
    assert.deepEqual(shop.releases(), [good, shop.current()], 'the incomplete release was removed');
  });

  it('finishes on the machine when the command is killed after the swap', async (test) => {
    const shop = await startDeployed(test);
    const good = shop.current();
    writeFiles(shop.project, valueFiles(1));
    const cut = spawnDeploy(shop.machine, shop.project, [`vm1:${shop.dir}`]);
    await until('the swap is reported', () => cut.said().includes('swap to'));
    process.kill(-Number(cut.child.pid), 'SIGKILL');
    await until('the lock is free', () => !existsSync(join(shop.dir, 'deploy.lock')));
    assert.notEqual(shop.current(), good);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 1);
  });

  it('restores the serving release when an earlier deployment was killed after its swap', async (test) => {
    const shop = await startDeployed(test);
    const good = shop.current();
    // A killed process leaves `current` as a link to a release that does not load.
    writeFiles(join(shop.dir, 'releases/20200101T000000000Z'), { 'controllers/TestController.js': 'export {' });
    rmSync(join(shop.dir, 'current'));
    symlinkSync('releases/20200101T000000000Z', join(shop.dir, 'current'));
    await until('the release is rejected', () => shop.record().state === 'rejected');
    writeFiles(shop.project, { 'lib/value.js': 'export const value = ;\n' });
    assert.equal((await shop.deploy()).code, 1);
    assert.equal(shop.current(), good);
  });

  it('changes nothing on a full disk, and succeeds once there is space', async (test) => {
    const dir = mkdtempSync(join(tmpdir(), 'gatefold-disk-'));
    const unmount = () => {
      spawnSync('umount', ['-l', dir]);
      rmSync(dir, { recursive: true, force: true });
    };
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=755', 'gatefold-test', dir]).status !== 0) {
      unmount();
      return test.skip('this user may not mount a small disk');
    }
    const shop = await startDeployed(test, { dir }).catch((error) => {
      unmount();
      throw error;
    });
    test.after(unmount);
    const load = startLoad(test, { port: shop.port, connections: 3, mode: 'kept-alive', pause: 15 });
    const [good] = shop.releases();
    const packageJson = { name: 'shop', type: 'module', scripts: { predeploy: 'head -c 40000000 /dev/zero >big.bin' } };
    for (const files of [{ 'big.bin': 'x'.repeat(40_000_000) }, { 'package.json': JSON.stringify(packageJson) }]) {
      writeFiles(shop.project, { ...valueFiles(1), ...files });
      const full = await shop.deploy();
      assert.equal(full.code, 1);
      assert.match(full.out, /no space is left on the disk of /);
      assert.deepEqual(shop.releases(), [good], 'nothing is left on the full disk');
      rmSync(join(shop.project, 'big.bin'), { force: true });
    }
    writeFiles(shop.project, { 'package.json': JSON.stringify({ ...packageJson, scripts: {} }) });
    const next = await shop.deploy();
    assert.equal(next.code, 0, next.out + next.err);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 1);
    const { failures } = await load.stop();
    assert.deepEqual(failures, []);
  });

  it('refuses a second deployment at the same time', async (test) => {
    const shop = await startDeployed(test);
    const gate = join(shop.machine.folder, 'gate');
    writeFiles(shop.project, {
      ...valueFiles(1),
      'package.json': JSON.stringify({
        name: 'shop',
        type: 'module',
        scripts: { predeploy: `while [ ! -e '${gate}' ]; do sleep 0.1; done` },
      }),
    });
    const first = spawnDeploy(shop.machine, shop.project, [`vm1:${shop.dir}`]);
    await until('the first deployment runs its predeploy', () => first.said().includes('npm run predeploy'));
    const second = await shop.deploy();
    assert.equal(second.code, 1);
    assert.match(second.out, /Another deployment to .* is under way/);
    writeFileSync(gate, '');
    const { code, out, err } = await first.ended;
    assert.equal(code, 0, out + err);
    assert.equal(json(await ask(shop.port, '/api/test')).value, 1);
  });
});

describe('gatefold deploy, over several releases', { skip: NO_SSH }, () => {
  it('--back restores the previous release with its page, and skips a release that was rolled back', async (test) => {
    const scripts = { 'build:web': 'mkdir -p web/dist && cp lib/value.js web/dist/index.html' };
    const files = { ...valueFiles(0), 'package.json': JSON.stringify({ name: 'shop', type: 'module', scripts }) };
    const shop = await startDeployed(test, { files });
    const first = shop.current();
    for (const value of [1, 2]) {
      writeFiles(shop.project, valueFiles(value));
      assert.equal((await shop.deploy()).code, 0);
    }
    const value = async () => {
      const { value } = json(await ask(shop.port, '/api/test'));
      assert.match(
        (await ask(shop.port, '/')).body,
        new RegExp(`value = ${value};`),
        'the page is that of the release',
      );
      return value;
    };
    assert.equal((await shop.deploy('--back')).code, 0);
    assert.equal(await value(), 1);
    writeFiles(shop.project, valueFiles(3));
    assert.equal((await shop.deploy()).code, 0);
    assert.equal(await value(), 3);
    for (const expected of [1, 0]) {
      assert.equal((await shop.deploy('--back')).code, 0);
      assert.equal(await value(), expected);
    }
    assert.equal(shop.current(), first);
    const none = await shop.deploy('--back');
    assert.equal(none.code, 1);
    assert.match(none.out, /There is no release before/);
    assert.equal(shop.current(), first);
  });

  it('restarts the service for another version of Gatefold, and --back restarts the old version', async (test) => {
    const shop = await startDeployed(test);
    const old = shop.record();
    const other = join(shop.machine.folder, 'other');
    const root = join(import.meta.dirname, '../..');
    for (const name of ['dist', 'deploy']) cpSync(join(root, name), join(other, name), { recursive: true });
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    writeFileSync(join(other, 'package.json'), JSON.stringify({ ...manifest, version: '9.9.9' }));
    writeFiles(shop.project, valueFiles(1));
    const by = (...words: string[]) =>
      deploy(shop.machine, shop.project, [`vm1:${shop.dir}`, ...words], { root: other });
    const unable = await by();
    assert.equal(unable.code, 0, unable.out + unable.err);
    assert.match(unable.out, /Start the service again: it runs another Gatefold than 9\.9\.9/);
    assert.equal(shop.record().runtime, old.runtime);

    writeFileSync(join(shop.dir, 'restart'), RESTART, { mode: 0o755 });
    const able = await by();
    assert.equal(able.code, 0, able.out + able.err);
    assert.match(able.out, /The service was started again, because it now runs Gatefold 9\.9\.9/);
    assert.match(shop.record().runtime, /\/runtime\/9\.9\.9/);
    assert.notEqual(shop.record().pid, old.pid);
    writeFiles(shop.project, { 'lib/value.js': 'export const value = ;\n' });
    const broken = await shop.deploy();
    assert.equal(broken.code, 1);
    assert.match(broken.out, /lib\/value\.js:1: SyntaxError/);
    assert.match(
      shop.record().runtime,
      /\/runtime\/9\.9\.9/,
      'the previous release runs its version of Gatefold again',
    );
    assert.equal(json(await ask(shop.port, '/api/test')).value, 1);
    for (const runtime of [/9\.9\.9/, /\/runtime\/(?!9)/]) {
      assert.equal((await by('--back')).code, 0);
      assert.match(shop.record().runtime, runtime);
    }
    assert.equal(json(await ask(shop.port, '/api/test')).value, 0);
  });
});

/** Returns an environment whose tar sends some bytes and then hangs. */
function slowTar({ folder, env }: SshMachine, bytes: number): NodeJS.ProcessEnv {
  const bin = join(folder, 'slow');
  writeFiles(bin, {
    tar: `#!/bin/sh\n{ /usr/bin/env -i PATH=/usr/bin:/bin tar "$@"; } | { head -c ${bytes}; while kill -0 "$PPID"; do sleep 0.2; done; } 2>/dev/null\n`,
  });
  chmodSync(join(bin, 'tar'), 0o755);
  return { ...env, PATH: `${bin}:${env.PATH}` };
}

describe('gatefold deploy reports a machine with', { skip: NO_SSH }, () => {
  const rows: [name: string, options: MachineOptions, reason: RegExp][] = [
    ['an unknown host key', { client: ['UserKnownHostsFile /dev/null'] }, /Run ssh vm1 once, and compare its key/],
    [
      'an SSH key that the machine refuses',
      { client: ['IdentityFile none', 'PubkeyAuthentication no'] },
      /ssh-copy-id vm1/,
    ],
    ['a closed SSH port', { client: ['Port 1'] }, /Cannot reach vm1: .*refused/],
    ['no node', { path: [] }, /has no node in the PATH of ssh: install Node 22\.18/],
  ];
  for (const [name, options, reason] of rows)
    it(name, async (test) => {
      const machine = await startSshMachine(test, {
        client: options.client === undefined ? [] : ['Host vm*', ...options.client],
        ...(options.path === undefined ? {} : { path: [folderWithShell(test)] }),
      });
      const project = makeProject(join(machine.folder, 'project'), valueFiles(0));
      const { code, out } = await deploy(machine, project, ['--setup', `vm1:${machine.folder}/srv`]);
      assert.equal(code, 1);
      assert.match(out, reason);
      assert.equal(out.trim().split('\n').length, 1, 'the failure has one line');
    });

  it('a Node that cannot load the TypeScript of the project, without tsx', {
    skip: Boolean(process.features.typescript),
  }, async (test) => {
    const shop = await startDeployed(test);
    const good = shop.current();
    writeFiles(shop.project, { 'controllers/TypedController.ts': 'export default class { index() { return {}; } }\n' });
    const { code, out } = await shop.deploy();
    assert.equal(code, 1);
    assert.match(out, /cannot load TypeScript: install Node 22\.18 or later on this machine, or tsx in the project/);
    assert.equal(shop.current(), good);
  });
});

/** A PATH without node. */
function folderWithShell(test: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-path-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync('/bin/sh', join(folder, 'sh'));
  return folder;
}

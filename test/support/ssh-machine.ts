// A machine to deploy to: a real sshd on loopback. Its host key, user key and configuration are in a temporary folder.
// The PATH has an `ssh` that runs the real ssh with this configuration.
import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDistCurrent } from '../../build.mjs';
import { attempt } from '../../src/base/failure.ts';
import { withTimeLimit } from '../../src/base/time.ts';
import { freePorts } from './ports.ts';
import { reap } from './reaper.ts';

const SSHD = '/usr/sbin/sshd';
/** Milliseconds after which a command or a wait has failed. */
export const PATIENCE = 180_000;
const ROOT = join(import.meta.dirname, '../..');

/** The `skip` option of a suite: false, or the reason why no such machine can run here. */
export const NO_SSH: string | false = !existsSync(SSHD)
  ? 'there is no sshd: apt-get install openssh-server'
  : spawnSync('ssh', ['-V']).status !== 0 && 'there is no ssh: apt-get install openssh-client';

export interface SshMachine {
  /** The machine's folder, removed after the test. */
  readonly folder: string;
  /**
   * The environment of a command that deploys. Its `ssh` resolves the hosts `vm1` and `vm2`, which are both this
   * machine.
   */
  readonly env: NodeJS.ProcessEnv;
  /** The path of the configuration of ssh. */
  readonly config: string;
  /** Adds a function that is called before the machine ends. */
  beforeEnd(work: () => Promise<void>): void;
}

export interface MachineOptions {
  /** Folders of the remote shell's PATH, before the folders of the system. */
  readonly path?: readonly string[];
  /** A user that only this machine has. Needs root and the right to mount. */
  readonly login?: { readonly name: string; readonly uid: number };
  /** The first lines of the configuration of ssh. */
  readonly client?: readonly string[];
}

export async function startSshMachine(
  test: Pick<TestContext, 'after'>,
  options: MachineOptions = {},
): Promise<SshMachine> {
  if (!isDistCurrent()) throw new Error('dist is older than src. Run: npm run build');
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-ssh-')));
  const at = (name: string) => join(folder, name);
  for (const key of ['host', 'user']) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  const [port = 0] = await freePorts(1);
  // When sshd runs as root, it needs this folder for its privilege separation.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const path = options.path ?? [dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'];
  writeFileSync(
    at('sshd_config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `AuthorizedKeysFile ${at('user.pub')}`,
      `PidFile ${at('sshd.pid')}`,
      'StrictModes no',
      'UsePAM no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      `SetEnv PATH=${path.join(':')}`,
      '',
    ].join('\n'),
  );
  writeFileSync(
    at('known_hosts'),
    execFileSync('ssh-keygen', ['-y', '-f', at('host')], { encoding: 'utf8' }).replace(/^/, 'vm '),
  );
  const config = at('ssh_config');
  writeFileSync(
    config,
    [
      ...(options.client ?? []),
      'Host vm*',
      '  HostName 127.0.0.1',
      `  Port ${port}`,
      `  User ${options.login?.name ?? userInfo().username}`,
      '  HostKeyAlias vm',
      `  UserKnownHostsFile ${at('known_hosts')}`,
      `  IdentityFile ${at('user')}`,
      '  IdentitiesOnly yes',
      '',
    ].join('\n'),
  );
  mkdirSync(at('bin'));
  const ssh = execFileSync('sh', ['-c', 'command -v ssh'], { encoding: 'utf8' }).trim();
  writeFileSync(at('bin/ssh'), `#!/bin/sh\nexec ${ssh} -F '${config}' "$@"\n`);
  chmodSync(at('bin/ssh'), 0o755);
  const words = ['-D', '-e', '-f', at('sshd_config')];
  const { login } = options;
  if (login !== undefined) {
    const line = `${login.name}:*:${login.uid}:${login.uid}::${folder}:/bin/sh\n`;
    writeFileSync(at('passwd'), readFileSync('/etc/passwd', 'utf8') + line);
    chmodSync(folder, 0o755);
    words.unshift('-m', 'sh', '-c', `mount --bind '${at('passwd')}' /etc/passwd && exec "$0" "$@"`, SSHD);
  }
  const sshd = spawn(login === undefined ? SSHD : 'unshare', words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  reap(sshd);
  sshd.stdout.resume();
  let log = '';
  sshd.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const exited = once(sshd, 'exit');
  const endings: (() => Promise<void>)[] = [];
  test.after(async () => {
    for (const end of endings) await end();
    if (sshd.exitCode === null) sshd.kill('SIGTERM');
    await withTimeLimit(exited, PATIENCE, () => new Error(`sshd does not end: ${log}`));
    rmSync(folder, { recursive: true, force: true });
  });
  while (!(await accepts(port))) {
    if (sshd.exitCode !== null) throw new Error(`sshd has ended: ${log}`);
    await sleep(20);
  }
  return {
    beforeEnd: (work) => endings.push(work),
    folder,
    config,
    env: { ...process.env, PATH: `${at('bin')}${delimiter}${process.env.PATH}` },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts `gatefold deploy` in a project, from an installed package. */
export function spawnDeploy(
  machine: SshMachine,
  cwd: string,
  words: readonly string[],
  { root = ROOT, ...options }: SpawnOptions & { readonly root?: string } = {},
) {
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...env } = { ...machine.env, ...options.env };
  const child = spawn(process.execPath, [join(root, 'dist/cli.js'), 'deploy', ...words], {
    ...options,
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  reap(child);
  let out = '';
  let err = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const overdue = () => {
    killGroup(child);
    return new Error(`the deployment has not ended within ${PATIENCE / 1000} s\n${out}${err}`);
  };
  const ended = withTimeLimit(once(child, 'close'), PATIENCE, overdue).then(([code]): Ran => ({ code, out, err }));
  return { child, ended, said: () => err };
}

/** Kills a process that leads its group, with the whole group, and no longer waits for what else holds its output. */
export function killGroup({ pid, stdout, stderr }: ChildProcess): void {
  attempt(() => process.kill(-Number(pid), 'SIGKILL'), false);
  stdout?.destroy();
  stderr?.destroy();
}

export function deploy(...args: Parameters<typeof spawnDeploy>): Promise<Ran> {
  return spawnDeploy(...args).ended;
}

// A PgBouncer in front of a PostgreSQL, on a free port of loopback. It ends with the test.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from './ports.ts';

const PROGRAM = ['pgbouncer', '/usr/sbin/pgbouncer'].find(
  (program) => spawnSync(program, ['--version']).error === undefined,
);

/** The `skip` option of a test: the reason why there is no PgBouncer. */
export const noPgBouncer: string | false = PROGRAM === undefined ? 'no PgBouncer is installed' : false;

/** @param url the address of a database @returns the address of the same database through the pooler */
export async function startPgBouncer(
  test: TestContext,
  url: string,
  mode: 'transaction' | 'session',
  poolSize: number,
): Promise<string> {
  const { port: target, pathname } = new URL(url);
  const [port] = await freePorts(1);
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-pgbouncer-'));
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${target} user=postgres`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1`,
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
  ];
  const path = join(folder, 'pgbouncer.ini');
  writeFileSync(path, `${lines.join('\n')}\n`);
  // PgBouncer refuses to run as root.
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres']));
  const account = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  if (account.uid !== undefined) for (const each of [folder, path]) chownSync(each, account.uid, account.gid);
  const child = spawn(PROGRAM as string, [path], { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const ended = once(child, 'exit');
  test.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  while (!(await answers(port as number))) {
    if (child.exitCode !== null) throw new Error(output);
    await sleep(20);
  }
  return `postgres://postgres@127.0.0.1:${port}${pathname}`;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

// Starts a PostgreSQL for a test, on a free port of loopback and in a temporary folder. It ends with the test's
// process.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Debian installs PostgreSQL, and then the folders of PATH. */
const DEBIAN = '/usr/lib/postgresql';
const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
const BIN = [...versions.map((version) => join(DEBIAN, version, 'bin')), ...(process.env.PATH ?? '').split(':')].find(
  (folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')),
);

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root. */
const account: Account | undefined = process.getuid?.() === 0 ? findAccount() : {};

/** The `skip` option of a suite: the reason why there is no PostgreSQL. */
export const noPostgres: string | false =
  BIN === undefined
    ? 'no PostgreSQL is installed'
    : account === undefined
      ? 'PostgreSQL refuses to run as root, and there is no user postgres'
      : false;

export interface Postgres {
  readonly url: string;
  /** Stops the server as `systemctl stop` does: connections end at once. */
  stop(): Promise<void>;
  /** Starts the server again, with the same data on the same port. */
  start(): Promise<void>;
  /** Stops the server and removes its data. */
  close(): Promise<void>;
}

/** @param settings lines of postgresql.conf, such as `max_connections=20` */
export async function startPostgres(...settings: string[]): Promise<Postgres> {
  if (BIN === undefined || account === undefined) throw new Error(String(noPostgres));
  const folder = mkdtempSync(join(tmpdir(), 'conduit-postgres-'));
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid ?? account.uid);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  execFileSync(join(BIN, 'initdb'), ['-D', folder, ...flags], { ...account, cwd: folder, stdio: 'pipe' });
  const port = await findFreePort();
  const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', ...settings];
  let stop = async () => {};

  async function start(): Promise<void> {
    const args = ['-D', folder, '-p', String(port), ...options.flatMap((option) => ['-c', option])];
    const server = spawn(join(BIN as string, 'postgres'), args, {
      ...account,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const kill = () => void server.kill('SIGQUIT');
    process.once('exit', kill);
    const ended = once(server, 'exit');
    stop = async () => {
      server.ref();
      server.kill('SIGINT');
      await ended;
      process.off('exit', kill);
    };
    let output = '';
    const ready = new Promise<void>((resolve) => {
      server.stderr.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes('ready to accept connections')) resolve();
      });
    });
    await Promise.race([ready, ended.then(() => Promise.reject(new Error(output)))]);
    // A test that failed before its end does not wait for the database.
    server.unref();
    (server.stderr as Socket).unref();
  }

  await start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start,
    stop: () => stop(),
    async close() {
      await stop();
      remove();
    },
  };
}

function findAccount(): Account | undefined {
  try {
    const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }));
    return { uid: idOf('-u'), gid: idOf('-g') };
  } catch {
    return undefined;
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

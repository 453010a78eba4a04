// Starts a PostgreSQL for a test, on a free port of loopback and in a temporary folder.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Debian installs PostgreSQL, and then the folders of PATH. */
const DEBIAN = '/usr/lib/postgresql';
const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
const folders = [...versions.map((version) => join(DEBIAN, version, 'bin')), ...(process.env.PATH ?? '').split(':')];
const BIN = folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));

/** The `skip` option of a test: the reason why there is no PostgreSQL. */
export const noPostgres: string | false = BIN === undefined && 'no PostgreSQL is installed';

export async function startPostgres() {
  if (BIN === undefined) throw new Error(String(noPostgres));
  const folder = mkdtempSync(join(tmpdir(), 'teamtasks-'));
  // PostgreSQL refuses to run as root.
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres']));
  const account = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : undefined;
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  execFileSync(join(BIN, 'initdb'), ['-D', folder, ...flags], { ...account, cwd: folder, stdio: 'pipe' });
  const port = await findFreePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const args = ['-D', folder, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const server = spawn(join(BIN, 'postgres'), args, {
    ...account,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  for await (const text of server.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false }))
    if (text.includes('ready to accept connections')) break;
  server.stderr.resume();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async close() {
      server.kill('SIGINT');
      await once(server, 'exit');
      rmSync(folder, { recursive: true });
    },
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

// PostgreSQL servers with streaming standbys, each with its own port and folder, and methods that break them.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePorts } from './ports.ts';

const DEBIAN = '/usr/lib/postgresql';
const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
const BIN = versions
  .map((version) => join(DEBIAN, version, 'bin'))
  .find((folder) => existsSync(join(folder, 'initdb')));

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

export interface Server {
  readonly port: number;
  readonly folder: string;
  start(): Promise<void>;
  /** Kills all processes of the server at once, as a power cut does. */
  kill(): Promise<void>;
  /** Suspends all processes of the server (SIGSTOP), or lets them run again. */
  freeze(): void;
  thaw(): void;
  promote(): Promise<void>;
  sql(text: string): Promise<string>;
}

export interface Cluster {
  readonly servers: readonly Server[];
  /** The address of a database for STORE. */
  url(servers?: readonly { readonly port: number }[]): string;
  /** Makes a server a new standby of another server, from a fresh copy. */
  follow(standby: Server, primary: Server): Promise<void>;
  close(): Promise<void>;
}

/** @param standbys how many standbys; the first server is the primary @param settings the settings of all servers */
export async function startCluster(standbys: number, ...settings: string[]): Promise<Cluster> {
  if (BIN === undefined) throw new Error('no PostgreSQL of Debian is installed');
  const bin = BIN;
  const account = findAccount();
  const root = mkdtempSync(join(tmpdir(), 'gatefold-cluster-'));
  if (account.uid !== undefined) chownSync(root, account.uid, account.gid ?? account.uid);
  const run = (program: string, ...words: string[]) =>
    promisify(execFile)(join(bin, program), words, { ...account, cwd: root });
  const ports = await freePorts(1 + standbys);
  const servers = ports.map((port, index) => createPostgres(port, join(root, `server${index}`)));
  const [primary] = servers as [Server];
  await run('initdb', '-D', primary.folder, '--username=postgres', '--auth=trust', '--locale=C', '--no-sync');
  await primary.start();
  for (const standby of servers.slice(1)) await follow(standby, primary);

  function createPostgres(port: number, folder: string): Server {
    let pid = 0;
    let ended: Promise<unknown> = Promise.resolve();
    let hold = () => {};
    const all = () => (pid === 0 ? [] : [pid, ...childrenOf(pid)]);
    const signal = (name: NodeJS.Signals) => {
      for (const each of all())
        try {
          process.kill(each, name);
        } catch {
          // The process has ended.
        }
    };
    const killAll = () => signal('SIGKILL');
    return {
      port,
      folder,
      async start() {
        process.once('exit', killAll);
        // A killed server loses nothing that it has written: only a crash of the whole machine would.
        const fast = ['fsync=off', 'full_page_writes=off'];
        const options = [
          ...fast,
          // A killed server leaves its shared memory: here in its own folder, and by default in /dev/shm.
          'dynamic_shared_memory_type=mmap',
          'listen_addresses=127.0.0.1',
          'unix_socket_directories=',
          'wal_keep_size=256MB',
          ...settings,
        ];
        const words = ['-D', folder, '-p', String(port), ...options.flatMap((option) => ['-c', option])];
        // The shared memory of a killed server is free only when its last process has ended.
        for (let attempt = 0; ; attempt++) {
          const child = spawn(join(bin, 'postgres'), words, {
            ...account,
            cwd: root,
            stdio: ['ignore', 'ignore', 'pipe'],
          });
          pid = child.pid ?? 0;
          ended = once(child, 'exit');
          hold = () => child.ref();
          let output = '';
          const isReady = await new Promise<boolean>((resolve) => {
            child.stderr.setEncoding('utf8').on('data', (text: string) => {
              output += text;
              if (/ready to accept (?:read-only )?connections/.test(output)) resolve(true);
            });
            child.once('exit', () => resolve(false));
          });
          child.unref();
          (child.stderr as Socket).unref();
          if (isReady) return;
          if (attempt === 240) throw new Error(output);
          await sleep(250);
        }
      },
      async kill() {
        killAll();
        hold();
        await ended;
        process.off('exit', killAll);
        pid = 0;
      },
      freeze: () => signal('SIGSTOP'),
      thaw: () => signal('SIGCONT'),
      async promote() {
        await run('pg_ctl', 'promote', '-D', folder, '-w');
      },
      async sql(text) {
        const words = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-tAc', text];
        return (await promisify(execFile)('psql', words)).stdout.trim();
      },
    };
  }

  async function follow(standby: Server, of: Server): Promise<void> {
    rmSync(standby.folder, { recursive: true, force: true });
    const from = `host=127.0.0.1 port=${of.port} user=postgres application_name=s${standby.port}`;
    await run('pg_basebackup', '-D', standby.folder, '-R', '-X', 'stream', '--no-sync', '-c', 'fast', '-d', from);
    await standby.start();
  }

  return {
    servers,
    url: (list = servers) => `postgres://postgres@${list.map(({ port }) => `127.0.0.1:${port}`).join(',')}/postgres`,
    follow,
    async close() {
      for (const server of servers) await server.kill();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}

function findAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

export interface Proxy {
  readonly port: number;
  /** Drops every byte but keeps the connections, as a firewall does. */
  cut(): void;
  /** Ends the cut connections, and forwards new ones. */
  heal(): void;
  close(): void;
}

/** Starts a TCP proxy in front of a port. @param keep returns the bytes of the server that pass. Default: all bytes */
export async function startProxy(to: number, keep: (bytes: Buffer) => Buffer = (bytes) => bytes): Promise<Proxy> {
  let isCut = false;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(to, '127.0.0.1');
    const wasCut = isCut;
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        // The end of one side of a cut connection is not reported to the other side.
        if (!isCut && !wasCut) (socket === client ? target : client).destroy();
      });
    }
    client.on('data', (bytes) => isCut || wasCut || target.write(bytes));
    target.on('data', (bytes: Buffer) => isCut || wasCut || client.write(keep(bytes)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      isCut = true;
    },
    heal() {
      isCut = false;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Removes the messages NotificationResponse (`A`). In these tests the server sends each in a packet of its own. */
export function withoutNotifications(bytes: Buffer): Buffer {
  const kept: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = at + 5 <= bytes.length ? bytes.readUInt32BE(at + 1) + 1 : bytes.length - at;
    if (bytes[at] !== 0x41) kept.push(bytes.subarray(at, at + length));
    at += length;
  }
  return Buffer.concat(kept);
}

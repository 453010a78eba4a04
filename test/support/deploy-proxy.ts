// Runs the shipped proxy configurations: a real haproxy or nginx in front of three machines. The machines are plain
// sockets that record the requests that reach them.
import { spawn, spawnSync } from 'node:child_process';
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
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { type Answer, openConnection } from './cluster-client.ts';
import { freePorts } from './ports.ts';

export const DEPLOY = resolve(import.meta.dirname, '../../deploy');

export const read = (name: string) => readFileSync(join(DEPLOY, name), 'utf8');

/** Returns the path of a program, or undefined. Debian installs servers in folders outside a user's PATH. */
export function find(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, program)).find(existsSync);
}

/** The `skip` option of a suite: false, or the name of the missing program. */
export const without = (program: string) =>
  find(program) === undefined ? `there is no ${program} on this machine` : false;

export function run(program: string, args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(find(program) ?? program, args, { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

export function createFolder(test: Pick<TestContext, 'after'>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-deploy-')));
  chmodSync(folder, 0o755);
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface RunningProxy {
  ask(line: string, headers: readonly string[]): Promise<Answer>;
  /** The head of each request that reached a machine, without health checks. */
  readonly seen: readonly string[];
}

export type Behaviour = (request: { readonly count: number }) => 'answer' | 'refuse' | 'hang up';

/** Starts the proxy with the shipped configuration, in front of three machines that record their requests. */
export async function startProxy(
  t: TestContext,
  proxy: 'haproxy' | 'nginx',
  behave: Behaviour = () => 'answer',
): Promise<RunningProxy> {
  const seen: string[] = [];
  const machines = await Promise.all([1, 2, 3].map(() => startMachine(t, seen, behave)));
  const [port = 0, ...peers] = await freePorts(3);
  const folder = createFolder(t);
  const config = read(proxy === 'haproxy' ? 'haproxy.cfg' : 'nginx.conf')
    .replace(/10\.0\.0\.1([123]):3000/g, (_, n: string) => `127.0.0.1:${machines[Number(n) - 1]}`)
    .replace(/10\.0\.0\.[13]:10000/g, (peer) => `127.0.0.1:${peer.startsWith('10.0.0.1') ? peers[0] : peers[1]}`)
    .replace('check port 3001', 'check')
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace('listen 80 ', `listen 127.0.0.1:${port} `)
    .replaceAll('/run/haproxy/', `${folder}/`)
    .replace('/dev/log local0', 'stdout format raw local0')
    // With this setting haproxy fails when its port is taken. By default it shares the port with another haproxy.
    .replace(/^global$/m, 'global\n    noreuseport')
    .replace(process.getuid?.() === 0 ? /^$/ : /^ *(user|group|chroot) .*$/gm, '');
  const path = join(folder, 'haproxy.cfg');
  if (proxy === 'haproxy') writeFileSync(path, config);
  const args =
    proxy === 'haproxy'
      ? ['-db', '-f', path]
      : [...nginxArguments(folder, config), '-g', 'daemon off; master_process off;'];
  const child = spawn(find(proxy) ?? proxy, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  t.after(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const ask = async (line: string, headers: readonly string[]): Promise<Answer> => {
    const connection = openConnection(port);
    const outcome = await connection.ask(
      `${[line, 'Host: api.example.com', ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n`,
    );
    connection.close();
    if ('kind' in outcome) throw new Error(`${outcome.kind}: ${outcome.detail}; ${output}`);
    return outcome;
  };
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Cannot start ${proxy}: ${output}`);
    const isUp = await isListening(port);
    if (isUp) return { ask, seen };
  }
}

/** Starts an HTTP server on plain sockets, so that a test sees each received byte. */
async function startMachine(t: TestContext, seen: string[], behave: Behaviour): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.setEncoding('latin1').on('data', (data) => {
      const head = String(data).split('\r\n\r\n')[0] ?? '';
      if (head.startsWith('GET /readyz ')) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      seen.push(head);
      const behaviour = behave({ count: seen.length });
      if (behaviour === 'hang up') return void socket.end();
      const body = head.startsWith('HEAD') ? '' : '{}';
      const status = behaviour === 'answer' ? '200 OK' : '503 Service Unavailable';
      socket.write(
        `HTTP/1.1 ${status}\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function isListening(port: number): Promise<boolean> {
  const { socket } = openConnection(port);
  const connected = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'close').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return connected;
}

/** Adapts the configuration of nginx: its files are in a temporary folder, and no port needs root. */
export function nginxArguments(folder: string, config: string): string[] {
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(' ');
  mkdirSync(join(folder, 'logs'));
  const text = config
    .replace('/run/nginx.pid', `${folder}/nginx.pid`)
    .replaceAll('/var/log/nginx/', `${folder}/logs/`)
    .replace(/^http \{$/m, `http { ${own}`)
    .replace('listen 80 ', `listen unix:${folder}/nginx.sock `)
    .replace(process.getuid?.() === 0 ? /^$/ : /^user .*$/m, '');
  writeFileSync(join(folder, 'nginx.conf'), text);
  return ['-c', join(folder, 'nginx.conf'), '-p', `${folder}/`, '-e', join(folder, 'logs', 'error.log')];
}

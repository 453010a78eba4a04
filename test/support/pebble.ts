// Pebble, the ACME test server of Let's Encrypt (Debian: `apt-get install pebble`). In its DNS server every name has
// the address 127.0.0.1. Pebble keeps nothing between two starts. Tests that need it are skipped where it is absent.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, request } from 'node:http';
import { get as getSecurely } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKeyPair, createSelfSigned } from '../../src/operate/https/acme/certificate-writer.ts';
import { freePorts } from './ports.ts';

/** The `skip` option of a suite: false, or the reason. */
export const withoutPebble =
  spawnSync('pebble-challtestsrv', ['-h']).error === undefined && spawnSync('pebble', ['-h']).error === undefined
    ? false
    : 'pebble is not installed (apt-get install pebble)';

export interface Pebble {
  readonly directory: string;
  /** The certificate of Pebble's own HTTPS port (PEM), also in the file `caFile`. */
  readonly ca: string;
  readonly caFile: string;
  /** The ports on which Pebble checks the challenges. */
  readonly httpPort: number;
  readonly tlsPort: number;
  /** The root of the certificates that Pebble issues (PEM). */
  root(): Promise<string>;
  /** Makes the DNS server fail for a name (SERVFAIL), or answer again. */
  setServfail(domain: string, broken: boolean): Promise<void>;
  stop(): Promise<void>;
  /** Starts Pebble again at the same addresses, without its state. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startPebble(env: Readonly<Record<string, string>> = {}): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-pebble-'));
  const [port, management, dns, dnsManagement, httpPort, tlsPort] = (await freePorts(6)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const own = createSelfSigned({ domains: ['localhost'], keys: createKeyPair(), now: Date.now(), days: 7 });
  const caFile = join(folder, 'cert.pem');
  writeFileSync(caFile, own.cert);
  writeFileSync(join(folder, 'key.pem'), own.key, { mode: 0o600 });
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: caFile,
      privateKey: join(folder, 'key.pem'),
      httpPort,
      tlsPort,
      ocspResponderURL: '',
      externalAccountBindingRequired: false,
    },
  };
  const configFile = join(folder, 'config.json');
  writeFileSync(configFile, JSON.stringify(config));
  const names = spawn(
    'pebble-challtestsrv',
    [
      '-dns01',
      `127.0.0.1:${dns}`,
      '-http01',
      '',
      '-https01',
      '',
      '-tlsalpn01',
      '',
      '-management',
      `127.0.0.1:${dnsManagement}`,
    ].concat(['-defaultIPv4', '127.0.0.1', '-defaultIPv6', '']),
    { stdio: 'ignore' },
  );
  await answers(() => read(get, `http://127.0.0.1:${dnsManagement}/`, {}));
  let server: ChildProcess;

  async function start(): Promise<void> {
    server = spawn('pebble', ['-config', configFile, '-dnsserver', `127.0.0.1:${dns}`], {
      stdio: 'ignore',
      env: { PATH: process.env.PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0', ...env },
    });
    await answers(() => read(getSecurely, `https://localhost:${port}/dir`, { ca: own.cert }));
  }

  await start();
  return {
    directory: `https://localhost:${port}/dir`,
    ca: own.cert,
    caFile,
    httpPort,
    tlsPort,
    root: () => read(getSecurely, `https://localhost:${management}/roots/0`, { ca: own.cert }),
    async setServfail(domain, broken) {
      const change = request(`http://127.0.0.1:${dnsManagement}/${broken ? 'set' : 'clear'}-servfail`, {
        method: 'POST',
        agent: false,
      });
      change.end(JSON.stringify({ host: `${domain}.` }));
      const [response] = await once(change, 'response');
      response.resume();
      await once(response, 'end');
    },
    stop: () => end(server),
    restart: start,
    async close() {
      await Promise.all([end(server), end(names)]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function answers(ask: () => Promise<unknown>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await ask();
      return;
    } catch (error) {
      if (attempt > 2000) throw error;
      await sleep(50);
    }
  }
}

async function read(ask: typeof get | typeof getSecurely, url: string, options: { ca?: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = (ask as typeof getSecurely)(url, { ...options, agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      resolve(text);
    });
    asked.on('error', reject);
  });
}

// Machines that share a store. Each is the built service with its own data folder. Also runs the built command.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Service, startService } from './cluster-server.ts';
import { createFolder } from './folder.ts';
import { freePorts } from './ports.ts';

const COMMAND = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const CONTROLLERS = {
  'OrderController.mjs': `
    export default class {
      static operations = { index: { access: 'application' } };
      index() { return { pid: process.pid }; }
      endless() { return new ReadableStream({ start(stream) { stream.enqueue(new Uint8Array(100)); } }); }
    }`,
};

export interface Machine extends Service {
  /** The data folder. */
  readonly data: string;
  readonly env: Readonly<Record<string, string>>;
  /** Sends a request with the token on a new connection, and returns its status. */
  ask(token: string): Promise<number>;
  /** Returns the body of /readyz, with the status as `http`. */
  ready(): Promise<Readiness>;
  metric(name: string): Promise<number>;
}

export interface Readiness {
  readonly http: number;
  readonly status: string;
  readonly store: { readonly state: string; readonly age_seconds: number; readonly machines: number };
}

export async function startMachine(
  test: TestContext,
  url: string,
  { dir = createFolder(test, CONTROLLERS), env: given = {} }: { dir?: string; env?: Record<string, string> } = {},
): Promise<Machine> {
  const [opsPort] = await freePorts(1);
  const data = join(dir, '../data');
  const env = { STORE: url, OPS_PORT: String(opsPort), DATA_DIR: data, CONTROLLERS_DIR: dir, ...given };
  const service = await startService(test, { dir, env });
  const operations = (path: string) => fetch(`http://127.0.0.1:${opsPort}${path}`);
  return {
    ...service,
    data,
    env,
    async ask(token) {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      const response = await fetch(`http://127.0.0.1:${service.port}/api/order`, { headers });
      await response.arrayBuffer();
      return response.status;
    },
    async ready() {
      const response = await operations('/readyz');
      return { http: response.status, ...((await response.json()) as Omit<Readiness, 'http'>) };
    },
    async metric(name) {
      const text = await (await operations('/metrics')).text();
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    },
  };
}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export function run(env: Readonly<Record<string, string>>, ...words: string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(process.execPath, [COMMAND, ...words], { env: { ...process.env, ...env } }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

export async function issue(
  env: Readonly<Record<string, string>>,
  name = 'test',
): Promise<{ id: string; token: string }> {
  const { code, out, err } = await run(env, 'credentials', 'issue', '--name', name, '--groups', '*', '--json');
  if (code !== 0) throw new Error(err);
  return JSON.parse(out) as { id: string; token: string };
}

/** Waits for a condition. @throws Error when it stays false for a long time */
export async function until(what: string, isSo: () => Promise<boolean> | boolean, patience = 60_000): Promise<void> {
  for (const end = performance.now() + patience; !(await isSo()); await sleep(20))
    if (performance.now() > end) throw new Error(`this has not come: ${what}`);
}

/** Returns the machine's process that is connected to the store, or undefined. */
export function findStoreHost({ process: { pid } }: Machine): number | undefined {
  const isHost = (each: string) => {
    try {
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/status`, 'utf8'))?.[1];
      return Number(parent) === pid && readFileSync(`/proc/${each}/cmdline`, 'utf8').includes('store-host');
    } catch {
      return false;
    }
  };
  const found = readdirSync('/proc').find((each) => /^\d+$/.test(each) && isHost(each));
  return found === undefined ? undefined : Number(found);
}

// Starts the built service as a real process in a folder of its own, and listens to what it says. It knows nothing of
// what a test wants to prove; whatever it started is gone when the test is over.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isDistCurrent } from '../../build.mjs';
import { createFolder } from './folder.ts';
import { reap } from './reaper.ts';

export { controller, createFolder, write } from './folder.ts';

export const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url));
if (!isDistCurrent()) throw new Error('dist is older than src, so this would test yesterday. Run: npm run build');

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface Service {
  readonly port: number;
  readonly process: ChildProcess;
  /** The folder of controllers. */
  readonly dir: string;
  /** All log lines so far. */
  readonly lines: LogLine[];
  /** The first line of this event, past or to come, that satisfies the test. */
  logged(event: string, test?: (line: LogLine) => boolean): Promise<LogLine>;
  /** All of standard output and of standard error. */
  output(): string;
  errors(): string;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  /**
   * Milliseconds after which what is waited for will not come: in units of what this machine has just shown it can do.
   */
  patience(): number;
}

export interface ServiceOptions {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings on the command line. */
  readonly flags?: readonly string[];
  /** The Node that runs it; default: the one that runs the test. */
  readonly node?: string;
  /** Used as it is; else a new one with `files` in it. */
  readonly dir?: string;
  /** The file that its log goes to; default: to this process, which reads it. */
  readonly logFile?: string;
}

/** Of the time that the service took to start: nothing that a test waits for takes as long on the same machine. */
const STARTS = 60;
/** Milliseconds at least, since some of what is waited for takes its time on any machine. */
const LEAST_PATIENCE = 30_000;

export async function startService(test: TestContext, options: ServiceOptions = {}): Promise<Service> {
  const service = spawnService(test, options);
  const port = await Promise.race([
    service.listening,
    service.exited.then(({ code }) => Promise.reject(new Error(`exit ${code}: ${service.errors()}`))),
  ]);
  return { ...service, port };
}

export interface SpawnedService extends Omit<Service, 'port'> {
  /** The last process that could write to its output has ended. */
  readonly closed: Promise<void>;
  readonly listening: Promise<number>;
}

export function spawnService(
  test: TestContext,
  { files, env = {}, flags = [], node = process.execPath, dir = createFolder(test, files), logFile }: ServiceOptions,
): SpawnedService {
  const data = join(dirname(dir), 'data');
  mkdirSync(data, { recursive: true });
  const command =
    logFile === undefined ? [node, SERVER, ...flags] : ['sh', '-c', `exec "$0" "$1" 2>"$2"`, node, SERVER, logFile];
  const child = spawn(command[0] as string, command.slice(1), {
    env: {
      ...process.env,
      PORT: '0',
      HOST: '127.0.0.1',
      WORKERS: '2',
      LOG_LEVEL: 'info',
      CONTROLLERS_DIR: dir,
      DATA_DIR: data,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  reap(child);
  const begun = performance.now();
  let startTook: number | undefined;
  const patience = () => Math.max(LEAST_PATIENCE, STARTS * (startTook ?? performance.now() - begun));
  const lines: LogLine[] = [];
  const waiting = new Set<() => void>();
  let output = '';
  let errors = '';
  let rest = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part) as LogLine);
    for (const wake of waiting) wake();
  });
  const exited = once(child, 'exit').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  const closed = once(child, 'close').then(() => {});
  const listening = new Promise<number>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const match = /^gatefold listening on https?:\/\/\S+:(\d+)$/m.exec(output);
      if (match === null) return;
      startTook ??= performance.now() - begun;
      resolve(Number(match[1]));
    });
  });
  test.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const forced = [setTimeout(() => child.kill('SIGINT'), 4000), setTimeout(() => child.kill('SIGKILL'), 8000)];
    await exited;
    for (const timer of forced) clearTimeout(timer);
  });
  return {
    process: child,
    dir,
    lines,
    exited,
    closed,
    patience,
    listening,
    output: () => output,
    errors: () => errors,
    logged(event, isMeant = () => true) {
      return new Promise((resolve, reject) => {
        const told = lines.length;
        const hopeless = setTimeout(
          () => reject(new Error(`no ${event}: ${JSON.stringify(lines.slice(Math.max(0, told - 5)))}`)),
          patience(),
        );
        const look = () => {
          const line = lines.find((candidate) => candidate.event === event && isMeant(candidate));
          if (line === undefined) return;
          clearTimeout(hopeless);
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        look();
      });
    },
  };
}

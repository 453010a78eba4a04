// Starts the built service as a real process in a new folder, and reads its log. After the test, all processes that it
// started are ended.
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
  /** Resolves with the first log line of this event that `test` accepts. The line may be logged already. */
  logged(event: string, test?: (line: LogLine) => boolean): Promise<LogLine>;
  /** The whole standard output and standard error. */
  output(): string;
  errors(): string;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  /** Milliseconds after which a test gives up waiting. Proportional to the time that the service took to start. */
  patience(): number;
}

export interface ServiceOptions {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings on the command line. */
  readonly flags?: readonly string[];
  /** The program of the supervisor. Default: that of this checkout. */
  readonly server?: string;
  /** The Node binary that runs the service. Default: the one that runs the test. */
  readonly node?: string;
  /** An existing folder. Default: a new folder with `files`. */
  readonly dir?: string;
  /** Variables that the service does not get. */
  readonly without?: readonly string[];
  /** Default: that of the test. */
  readonly cwd?: string;
  /** The file for the log. Default: this process reads the log. */
  readonly logFile?: string;
}

/** How many times the start of the service a test waits. Nothing that a test waits for takes this long. */
const STARTS = 60;
/** The minimum in milliseconds, because some waits take the same time on any machine. */
const LEAST_PATIENCE = 60_000;

export async function startService(test: TestContext, options: ServiceOptions = {}): Promise<Service> {
  const service = spawnService(test, options);
  const port = await Promise.race([
    service.listening,
    service.exited.then(({ code }) => Promise.reject(new Error(`exit ${code}: ${service.errors()}`))),
  ]);
  return { ...service, port };
}

export interface SpawnedService extends Omit<Service, 'port'> {
  /** Resolves when the last process that could write to the service's output has ended. */
  readonly closed: Promise<void>;
  readonly listening: Promise<number>;
}

export function spawnService(
  test: TestContext,
  {
    files,
    env = {},
    flags = [],
    node = process.execPath,
    server = SERVER,
    dir = createFolder(test, files),
    logFile,
    cwd,
    without = [],
  }: ServiceOptions,
): SpawnedService {
  const data = join(dirname(dir), 'data');
  if (!without.includes('DATA_DIR')) mkdirSync(data, { recursive: true });
  const command =
    logFile === undefined ? [node, server, ...flags] : ['sh', '-c', `exec "$0" "$1" 2>"$2"`, node, server, logFile];
  const defaults = {
    PORT: '0',
    HOST: '127.0.0.1',
    WORKERS: '2',
    LOG_LEVEL: 'info',
    CONTROLLERS_DIR: dir,
    DATA_DIR: data,
  };
  const variables: NodeJS.ProcessEnv = { ...process.env, ...defaults, ...env };
  for (const name of without) delete variables[name];
  const child = spawn(command[0] as string, command.slice(1), {
    env: variables,
    ...(cwd === undefined ? {} : { cwd }),
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

// Reads the settings of the service on the target machine, and from its record `generation.json` which release it
// serves.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs';
import { uptime } from 'node:os';
import { join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withEnvFiles } from '../../../base/env-files.ts';
import { attempt, describeFailure, errorCode } from '../../../base/failure.ts';
import { isSurelyAlive } from '../../../base/folder-lock.ts';
import { isAlive } from '../../../base/system.ts';
import type { GenerationRecord, LoadFailure } from '../../../live/supervisor/generation-file.ts';
import { releasePath } from './folders.ts';

const LOAD_WAIT_MS = 120_000;
const POLL_INTERVAL_MS = 50;

/**
 * Lines of sh for after the file `env`. A shell takes the end of `NAME=a b` and `NAME=a&b` for another command, and
 * does not set NAME. A service without its STORE or RATE_LIMIT must not start.
 */
export const CHECK_ENV = `[ ! -f ./env ] || (
  for name in $(sed -n 's/^\\(export *\\)*\\([A-Z][A-Z0-9_]\\{3,\\}\\)=[^=].*/\\2/p' ./env); do
    eval "[ \\\${$name+x} ]" || { echo "./env does not set $name: quote its value: $name='...'" >&2; exit 1; }
  done
) || exit 1
`;

/** Reads the file `env` by a shell, as `run` does. @throws Error with a message of one line */
export function readEnvironment(dir: string): NodeJS.ProcessEnv {
  // Commands in `env` may print. Their output must not come before the JSON. NODE_OPTIONS are those of the service, and
  // can load a file of a release that is not there yet.
  const print = 'JSON.stringify({ ...process.env, NODE_OPTIONS: process.argv[1] || undefined })';
  const script = `set -a; [ ! -f ./env ] || . ./env >/dev/null
${CHECK_ENV}set -- "\${NODE_OPTIONS-}"; NODE_OPTIONS=; exec "$0" -p '${print}' -- "$1"`;
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script, process.execPath], { cwd: dir, encoding: 'utf8' });
  if (status === 0) {
    const env = JSON.parse(stdout);
    return withEnvFiles(env, env.ENV_FILE || 'off', dir);
  }
  const unset = /^\.(\/env does not set [A-Z0-9_]+: quote its value: .*)$/m.exec(stderr)?.[1];
  if (unset !== undefined) throw new Error(`${dir}${unset}`);
  try {
    accessSync(join(dir, 'env'), constants.R_OK);
  } catch (error) {
    throw new Error(`Cannot read ${join(dir, 'env')}: ${describeFailure(error)}${adviceFor(error)}`);
  }
  // The shell's own message may quote a secret setting, so the error has only the number of the line.
  const line = /(?:: |line )(\d+): /.exec(stderr)?.[1];
  const place = line === undefined ? 'it' : `line ${line}`;
  throw new Error(`Cannot read ${join(dir, 'env')}: ${place} is not what a shell reads`);
}

/** @returns undefined when no service has written a record since the machine started. @throws Error of one line */
export function readRecord(dataDir: string): GenerationRecord | undefined {
  const path = join(dataDir, 'generation.json');
  try {
    const { mtimeMs } = statSync(path);
    const read = (): GenerationRecord => JSON.parse(readFileSync(path, 'utf8'));
    if (mtimeMs >= Date.now() - uptime() * 1000) return read();
    // Since the start of the machine, another process may have the process id. Or the clock was set forward.
    const record = attempt(read, undefined);
    return isSurelyAlive(record?.process) ? record : undefined;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${path}: ${describeFailure(error)}${adviceFor(error)}`);
  }
}

function adviceFor(error: unknown): string {
  return errorCode(error) === 'EACCES' ? '. Deploy as the user of the service, or as root' : '';
}

/** Returns the group of the data folder, for files that the service reads; undefined when this user owns the folder. */
export function serviceGroup(dir: string, dataDir: string): number | undefined {
  const [stat] = [dataDir, join(dir, 'data')].flatMap((path) => statSync(path, { throwIfNoEntry: false }) ?? []);
  return stat === undefined || stat.uid === process.geteuid?.() ? undefined : stat.gid;
}

export function isRunning(record: GenerationRecord | undefined): record is GenerationRecord {
  return record !== undefined && record.state !== 'stopped' && isAlive(record.pid);
}

/** Returns whether a path exists and leads into a release. @param release the name; by default, any release counts */
export function isInRelease(path: string | undefined, dir: string, release = ''): boolean {
  if (path === undefined) return false;
  const folder = () => realpathSync(releasePath(dir, release));
  return attempt(() => `${realpathSync(path)}${sep}`.startsWith(`${folder()}${sep}`), false);
}

export interface WaitOptions {
  readonly dir: string;
  readonly dataDir: string;
  readonly release: string;
  /** A service process that another one replaces. Its record is ignored. */
  readonly replacedPid?: number | undefined;
  readonly maxWait?: number;
}

/** Waits until the service has tried to load a release. Returns why it fails: each file that does not load. */
export async function waitForRelease(options: WaitOptions): Promise<string[]> {
  const { dir, dataDir, release, replacedPid, maxWait = LOAD_WAIT_MS } = options;
  const deadline = performance.now() + maxWait;
  // The record is read at least once, however late this process runs.
  for (;;) {
    const record = readRecord(dataDir);
    // A service that could not start leaves a rejected record. Any other record of an ended process is that of a crash.
    const isValid = record?.pid !== replacedPid && (record?.state === 'rejected' || isRunning(record));
    if (isValid && isInRelease(record.release, dir, release)) {
      const errors = record.errors.map((error) => describeLoadFailure(error, dir, release));
      return record.state === 'rejected' && errors.length === 0 ? ['the service has refused it'] : errors;
    }
    if (performance.now() >= deadline) return [`the service has not answered for ${maxWait / 1000} s: look at its log`];
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Returns one line, in which paths into the release are relative to the release: `controllers/X.ts:3: …`. */
function describeLoadFailure({ file, at = file, error = '' }: LoadFailure, dir: string, release: string): string {
  const path = releasePath(dir, release);
  const line = at === undefined ? error : `${at}: ${error}`;
  return line.replaceAll(`${realpathSync(path)}${sep}`, '').replaceAll(`${path}${sep}`, '');
}

/**
 * Runs `DIR/restart`. Its exit counts, and not the end of its output, which the service that it starts may keep open.
 *
 * @throws Error with a message of one line. A program that is still running then may be the service, so it is not ended
 */
export async function restart(dir: string, maxWait = LOAD_WAIT_MS): Promise<void> {
  const program = join(dir, 'restart');
  const child = spawn(program, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const reason = await new Promise<string>((resolve, reject) => {
    child.once('error', ({ message }) => resolve(message));
    child.once('exit', (code, signal) => resolve(code === 0 ? '' : `it ended with ${code ?? signal}`));
    const late = `${program} has not ended for ${maxWait / 1000} s: have it start the service in the background`;
    setTimeout(() => reject(new Error(late)), maxWait).unref();
  });
  if (reason === '') return;
  // The last lines may still be in the pipe.
  await sleep(POLL_INTERVAL_MS);
  throw new Error(`${program}: ${inOneLine(output) || reason}`);
}

/** @throws Error with a message of one line */
export function runProgram(program: string, args: readonly string[], cwd?: string): void {
  const { status, signal, error, stderr, stdout } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error === undefined && status === 0) return;
  const output = inOneLine(`${stdout ?? ''}${stderr ?? ''}`);
  const reason = error?.message ?? (output || `it ended with ${status ?? signal}`);
  throw new Error(`${[program, ...args].join(' ')}: ${reason}`);
}

function inOneLine(text: string): string {
  return text.trim().replaceAll('\n', ' | ');
}

// Controls the service on the target machine: reads its settings, starts it again, and finds out which release it
// serves. The service writes into its file `generation.json` which controllers folder it has loaded, and any errors.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { uptime } from 'node:os';
import { join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeFailure, errorCode } from '../../base/failure.ts';
import type { GenerationRecord, LoadFailure } from '../../supervisor/generation-file.ts';
import { releasePath } from './folders.ts';

/** Milliseconds after which a release that the service has not tried to load counts as failed. */
const MAX_WAIT = 120_000;
/** Milliseconds between two reads of `generation.json`. */
const POLL_INTERVAL = 50;

/** Reads the environment of the service as its script `run` does. @throws Error with a message of one line */
export function readEnvironment(dir: string): NodeJS.ProcessEnv {
  const script = 'set -a; [ ! -f ./env ] || . ./env; exec "$0" -p "JSON.stringify(process.env)"';
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script, process.execPath], { cwd: dir, encoding: 'utf8' });
  if (status === 0) return JSON.parse(stdout);
  // The shell's own message may quote a secret setting, so the error has only the number of the line.
  const line = /(?:: |line )(\d+): /.exec(stderr)?.[1];
  const place = line === undefined ? 'it' : `line ${line}`;
  throw new Error(`Cannot read ${join(dir, 'env')}: ${place} is not what a shell reads`);
}

/** Reads `generation.json`. @returns undefined when no service has written the file since the machine started */
export function readRecord(dataDir: string): GenerationRecord | undefined {
  const path = join(dataDir, 'generation.json');
  try {
    // Since the last start of the machine, another process may have got the process id in an older file.
    if (statSync(path).mtimeMs < Date.now() - uptime() * 1000) return undefined;
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${path}: ${describeFailure(error)}. Deploy as the user of the service, or as root`);
  }
}

export function isRunning(record: GenerationRecord | undefined): record is GenerationRecord {
  if (record === undefined || record.state === 'stopped') return false;
  try {
    return process.kill(record.pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** Returns whether a path leads into a release. @param release any release if it is empty */
export function isInRelease(path: string | undefined, dir: string, release = ''): boolean {
  try {
    const folder = realpathSync(releasePath(dir, release));
    return path !== undefined && `${realpathSync(path)}${sep}`.startsWith(`${folder}${sep}`);
  } catch {
    return false;
  }
}

export interface WaitOptions {
  readonly dir: string;
  readonly dataDir: string;
  readonly release: string;
  /** The id of a service process that is being replaced. The record of that process is ignored. */
  readonly replacedPid?: number | undefined;
  readonly longestWait?: number;
}

/** Waits until the service has tried to load a release. Returns the reasons why it does not serve: none if it does. */
export async function waitForRelease(options: WaitOptions): Promise<string[]> {
  const { dir, dataDir, release, replacedPid, longestWait = MAX_WAIT } = options;
  const deadline = performance.now() + longestWait;
  while (performance.now() < deadline) {
    const record = readRecord(dataDir);
    const isCurrent = record !== undefined && record.state !== 'stopped' && record.pid !== replacedPid;
    if (isCurrent && isInRelease(record.release, dir, release)) {
      const errors = record.errors.map((error) => describeLoadFailure(error, dir, release));
      return record.state === 'rejected' && errors.length === 0 ? ['the service has refused it'] : errors;
    }
    await sleep(POLL_INTERVAL);
  }
  return [`the service has not answered for ${longestWait / 1000} s: look at its log`];
}

/** Returns a load failure as one line. Paths in the line are relative to the project. */
function describeLoadFailure({ file, at = file, error = '' }: LoadFailure, dir: string, release: string): string {
  const path = releasePath(dir, release);
  const line = at === undefined ? error : `${at}: ${error}`;
  const realPath = existsSync(path) ? realpathSync(path) : path;
  return line.replaceAll(`${realPath}${sep}`, '').replaceAll(`${path}${sep}`, '');
}

/** Returns whether `gatefold deploy --setup` has made the script `restart`. */
export function canRestart(dir: string): boolean {
  return existsSync(join(dir, 'restart'));
}

/** Runs a program to its end. @throws Error with a message of one line */
export function runProgram(program: string, words: readonly string[], cwd?: string): void {
  const { status, error, stderr, stdout } = spawnSync(program, words, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  if (error === undefined && status === 0) return;
  const output = `${stdout ?? ''}${stderr ?? ''}`.trim().replaceAll('\n', ' | ');
  throw new Error(`${[program, ...words].join(' ')}: ${error?.message ?? (output || `it ended with ${status}`)}`);
}

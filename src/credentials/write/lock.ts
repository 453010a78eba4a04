// A lock between processes that is released when its holder dies. The lock is a folder with one file in it, named after
// the holder. To take it, a prepared folder is renamed to its place, which succeeds only where there is none or an
// empty one. To break a dead holder's, exactly its file is removed, so two processes that break it at once cannot break
// a third one's.

import { readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { errorCode } from '../../base/failure.ts';
import { sha256 } from '../token.ts';

export interface LockOptions {
  /** Longest wait for a holder that lives. */
  readonly waitMs?: number;
  /**
   * A holder on another machine or in another container cannot be seen to live: it may hold this long. A write takes
   * milliseconds.
   */
  readonly unseenHolderMs?: number;
}

export interface Lock {
  /** Who we are, unique to this hold; may be part of a file name. */
  readonly holder: string;
  /** Whether the lock is still ours: it is not when this process stood still and was taken for dead. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * @param path of the lock folder; its parent must exist
 * @throws Error one line, when it is not free within `waitMs`; or a failed system call
 */
export async function acquireLock(
  path: string,
  { waitMs = 20_000, unseenHolderMs = 5_000 }: LockOptions = {},
): Promise<Lock> {
  const me = `${processName()}-${crypto().randomBytes(6).toString('hex')}`;
  const draft = join(dirname(path), `.${basename(path)}.${me}.tmp`);
  await mkdir(draft, { mode: 0o700 });
  try {
    await writeFile(join(draft, me), '', { mode: 0o600 });
    await takeTurns(draft, path, waitMs, unseenHolderMs);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  return {
    holder: me,
    isHeld: async () => (await holderOf(path)) === me,
    async release() {
      await ignore(['ENOENT'], unlink(join(path, me)));
      // Whoever took the freed folder in between has a file in it, and then it stays.
      await ignore(['ENOENT', 'ENOTEMPTY', 'EEXIST'], rmdir(path));
    },
  };
}

async function takeTurns(draft: string, path: string, waitMs: number, unseenHolderMs: number): Promise<void> {
  const start = performance.now();
  let holder: string | undefined;
  let holderSince = start;
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 50)) {
    if (await tryRename(draft, path)) return;
    const now = performance.now();
    const current = await holderOf(path);
    if (current !== holder) {
      holder = current;
      holderSince = now;
    }
    if (holder !== undefined && isDead(holder, now - holderSince > unseenHolderMs)) {
      await ignore(['ENOENT'], unlink(join(path, holder)));
      continue;
    }
    if (now - start > waitMs) {
      throw new Error(
        `Cannot lock ${path}: process ${holder?.split('-', 1)[0] ?? 'unknown'} has held it for ${waitMs / 1000} s`,
      );
    }
    // Uneven pauses, so that waiters do not come in step.
    await sleep(pause * (0.5 + Math.random()));
  }
}

async function tryRename(draft: string, path: string): Promise<boolean> {
  try {
    await rename(draft, path);
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

async function holderOf(path: string): Promise<string | undefined> {
  try {
    return (await readdir(path))[0];
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function ignore(codes: readonly string[], work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!codes.includes(errorCode(error) ?? '')) throw error;
  }
}

/** Whether the process behind a name of ours is gone. `overdue` decides where it cannot be seen. */
export function isDead(name: string, overdue: boolean): boolean {
  const [pid, started, machine] = name.split('-');
  if (machine !== machineName()) return overdue;
  const now = startOf(Number(pid));
  return now !== started && now !== ALIVE;
}

// A process id alone would do for a while: after a restart of the machine, or in time, another process has it. With the
// time of its start it is unique; and ids of another container mean nothing here, hence the PID namespace.
const ALIVE = 'alive';
function processName(): string {
  return `${process.pid}-${startOf(process.pid)}-${machineName()}`;
}

let machine: string | undefined;

/** Found out by the first who writes: few processes do. */
function machineName(): string {
  machine ??= findMachineName();
  return machine;
}

function findMachineName(): string {
  let name = hostname();
  try {
    name = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // Not Linux: the host's name has to do.
  }
  return sha256(name).toString('hex').slice(0, 16);
}

/** When a process began, in ticks since boot; `ALIVE` where only that much can be told; `undefined` when it is gone. */
function startOf(pid: number): string | undefined {
  try {
    // After the command's closing bracket (it may hold spaces and brackets itself): the state, and 19 fields on the
    // start (proc_pid_stat(5)).
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    // No /proc, or one that hides the processes of others (hidepid).
    return canBeSignalled(pid) ? ALIVE : undefined;
  }
}

function canBeSignalled(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

// A lock between processes. When the holder of the lock dies, another process can break the lock.
// - The lock is a folder with one file, whose name is the name of the holder.
// - To acquire the lock, a process prepares a draft of that folder and renames the draft to the lock's path. The rename
//   succeeds only if there is no folder at that path, or an empty one.
// - To break the lock of a dead holder, a process removes the file of exactly that holder. So when two processes do
//   this at the same time, neither of them can break the lock of a third.
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { errorCode } from '../../base/failure.ts';
import { BUSY_CODES, FOLDER_EXISTS, isAlive } from '../../base/system.ts';
import { sha256 } from '../token.ts';

export interface LockOptions {
  /** Maximum milliseconds to wait for a living holder. */
  readonly waitMs?: number;
  /**
   * Milliseconds after which a holder on another machine or in another container counts as dead. This process cannot
   * check whether such a holder is alive. A write takes only milliseconds.
   */
  readonly unseenHolderMs?: number;
}

export interface Lock {
  /** The holder's name: unique to this acquisition, and fit for a file name. */
  readonly holder: string;
  /** Whether this process still holds the lock. If it was paused, another process may have broken the lock. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * @param path the path of the lock's folder, whose parent folder must exist
 * @throws Error of one line, when another process holds the lock for `waitMs`; or the error of a system call
 */
export async function acquireLock(
  path: string,
  { waitMs = 20_000, unseenHolderMs = 5_000 }: LockOptions = {},
): Promise<Lock> {
  const ownName = `${processName()}-${crypto().randomBytes(6).toString('hex')}`;
  const draft = join(dirname(path), `.${basename(path)}.${ownName}.tmp`);
  await mkdir(draft, { mode: 0o700 });
  try {
    await writeFile(join(draft, ownName), '', { mode: 0o600 });
    await waitForTurn(draft, path, waitMs, unseenHolderMs);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  return {
    holder: ownName,
    isHeld: async () => (await readHolder(path)) === ownName,
    async release() {
      await ignore(['ENOENT'], unlink(join(path, ownName)));
      // If another process has acquired the lock meanwhile, the folder contains the file of that process. Then rmdir
      // fails, and the lock stays.
      await ignore(['ENOENT', ...FOLDER_EXISTS], rmdir(path));
    },
  };
}

async function waitForTurn(draft: string, path: string, waitMs: number, unseenHolderMs: number): Promise<void> {
  const start = performance.now();
  let holder: string | undefined;
  let holderSince = start;
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 50)) {
    if (await tryRename(draft, path)) return;
    const now = performance.now();
    const current = await readHolder(path);
    if (current !== holder) {
      holder = current;
      holderSince = now;
    }
    // A process can have ended between the two steps of its release. Then the folder is empty, and is removed here.
    if (holder === undefined) await ignore([...FOLDER_EXISTS, 'ENOENT'], rmdir(path));
    if (holder !== undefined && isDead(holder, now - holderSince > unseenHolderMs)) {
      await ignore(['ENOENT'], unlink(join(path, holder)));
      continue;
    }
    if (now - start > waitMs) {
      throw new Error(
        `Cannot lock ${path}: process ${holder?.split('-', 1)[0] ?? 'unknown'} has held it for ${waitMs / 1000} s`,
      );
    }
    // Random pauses keep several waiting processes from retrying at the same times.
    await sleep(pause * (0.5 + Math.random()));
  }
}

async function tryRename(draft: string, path: string): Promise<boolean> {
  try {
    await rename(draft, path);
    return true;
  } catch (error) {
    if (FOLDER_EXISTS.has(errorCode(error) ?? '')) return false;
    throw error;
  }
}

async function readHolder(path: string): Promise<string | undefined> {
  try {
    return (await readdir(path))[0];
  } catch (error) {
    const code = errorCode(error) ?? '';
    if (code === 'ENOENT' || BUSY_CODES.has(code)) return undefined;
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

/** Whether the process with this holder's name has ended. For another machine, the result is `isOverdue`. */
export function isDead(name: string, isOverdue: boolean): boolean {
  const [pid, started, machine] = name.split('-');
  if (machine !== machineName()) return isOverdue;
  const currentStart = readStart(Number(pid));
  return currentStart !== started && currentStart !== ALIVE;
}

/** Stands for the start time of a process that runs, but whose start time cannot be read. */
const ALIVE = 'alive';

/**
 * Names this process by its id, its start and its machine. The system reuses ids, so only the id and the start together
 * are unique. The same id means different processes in different containers. So the name of the machine includes the
 * PID namespace.
 */
function processName(): string {
  return `${process.pid}-${readStart(process.pid)}-${machineName()}`;
}

let machine: string | undefined;

/** Returns the name of this machine. The name is computed only when it is first needed, because few processes write. */
function machineName(): string {
  if (machine !== undefined) return machine;
  let name = hostname();
  try {
    name = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // Without /proc (not Linux), the host's name is used.
  }
  machine = sha256(name).toString('hex').slice(0, 16);
  return machine;
}

/**
 * Returns the start of a process in ticks since boot. Returns `ALIVE` when the start cannot be read, and `undefined`
 * when the process has ended.
 */
function readStart(pid: number): string | undefined {
  try {
    // proc_pid_stat(5): after the last bracket of the command come the state and, 19 fields later, the start.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    // There is no /proc, or it hides the processes of other users (hidepid).
    return isAlive(pid) ? ALIVE : undefined;
  }
}

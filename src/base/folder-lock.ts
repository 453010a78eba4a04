// A lock between processes. When the holder of the lock dies, another process can break the lock.
// - The lock is a folder with one file, whose name is the name of the holder.
// - To acquire the lock, a process prepares a draft of that folder and renames the draft to the lock's path. The rename
//   succeeds only if there is no folder at that path, or an empty one.
// - To break the lock of a dead holder, a process removes the file with the name of that holder, and then renames its
//   own draft. Two processes may do so at the same time. When the first has acquired the lock, the second cannot break
//   the new lock, because it only removes the file with the name of the dead holder.
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from './builtins.ts';
import { attempt, errorCode } from './failure.ts';
import { BUSY_CODES, FOLDER_NOT_EMPTY_CODES, isAlive } from './system.ts';

export interface LockOptions {
  readonly waitMs?: number;
  /**
   * Milliseconds after which a holder on another machine or in another container counts as dead, because this process
   * cannot check whether such a holder is alive. A holder needs the lock only for milliseconds.
   */
  readonly unseenHolderMs?: number;
}

/** The first part of the names of all holders in this process, or in this thread. */
let ownPrefix: string | undefined;
let acquisitions = 0;
/** The holders of this process that have not released their locks. */
const holders = new Set<string>();

export type Lock = Awaited<ReturnType<typeof acquireLock>>;

/**
 * @param path the path of the lock's folder, whose parent folder must exist
 * @throws Error that names the holder, when the lock was not free within `waitMs`; or the error of a system call
 */
export async function acquireLock(path: string, { waitMs = 20_000, unseenHolderMs = 5_000 }: LockOptions = {}) {
  ownPrefix ??= `${processName()}-${crypto().randomBytes(6).toString('hex')}-`;
  const holder = `${ownPrefix}${++acquisitions}`;
  const draft = join(dirname(path), `.${basename(path)}.${holder}.tmp`);
  await mkdir(draft, { mode: 0o700 });
  holders.add(holder);
  try {
    await writeFile(join(draft, holder), '', { mode: 0o600 });
    await waitForTurn(draft, path, waitMs, unseenHolderMs);
  } catch (error) {
    holders.delete(holder);
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  return {
    /** The name of this process and this acquisition. The name is unique, and it can be a file name. */
    holder,
    /** Whether this process still holds the lock. Another may have broken it while this one was paused. */
    isHeld: async () => (await readHolder(path)) === holder,
    async release(): Promise<void> {
      try {
        await ignoreErrors(['ENOENT'], unlink(join(path, holder)));
        // If another process has acquired the lock meanwhile, the folder contains the file of that process. Then rmdir
        // fails, and the lock stays.
        await ignoreErrors(['ENOENT', ...FOLDER_NOT_EMPTY_CODES], rmdir(path));
      } finally {
        holders.delete(holder);
      }
    },
  };
}

async function waitForTurn(draft: string, path: string, waitMs: number, unseenHolderMs: number): Promise<void> {
  const start = performance.now();
  let holder: string | undefined;
  let holderSeenAt = start;
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 50)) {
    if (await tryRename(draft, path)) return;
    const now = performance.now();
    const current = await readHolder(path);
    if (current !== holder) {
      holder = current;
      holderSeenAt = now;
    }
    // A holder that ended between the two steps of its release has left an empty folder.
    if (holder === undefined) await ignoreErrors([...FOLDER_NOT_EMPTY_CODES, 'ENOENT'], rmdir(path));
    if (holder !== undefined && (isLeft(holder) || isDead(holder, now - holderSeenAt > unseenHolderMs))) {
      await ignoreErrors(['ENOENT'], unlink(join(path, holder)));
      continue;
    }
    if (now - start > waitMs)
      throw new Error(
        `Cannot lock ${path}: process ${holder?.split('-', 1)[0] ?? 'unknown'} has held it for ${waitMs / 1000} s`,
      );
    // Random pauses keep several waiting processes from retrying at the same times.
    await sleep(pause * (0.5 + Math.random()));
  }
}

/** Whether this process could not release a lock, as on a disk that became read-only or was away. */
function isLeft(holder: string): boolean {
  return holder.startsWith(`${ownPrefix}`) && !holders.has(holder);
}

async function tryRename(draft: string, path: string): Promise<boolean> {
  try {
    await rename(draft, path);
    return true;
  } catch (error) {
    if (FOLDER_NOT_EMPTY_CODES.has(errorCode(error) ?? '')) return false;
    throw error;
  }
}

/** @returns undefined when there is no lock, when its folder is empty, or when the folder is just being renamed */
async function readHolder(path: string): Promise<string | undefined> {
  try {
    return (await readdir(path))[0];
  } catch (error) {
    const code = errorCode(error) ?? '';
    if (code === 'ENOENT' || BUSY_CODES.has(code)) return undefined;
    throw error;
  }
}

async function ignoreErrors(codes: readonly string[], work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!codes.includes(errorCode(error) ?? '')) throw error;
  }
}

/** Returns whether the process of a holder has ended; `isOverdue` for another machine's, which cannot be checked. */
export function isDead(holder: string, isOverdue: boolean): boolean {
  const [pid, start, machine] = holder.split('-');
  if (machine !== machineName()) return isOverdue;
  // The system reuses process ids. So a process with this id and another start is not the holder.
  const currentStart = readStart(Number(pid));
  return currentStart !== start && currentStart !== UNREADABLE_START;
}

/** The result of `readStart` when a process runs but its start cannot be read. Such a process counts as alive. */
const UNREADABLE_START = 'alive';

/** Whether a name is surely that of a process that runs. Without a start, another process can have its id by now. */
export function isSurelyAlive(name: unknown): boolean {
  return String(name).split('-')[1] !== UNREADABLE_START && !isDead(String(name), true);
}

/** Returns for example `4711-123456-5f2a9c0d_pid__4026531836_`: the process id, the start, and the machine's name. */
export function processName(pid: number = process.pid): string {
  return `${pid}-${readStart(pid)}-${machineName()}`;
}

let cachedMachineName: string | undefined;

/** Returns a name for this boot of this machine and this container, because each of them has its own process ids. */
function machineName(): string {
  if (cachedMachineName !== undefined) return cachedMachineName;
  const readName = () =>
    `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')} ${readlinkSync('/proc/self/ns/pid')}`;
  // Without /proc (not Linux), the host's name is used. The result is a part of file names.
  cachedMachineName = attempt(readName, hostname()).replaceAll(/\W/g, '_');
  return cachedMachineName;
}

/** Returns when a process started, in clock ticks since boot; `undefined` when the process has ended. */
function readStart(pid: number): string | undefined {
  try {
    // The form is `4711 (command) S 1 …`. After the command's last bracket come the state and, 19 fields later, the
    // start (proc_pid_stat(5)). The states Z and X mean that the process has ended.
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(') ') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    // There is no /proc, or it hides the processes of other users (hidepid).
    return isAlive(pid) ? UNREADABLE_START : undefined;
  }
}

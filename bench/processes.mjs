// Child processes and what the kernel says of them: start, stop, CPU time and memory of a whole process tree. Every
// child leads its own process group, so that nothing outlives the benchmark, whatever way it ends. Linux only: it reads
// /proc.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/** USER_HZ: the unit of the times in /proc/PID/stat, 100 a second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** @type {Set<ChildProcess>} */
const running = new Set();

process.once('exit', () => {
  for (const child of running) killGroup(child);
});
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.once(signal, () => process.exit(1));

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ env: Record<string, string>, stdio: import('node:child_process').StdioOptions }} options
 */
export function startProcess(command, args, { env, stdio }) {
  const child = spawn(command, args, { env, stdio, detached: true });
  running.add(child);
  child.once('exit', () => {
    killGroup(child);
    running.delete(child);
  });
  child.once('error', () => running.delete(child));
  return child;
}

/** Asks with SIGTERM, and after two seconds does not ask any more. @param {ChildProcess} child */
export async function stopProcess(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => killGroup(child), 2000);
  await gone;
  clearTimeout(timer);
}

/** @param {ChildProcess} child */
function killGroup(child) {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // ESRCH: the whole group is gone already.
  }
}

/**
 * CPU time, user and system, that a process and all its descendants have used, in seconds. A descendant that ended and
 * was waited for counts as its parent's children time, so the sum never falls.
 *
 * @param {number} root
 */
export function treeCpuSeconds(root) {
  let ticks = 0;
  for (const { times } of processTree(root)) ticks += times;
  return ticks / TICKS_PER_SECOND;
}

/**
 * CPU time that the whole machine has used, in seconds, whoever used it: all of the `cpu` line of /proc/stat but idle
 * and iowait, which is proc(5)'s fourth and fifth. Steal counts: what a hypervisor takes away is taken from us.
 */
export function machineCpuSeconds() {
  const [user, nice, system, , , irq, softirq, steal] = (readProc('stat') ?? '')
    .split('\n')[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
}

/**
 * Memory of a process and its descendants, in bytes: `VmHWM` is the peak of the resident set, `VmRSS` the present one.
 *
 * @param {number} root
 * @param {'VmHWM' | 'VmRSS'} field
 */
export function treeMemory(root, field) {
  let kib = 0;
  for (const { pid } of processTree(root)) {
    const line = readProc(`${pid}/status`)
      ?.split('\n')
      .find((text) => text.startsWith(`${field}:`));
    kib += line === undefined ? 0 : Number.parseInt(line.slice(field.length + 1), 10);
  }
  return kib * 1024;
}

/**
 * Every thread of a process and its descendants, and what they start, runs on that core from now on. @param {number}
 * root @param {number} core
 */
export function pinTree(root, core) {
  for (const pid of treePids(root)) {
    const { status, error } = spawnSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' });
    if (status !== 0)
      throw new Error(`Cannot pin process ${pid} to core ${core}: ${error?.message ?? `taskset ended with ${status}`}`);
  }
}

/** @param {number} root */
export function treePids(root) {
  return processTree(root).map(({ pid }) => pid);
}

/** @param {number} root */
function processTree(root) {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => parseStat(Number(name), readProc(`${name}/stat`)));
  const tree = all.filter(({ pid }) => pid === root);
  if (tree.length === 0) throw new Error(`Cannot read the times of process ${root}: it has ended`);
  for (const parent of tree) tree.push(...all.filter(({ ppid }) => ppid === parent.pid));
  return tree;
}

/**
 * proc(5): the name in brackets may hold anything, so the fields are counted from the last bracket.
 *
 * @param {number} pid
 * @param {string | undefined} stat
 */
function parseStat(pid, stat) {
  if (stat === undefined) return [];
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number);
  return [{ pid, ppid: Number(fields[1]), times: utime + stime + cutime + cstime }];
}

/** @param {string} path */
function readProc(path) {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch {
    return undefined; // It ended between the listing and now.
  }
}

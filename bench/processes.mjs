// Starts and stops child processes, and reads the CPU time and memory of process trees from /proc (Linux only). Every
// child leads its own process group, so that no process outlives the benchmark.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/** The unit of times in /proc/PID/stat (USER_HZ): 100 a second on every Linux that Node supports. */
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

/** Ends a child with SIGTERM, and after two seconds with SIGKILL. @param {ChildProcess} child */
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
    // ESRCH: the whole group has ended already.
  }
}

/**
 * Returns the CPU time (user and system) of a process and all its descendants, in seconds. The kernel adds the time of
 * an ended descendant to its parent, so the sum never falls.
 *
 * @param {number} root
 */
export function treeCpuSeconds(root) {
  let ticks = 0;
  for (const { times } of processTree(root)) ticks += times;
  return ticks / TICKS_PER_SECOND;
}

/**
 * Returns the CPU time that the whole machine has used, in seconds: the `cpu` line of /proc/stat without idle and
 * iowait (fields four and five in proc(5)). Steal counts, because a hypervisor's use slows this machine.
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
 * Returns the memory of a process and its descendants, in bytes: `VmHWM` is the peak of the resident set, `VmRSS` the
 * present one.
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
 * Pins a process, its descendants and what they start to one core.
 *
 * @param {number} root
 * @param {number} core
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
 * Splits a stat line into fields. The name in brackets may contain spaces and brackets, so fields are counted from the
 * last bracket (proc(5)).
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
    return undefined; // The process has ended since it was listed.
  }
}

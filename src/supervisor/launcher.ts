// Detects that a launcher of this service has ended. A launcher is the npm process that started the service, or the
// shell of its script. A SIGTERM to npx, `npm start` or `npm run` ends npm and that shell, but not the service. Without
// this file the service would remain without a parent and hold the port. A service that systemd, a container or a shell
// has started has no launcher.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { ADOPTS_ORPHANS, isAlive } from '../base/system.ts';

export interface Ancestor {
  readonly parent: number;
  /** The command line, as far as the system shows it. */
  readonly command: string;
}

/** Returns undefined when the process has ended, or when the system does not show it. */
type Describe = (pid: number) => Promise<Ancestor | undefined> | Ancestor | undefined;

/** Milliseconds between two checks whether the launchers are alive. */
const CHECK_INTERVAL = 500;
/** Maximum number of ancestor processes to examine. npm can run npm, which runs npx, each in a shell. */
const MAX_LAUNCHERS = 12;
/** Matches the command line of npm and its like: `npm run start`, `node /usr/lib/node_modules/npm/bin/npm-cli.js`. */
const IS_NPM = /(?:^|[\s\\/])(?:npm|npx|pnpm|yarn)(?:-cli)?(?:\.c?js)?(?:\s|$)/;
/** Matches the shell with which npm runs a script: `sh -c node dist/server.js`. */
const IS_SCRIPT_SHELL = /^(?:\S*\/)?(?:ba|da|k|z)?sh -c /;

/** Calls `onExit` once, when a launcher has ended. Does not keep this process alive. */
export async function watchLaunchers(onExit: (pid: number) => void, env = process.env): Promise<void> {
  // npm, pnpm and yarn set one of these two variables for every script.
  if (env.npm_lifecycle_event === undefined && env.npm_command === undefined) return;
  const parent = process.ppid;
  // On Windows, this process keeps the id of an ended parent, and only the parent is watched.
  const launchers = ADOPTS_ORPHANS ? await findLaunchers(parent, describeProcess) : [parent];
  if (launchers.length === 0) return;
  const timer = setInterval(() => {
    const endedPid = ADOPTS_ORPHANS && process.ppid !== parent ? parent : launchers.find((pid) => !isAlive(pid));
    if (endedPid === undefined) return;
    clearInterval(timer);
    onExit(endedPid);
  }, CHECK_INTERVAL);
  timer.unref();
}

/** Returns the processes from the parent up to the outermost npm, with the shells of scripts between them. */
export async function findLaunchers(parent: number, describe: Describe): Promise<number[]> {
  const ancestors: number[] = [];
  let lengthToNpm = 0;
  for (let pid = parent; pid > 0 && ancestors.length < MAX_LAUNCHERS; ) {
    const ancestor = await describe(pid);
    if (ancestor === undefined) break;
    const isNpm = IS_NPM.test(ancestor.command) && !IS_SCRIPT_SHELL.test(ancestor.command);
    if (!isNpm && !IS_SCRIPT_SHELL.test(ancestor.command)) break;
    ancestors.push(pid);
    if (isNpm) lengthToNpm = ancestors.length;
    pid = ancestor.parent;
  }
  return ancestors.slice(0, lengthToNpm);
}

/** Asks /proc on Linux, and `ps` elsewhere. */
async function describeProcess(pid: number): Promise<Ancestor | undefined> {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    // The name of the process ends with the last bracket. The process's state and the parent's id come next (proc(5)).
    return { parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), command };
  } catch {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'ppid=,args=', '-p', String(pid)]).catch(() => ({
      stdout: '',
    }));
    const [, parent, command = ''] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? [];
    return parent === undefined ? undefined : { parent: Number(parent), command };
  }
}

// Detects that npm, which has started this service, has ended. A SIGTERM to npx, `npm start` or `npm run` ends npm and
// the shell of the script, but not the service. Without this file the service would remain and hold the port.
import { isAlive } from '../../base/system.ts';

/** Milliseconds between two checks. */
const CHECK_INTERVAL = 500;

/** Calls `onExit` once, when the process that has started this one has ended. Does not keep this process alive. */
export function watchLauncher(onExit: (pid: number) => void): void {
  // npm, pnpm and yarn set one of these two variables for every script.
  if (process.env.npm_lifecycle_event === undefined && process.env.npm_command === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    // On Windows, this process keeps the id of an ended parent.
    if (process.ppid === parent && isAlive(parent)) return;
    clearInterval(timer);
    onExit(parent);
  }, CHECK_INTERVAL);
  timer.unref();
}

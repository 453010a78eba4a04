// Ends all processes that a test file started, also when the test file is killed or exceeds its time limit. A shell
// reads from this process. When the read ends, this process is gone, and the shell kills the processes that are left.
import { type ChildProcess, spawn } from 'node:child_process';

const SCRIPT = `
left=' '
while read -r op id; do
  case $op in
    +) left="$left$id " ;;
    -) left="\${left%% $id *} \${left#* $id }" ;;
  esac
done
for id in $left; do kill -KILL "-$id" 2>/dev/null; done
`;

let reaper: ChildProcess | undefined;

/**
 * @param child a process started with `detached: true` and piped output. It leads a process group, which is killed as a
 * whole
 */
export function reap(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  reaper ??= start();
  const { stdin } = reaper;
  stdin?.write(`+ ${pid}\n`);
  // The child may end before the processes that it started. All of them have ended when its output is closed.
  child.once('close', () => stdin?.write(`- ${pid}\n`));
}

function start(): ChildProcess {
  // The shell has its own session, so that a signal to the group of this process does not end it.
  const child = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  child.stdin?.on('error', () => {});
  return child;
}

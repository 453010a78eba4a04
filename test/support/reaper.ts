// Sees to it that nothing a test file starts outlives it, also when the file is killed or runs into its time-out: a
// shell that reads from this process, and ends what is left when there is nobody to read from any more.
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
 * @param child started with `detached: true`, its output piped: the leader of a group of processes, which ends as one
 */
export function reap(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  reaper ??= start();
  const { stdin } = reaper;
  stdin?.write(`+ ${pid}\n`);
  // When nobody holds its output any more, all of the group have ended: what it started may outlive it.
  child.once('close', () => stdin?.write(`- ${pid}\n`));
}

function start(): ChildProcess {
  // In a session of its own, so that what ends this process does not end it as well.
  const child = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  child.stdin?.on('error', () => {});
  return child;
}

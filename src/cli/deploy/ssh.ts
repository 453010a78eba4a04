// Runs a command on another machine by the program ssh, and sends files to the command by the program tar.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Refused } from '../command.ts';

/** The mark at the start of each line of an answer. Lines without it, which a login shell may print, are ignored. */
export const MARK = 'gatefold-deploy ';

export interface RemoteCommand {
  /** The destination for ssh. */
  readonly host: string;
  /** The command, as a text for sh. */
  readonly command: string;
  /** The files that the command gets as a tar stream on its standard input. */
  readonly files?: Files | undefined;
  /** Receives the parsed JSON of each marked line. */
  readonly onLine: (value: unknown) => void;
}

export interface Files {
  readonly root: string;
  /** The paths of the files, relative to the root. */
  readonly paths: readonly string[];
}

/**
 * Options of ssh. With BatchMode, ssh fails where it would otherwise ask a question and wait for a person. The other
 * options end a connection when the other machine no longer responds.
 */
const OPTIONS = ['BatchMode=yes', 'ConnectTimeout=20', 'ServerAliveInterval=15', 'ServerAliveCountMax=4'];
/** The exit code of ssh when there is no connection. */
const SSH_FAILED = 255;
/** The number of the last lines of standard error that are kept for an error message. */
const MAX_LINES = 200;

/**
 * Resolves when the command has ended with exit code 0.
 *
 * @throws Refused with the reason, when ssh, the command or tar fails
 */
export async function runRemote({ host, command, files, onLine }: RemoteCommand): Promise<void> {
  const words = [...OPTIONS.flatMap((option) => ['-o', option]), '-T', '--', host, command];
  const ssh = spawn('ssh', words, { stdio: [files === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  const complaints = collectLines(ssh);
  if (ssh.stdout !== null)
    createInterface(ssh.stdout).on('line', (line) => {
      if (line.startsWith(MARK)) onLine(JSON.parse(line.slice(MARK.length)));
    });
  const tar = files === undefined ? undefined : sendFiles(files, ssh);
  const code = await exitOf(ssh, 'ssh');
  if (code === 0) return void (await tar?.sent);
  tar?.kill();
  // This throws when tar has failed by itself. A tar that was ended just now is not the reason of the failure.
  if (tar?.hasFailed()) await tar.sent;
  if (code === SSH_FAILED) throw new Refused(`Cannot reach ${host}: ${reasonOf(complaints, host)}`);
  throw new Refused(`${host}: ${complaints.slice(-3).join(' | ') || `the command ended with exit code ${code}`}`);
}

/** Sends files to the standard input of ssh. `sent` rejects when a file cannot be read. */
function sendFiles({ root, paths }: Files, ssh: ChildProcess) {
  let hasFailed = false;
  // Without this variable, tar on macOS would add one more file for the attributes of each file.
  const env = { ...process.env, COPYFILE_DISABLE: '1' };
  const tar = spawn('tar', ['-c', '-f', '-', '--null', '-T', '-'], {
    cwd: root,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const complaints = collectLines(tar);
  // After a failure of tar, the stream is not ended, so the other machine does not take a part for the whole.
  const sent = exitOf(tar, 'tar').then((code) => {
    if (code === 0) return void ssh.stdin?.end();
    hasFailed = true;
    ssh.kill();
    throw new Refused(`Cannot read ${root}: tar: ${complaints.join(' | ') || `exit code ${code}`}`);
  });
  sent.catch(() => {});
  for (const stream of [ssh.stdin, tar.stdin]) stream?.on('error', () => {});
  if (ssh.stdin !== null) tar.stdout.pipe(ssh.stdin, { end: false });
  // Without `./`, tar would take the name `-x` for an option.
  tar.stdin.end(paths.map((path) => `./${path}\0`).join(''));
  return {
    sent,
    hasFailed: () => hasFailed,
    kill() {
      tar.kill();
      // A process that tar has started may keep these streams open.
      for (const stream of [tar.stdin, tar.stdout, tar.stderr]) stream.destroy();
    },
  };
}

function exitOf(child: ChildProcess, program: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new Refused(error.code === 'ENOENT' ? `There is no ${program} on this machine` : error.message)),
    );
    child.once('close', (code) => resolve(code ?? SSH_FAILED));
  });
}

function collectLines({ stderr }: ChildProcess): string[] {
  const lines: string[] = [];
  if (stderr !== null)
    createInterface(stderr).on('line', (line) => {
      if (line.trim() !== '') lines.push(line.trim());
      if (lines.length > MAX_LINES) lines.shift();
    });
  return lines;
}

/** Returns the last message of ssh. When ssh could not ask its question, the text also says what to do. */
function reasonOf(complaints: readonly string[], host: string): string {
  const text = complaints.join('\n');
  const reason = complaints.at(-1) ?? 'the connection broke';
  if (/host key verification failed|remote host identification has changed/i.test(text))
    return `${reason} Run ssh ${host} once, and compare its key with the key of the machine`;
  if (/permission denied/i.test(text))
    return `${reason} ssh must sign in without a question: ssh-copy-id ${host} brings the key there, and ssh-add opens a key with a passphrase`;
  return reason;
}

/** Quotes a word for sh. */
export function quote(word: string): string {
  return /^[\w./=@:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// Runs a command on another machine by the program ssh, and sends files to the command by the program tar.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { attempt } from '../../../base/failure.ts';
import { CommandError } from '../command.ts';

/** The start of each answer. Other lines, and a text before it in its line, are those of a login shell. */
export const MARK = 'gatefold-deploy ';

export interface RemoteCommand {
  readonly host: string;
  readonly command: string;
  /** The command gets the files as a tar stream on its standard input. */
  readonly files?: Files | undefined;
  /** Called with the parsed JSON of each line that begins with MARK. */
  readonly onLine: (value: unknown) => void;
}

export interface Files {
  readonly root: string;
  /** Relative to the root. */
  readonly paths: readonly string[];
}

/** With BatchMode, ssh fails where it would ask a person. The others end a silent connection. */
const SSH_OPTIONS = ['BatchMode=yes', 'ConnectTimeout=20', 'ServerAliveInterval=15', 'ServerAliveCountMax=4'];
/** The exit code of ssh when there is no connection. */
const SSH_FAILED = 255;
/** The number of the latest lines of standard error that are kept for an error message. */
const MAX_ERROR_LINES = 200;
/** Characters of one line. The rest of a line is dropped, because a line without an end would fill the memory. */
const MAX_ERROR_LINE = 2000;
const MAX_ANSWER_LINE = 8 * 1024 * 1024;

/** @throws CommandError with the reason, when ssh, the command or tar fails */
export async function runRemote({ host, command, files, onLine }: RemoteCommand): Promise<void> {
  const args = [...SSH_OPTIONS.flatMap((option) => ['-o', option]), '-T', '--', host, command];
  const ssh = spawn('ssh', args);
  const errorLines = collectErrorLines(ssh);
  readLines(ssh.stdout, MAX_ANSWER_LINE, (line) => {
    const start = line.indexOf(MARK);
    if (start < 0) return;
    // The last line of a lost connection can be cut.
    const value: unknown = attempt(() => JSON.parse(line.slice(start + MARK.length)), undefined);
    if (value !== undefined) onLine(value);
  });
  // Without this listener, a write to a lost connection would end this process. `exitOf` reports the loss.
  ssh.stdin.on('error', () => {});
  const tar = files === undefined ? undefined : sendFiles(files, ssh);
  if (tar === undefined) ssh.stdin.end();
  const code = await exitOf(ssh, 'ssh');
  if (code === 0) return void (await tar?.sent);
  tar?.kill();
  // A failure of tar is the reason why ssh was killed. A tar that `kill` ends has not failed.
  if (tar?.hasFailed()) await tar.sent;
  if (code === SSH_FAILED) throw new CommandError(`Cannot reach ${host}: ${reasonOf(errorLines, host)}`);
  throw new CommandError(`${host}: ${errorLines.slice(-3).join(' | ') || `the command ended with exit code ${code}`}`);
}

/** Calls `onLine` with each line. A line beyond `maxLength` is cut there. */
function readLines(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  let line = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    for (const [i, part] of text.split('\n').entries()) {
      if (i > 0) {
        onLine(line);
        line = '';
      }
      line += part.slice(0, maxLength - line.length);
    }
  });
  stream.once('end', () => onLine(line));
}

/** Sends files to the standard input of ssh. In the result, `sent` rejects when a file cannot be read. */
function sendFiles({ root, paths }: Files, ssh: ChildProcessWithoutNullStreams) {
  let hasFailed = false;
  // Without this variable, tar on macOS would add one more file for the attributes of each file.
  const env = { ...process.env, COPYFILE_DISABLE: '1' };
  const tar = spawn('tar', ['-c', '-f', '-', '--null', '-T', '-'], { cwd: root, env });
  const errorLines = collectErrorLines(tar);
  // The stream ends only after a success of tar. Otherwise the machine could take a part of the files for all.
  const sent = exitOf(tar, 'tar').then((code) => {
    if (code === 0) return void ssh.stdin.end();
    hasFailed = true;
    ssh.kill();
    throw new CommandError(`Cannot read ${root}: tar: ${errorLines.join(' | ') || `exit code ${code}`}`);
  });
  // Without these listeners, a failure that nobody awaits would end this process.
  sent.catch(() => {});
  tar.stdin.on('error', () => {});
  tar.stdout.pipe(ssh.stdin, { end: false });
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

/** Resolves with the exit code, or with SSH_FAILED after a signal. @throws CommandError when the program cannot run */
async function exitOf(child: ChildProcessWithoutNullStreams, program: string): Promise<number> {
  const [code] = await once(child, 'close').catch(({ code, message }: NodeJS.ErrnoException) => {
    throw new CommandError(code === 'ENOENT' ? `There is no ${program} on this machine` : message);
  });
  return code ?? SSH_FAILED;
}

/** Returns a list that gets the lines of standard error, while the process prints them. */
function collectErrorLines({ stderr }: ChildProcessWithoutNullStreams): string[] {
  const lines: string[] = [];
  readLines(stderr, MAX_ERROR_LINE, (line) => {
    if (line.trim() !== '') lines.push(line.trim());
    if (lines.length > MAX_ERROR_LINES) lines.shift();
  });
  return lines;
}

/** Returns the last message of ssh. When ssh wanted to ask the user something, the text also says what to do. */
function reasonOf(errorLines: readonly string[], host: string): string {
  const text = errorLines.join('\n');
  const reason = errorLines.at(-1) ?? 'the connection broke';
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

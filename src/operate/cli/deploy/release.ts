// Makes a release on the target machine: receives the files of the project, and installs the packages or copies them
// from the previous release. Hard links instead of copies would change the ctime of files in the release that serves,
// and the service would take this for an edit. A release gets its final name when it is complete.
import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { Readable } from 'node:stream';
import { describeFailure, errorCode } from '../../../base/failure.ts';
import { lineOf } from '../command.ts';
import { type ReleaseNote, readNote, releasePath, removeFolder } from './folders.ts';
import type { Order } from './order.ts';
import { manifestField, npmLockOf, RELEASE_NOTE, withSlashes } from './project.ts';

export interface ReleaseOptions {
  readonly order: Order;
  readonly before: string | undefined;
  /** The environment of npm. Its DATA_DIR is absolute, because npm runs in the release, and the service in DIR. */
  readonly env: NodeJS.ProcessEnv;
  /** The group of the service; undefined when this user runs the service. */
  readonly group: number | undefined;
  /** @throws Error when the connection is lost */
  readonly report: (step: string) => Promise<void>;
}

/** @throws Error with a message of one line. A release that failed never has its final name, and leaves nothing. */
export async function makeRelease(options: ReleaseOptions): Promise<void> {
  const { dir, releaseName } = options.order;
  const path = releasePath(dir, releaseName);
  // A name with a dot marks an incomplete folder. The next deployment removes what a killed process leaves.
  const draft = join(dirname(path), `.${releaseName}.part`);
  if (fs.existsSync(path)) throw new Error(`${path} exists already`);
  try {
    // Nobody else can read a file until it has its mode.
    fs.mkdirSync(draft, { mode: 0o700 });
    await fill(draft, options);
    fs.renameSync(draft, path);
  } catch (error) {
    const reason = lineOf(error);
    const namesFullDisk = /ENOSPC|no space left/i.test(reason);
    const isFull = namesFullDisk || isDiskFull(draft);
    removeFolder(draft);
    if (!isFull) throw error;
    const detail = namesFullDisk ? '' : ` (${reason})`;
    throw new Error(`Cannot make the release: no space is left on the disk of ${dirname(path)}${detail}`);
  }
}

async function fill(draft: string, { order, before, env, group, report }: ReleaseOptions): Promise<void> {
  await extract(process.stdin, draft);
  setModesAndCount(draft, order, group);
  fs.chmodSync(draft, 0o755);
  const packages = await installPackages(draft, { order, before, env, report });
  if (typeof manifestField(draft, 'scripts').predeploy === 'string') {
    await report('npm run predeploy');
    try {
      runNpm(['run', 'predeploy'], draft, env);
    } catch (error) {
      throw new Error(`${lineOf(error)}. Its settings are those of ${join(order.dir, 'env')}`);
    }
  }
  const note: ReleaseNote = { before: before ?? null, runtime: order.gatefoldCopy, packages };
  fs.writeFileSync(join(draft, RELEASE_NOTE), `${JSON.stringify(note)}\n`);
  // With a lost connection, this throws, and the folder does not get its final name.
  await report(`swap to ${order.releaseName}`);
}

/** Milliseconds without a byte after which the connection counts as lost. */
const MAX_SILENCE = 60_000;
const MAX_MESSAGE_CHARACTERS = 2000;

/** Extracts a tar stream. With `-o`, the files belong to this user. @throws Error when not all of it was extracted */
export async function extract(input: Readable, folder: string): Promise<void> {
  const tar = spawn('tar', ['-xof', '-', '-C', folder], { stdio: ['pipe', 'ignore', 'pipe'] });
  let messages = '';
  // A message can arrive in parts, so the first line is known only at the end.
  tar.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages += text.slice(0, MAX_MESSAGE_CHARACTERS - messages.length);
  });
  const silenceTimer = setTimeout(() => {
    messages ||= 'the connection is lost';
    tar.kill();
  }, MAX_SILENCE);
  input.on('data', () => silenceTimer.refresh());
  // When tar ends before it has read everything, its exit code is the error.
  tar.stdin.on('error', () => {});
  input.pipe(tar.stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    tar.once('error', () => reject(new Error('there is no tar')));
    tar.once('close', resolve);
  }).finally(() => clearTimeout(silenceTimer));
  input.unpipe();
  if (code === 0) return;
  throw new Error(`Cannot extract the files: ${messages.split('\n', 1)[0] || `tar ended with ${code}`}`);
}

export function isDiskFull(folder: string): boolean {
  if (!fs.existsSync(folder)) return false;
  const { bavail, bsize } = fs.statfsSync(folder);
  return bavail * bsize < MIN_FREE_SPACE;
}

/** Bytes. A disk with less free space counts as full. */
const MIN_FREE_SPACE = 64 * 1024;

/**
 * Sets the modes of all files and folders, and counts the files. The account of the service can read all of them, and
 * other users what everybody could read in the project.
 *
 * @param group the group of the service; undefined when this user runs the service
 * @throws Error when a file or a part of a file has not arrived, or when this user may not set the group
 */
export function setModesAndCount(
  folder: string,
  { fileCount, bytes, closedFolders }: Pick<Order, 'fileCount' | 'bytes' | 'closedFolders'>,
  group: number | undefined,
): void {
  const closed = new Set(closedFolders);
  let count = 0;
  let size = 0;
  for (const { path, stat } of walk(folder)) {
    const isFolder = stat.isDirectory();
    if (!isFolder) count++;
    if (stat.isSymbolicLink()) continue;
    if (!isFolder) size += stat.size;
    const mode = isFolder || (stat.mode & 0o100) !== 0 ? 0o755 : 0o644;
    const isClosed = isFolder ? closed.has(withSlashes(relative(folder, path))) : (stat.mode & 0o004) === 0;
    if (isClosed && group !== undefined) setGroup(path, group);
    fs.chmodSync(path, !isClosed ? mode : group === undefined ? mode & 0o700 : mode & 0o750);
  }
  if (count !== fileCount || size !== bytes)
    throw new Error(
      `${count} of ${fileCount} files, ${size} of ${bytes} bytes have arrived: the stream was cut, or a file has changed meanwhile`,
    );
}

/** @throws Error when this user is neither root nor a member of the group */
function setGroup(path: string, group: number): void {
  try {
    fs.chownSync(path, -1, group);
  } catch (error) {
    throw new Error(
      `The service could not read ${basename(path)}, which is not for everybody: deploy as the user of the service, or as root (${describeFailure(error)})`,
    );
  }
}

function* walk(folder: string): Generator<{ path: string; stat: fs.Stats }> {
  for (const name of fs.readdirSync(folder)) {
    const path = join(folder, name);
    const stat = fs.lstatSync(path);
    yield { path, stat };
    if (stat.isDirectory()) yield* walk(path);
  }
}

/** Installs the packages, or copies those of the previous release. Returns the field `packages` of the note. */
async function installPackages(draft: string, { order, before, env, report }: Omit<ReleaseOptions, 'group'>) {
  const { dir, hasTypeScript } = order;
  const needsTsx = hasTypeScript && !process.features.typescript;
  const keepsDev = needsTsx && 'tsx' in manifestField(draft, 'devDependencies');
  const { modules: abiVersion } = process.versions;
  const packagesKey = [abiVersion, process.platform, process.arch, ...(keepsDev ? ['dev'] : [])].join(' ');
  const npmLock = npmLockOf(draft);
  const previousPath = before === undefined ? undefined : releasePath(dir, before);
  const canCopy =
    previousPath !== undefined &&
    npmLockOf(previousPath) === npmLock &&
    readNote(dir, before as string)?.packages === packagesKey &&
    fs.existsSync(join(previousPath, 'node_modules'));
  if (npmLock !== undefined && canCopy) {
    for (const folder of packageFolders(npmLock).filter((path) => fs.existsSync(join(previousPath, path))))
      fs.cpSync(join(previousPath, folder), join(draft, folder), {
        recursive: true,
        verbatimSymlinks: true,
        // On some file systems, a copy then uses no disk space of its own until a file is changed.
        mode: fs.constants.COPYFILE_FICLONE,
      });
  } else if (npmLock !== undefined) {
    await report('npm ci');
    runNpm(['ci', keepsDev ? '--include=dev' : '--omit=dev', '--no-audit', '--no-fund'], draft, env);
  }
  if (needsTsx && !fs.existsSync(join(draft, 'node_modules/tsx')))
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: install Node 22.18 or later on this machine, or tsx in the project (npm install tsx)`,
    );
  return packagesKey;
}

/** Returns the folders of packages: `node_modules`, and those of workspaces, such as `packages/shop/node_modules`. */
function packageFolders(npmLock: string): string[] {
  const places = Object.keys(Object(JSON.parse(npmLock).packages));
  return [
    ...new Set(['node_modules', ...places.flatMap((place) => /^.*?\/node_modules(?=\/)/.exec(place)?.[0] ?? [])]),
  ];
}

/** A line without a message: a line of the stack of an error, of the source that threw it, or npm's empty line. */
const CODE_LINE = /^at .*:\d+\)?$|^throw |^(?:npm (?:error|ERR!))?$/;

/** @throws Error whose one line has up to four lines of npm, joined by ` | `; lines about errors are preferred */
export function runNpm(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): void {
  const { status, signal, error, stdout, stderr } = spawnSync('npm', args, {
    cwd,
    env: { NODE_ENV: 'production', ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const title = `npm ${args.slice(0, 2).join(' ')}`;
  if (errorCode(error) === 'ENOENT')
    throw new Error('There is no npm on this machine: on Debian, apt-get install npm brings it');
  if (error !== undefined) throw new Error(`${title}: ${error.message}`);
  if (status === 0) return;
  const lines = `${stdout}\n${stderr}`
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !CODE_LINE.test(line));
  const errorLines = lines.filter((line) => /error/i.test(line));
  const shownLines = (errorLines.length > 0 ? errorLines : lines).slice(0, 4);
  throw new Error(`${title} ended with ${status ?? signal}: ${shownLines.join(' | ')}`);
}

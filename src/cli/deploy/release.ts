// Makes a release on this machine. First the release receives its files. Then its packages are installed, or copied
// from the release before. The release gets its final name only when it is complete. No two releases share a file by a
// hard link. Such a link changes the ctime of a file in the release that serves, and the service would take the change
// for an edit.
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  type Stats,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Note, readNote, releasePath } from './folders.ts';
import type { Order } from './order.ts';
import { lockOf, manifestField, NOTE } from './project.ts';

export interface ReleaseOptions {
  readonly order: Order;
  /** The tar stream with the files of the release. */
  readonly input: Readable;
  /**
   * The release before, whose packages are copied if its npm lock file is the same; undefined when there is none.
   */
  readonly before: string | undefined;
  /** The settings of the service. */
  readonly env: NodeJS.ProcessEnv;
  /** Reports a step to the deployer. @throws Error when nobody receives the report any more */
  readonly report: (step: string) => Promise<void>;
}

/** @throws Error with a message of one line. The service then uses no file of the new release. */
export async function makeRelease({ order, input, before, env, report }: ReleaseOptions): Promise<void> {
  const path = releasePath(order.dir, order.release);
  const part = join(dirname(path), `.${order.release}.part`);
  if (existsSync(path)) throw new Error(`${path} exists already`);
  mkdirSync(part);
  await extract(input, part);
  checkFiles(part, order);
  const packages = await installPackages(part, { order, before, env, report });
  if (typeof manifestField(part, 'scripts').predeploy === 'string') {
    await report('npm run predeploy');
    runNpm(['run', 'predeploy'], part, env);
  }
  const note: Note = { before: before ?? null, runtime: order.runtime, packages };
  writeFileSync(join(part, NOTE), `${JSON.stringify(note)}\n`);
  // The report fails when the connection is lost. The release then has no final name yet, so the next deployment
  // removes its folder.
  await report(`swap to ${order.release}`);
  renameSync(part, path);
}

/** Milliseconds without a received byte after which the connection counts as lost. */
const MAX_SILENCE = 60_000;

/** Extracts a tar stream. The files do not get the owners and modes that they have on the deploying machine. */
async function extract(input: Readable, folder: string): Promise<void> {
  const tar = spawn('tar', ['-xof', '-', '-C', folder], { stdio: ['pipe', 'ignore', 'pipe'] });
  let complaint = '';
  tar.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint ||= text.split('\n', 1)[0] as string;
  });
  const silence = setTimeout(() => {
    complaint ||= 'the connection is lost';
    tar.kill();
  }, MAX_SILENCE);
  input.on('data', () => silence.refresh());
  tar.stdin.on('error', () => {});
  input.pipe(tar.stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    tar.once('error', () => reject(new Error('there is no tar')));
    tar.once('close', resolve);
  }).finally(() => clearTimeout(silence));
  input.unpipe();
  if (code === 0) return;
  if (isFull(folder)) throw new Error(`Cannot extract the files: no space is left on the disk of ${dirname(folder)}`);
  throw new Error(`Cannot extract the files: ${complaint || `tar ended with ${code}`}`);
}

/** Returns whether the disk of a folder is full. Returns false when the folder does not exist. */
export function isFull(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < MIN_FREE_SPACE;
}

/** The free space in bytes below which a disk counts as full. */
const MIN_FREE_SPACE = 64 * 1024;

/**
 * Gives every file a usual mode, so that the user of the service can read the file.
 *
 * @throws Error when a file is missing
 */
function checkFiles(folder: string, { files, bytes }: Order): void {
  let count = 0;
  let size = 0;
  chmodSync(folder, 0o755);
  for (const { path, stat } of walk(folder)) {
    if (stat.isSymbolicLink()) count++;
    else if (stat.isDirectory()) chmodSync(path, 0o755);
    else {
      count++;
      size += stat.size;
      chmodSync(path, (stat.mode & 0o100) === 0 ? 0o644 : 0o755);
    }
  }
  if (count !== files || size !== bytes)
    throw new Error(`The stream was cut: ${count} of ${files} files, ${size} of ${bytes} bytes have arrived`);
}

/** Iterates over all files and folders below a folder. Each folder comes before its content. */
function* walk(folder: string): Generator<{ path: string; stat: Stats }> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    yield { path, stat };
    if (stat.isDirectory()) yield* walk(path);
  }
}

/**
 * Installs the packages of a release, or copies them from the release before. Returns the value of `packages` for the
 * note of the release.
 */
async function installPackages(
  part: string,
  { order, before, env, report }: Omit<ReleaseOptions, 'input'>,
): Promise<string> {
  const { dir, typescript } = order;
  const needsTsx = typescript && !process.features.typescript;
  const keepsDev = needsTsx && 'tsx' in manifestField(part, 'devDependencies');
  const { modules } = process.versions;
  const packages = [modules, process.platform, process.arch, ...(keepsDev ? ['dev'] : [])].join(' ');
  const lock = lockOf(part);
  const previousPath = before === undefined ? undefined : releasePath(dir, before);
  const canCopy =
    previousPath !== undefined &&
    lockOf(previousPath) === lock &&
    readNote(dir, before as string)?.packages === packages &&
    existsSync(join(previousPath, 'node_modules'));
  if (lock !== undefined && canCopy)
    cpSync(join(previousPath, 'node_modules'), join(part, 'node_modules'), {
      recursive: true,
      verbatimSymlinks: true,
      // If the file system supports it, a copy uses the disk space of the original until one of the two files is
      // written.
      mode: constants.COPYFILE_FICLONE,
    });
  else if (lock !== undefined) {
    await report('npm ci');
    runNpm(['ci', ...(keepsDev ? ['--include=dev'] : ['--omit=dev']), '--no-audit', '--no-fund'], part, env);
  }
  if (needsTsx && !existsSync(join(part, 'node_modules/tsx')))
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: install Node 22.18 or later on this machine, or tsx in the project (npm install tsx)`,
    );
  return packages;
}

function runNpm(words: readonly string[], cwd: string, env: NodeJS.ProcessEnv): void {
  const { status, error, stdout, stderr } = spawnSync('npm', words, {
    cwd,
    env: { NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const title = `npm ${words.slice(0, 2).join(' ')}`;
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT')
    throw new Error('There is no npm on this machine: on Debian, apt-get install npm brings it');
  if (error !== undefined) throw new Error(`${title}: ${error.message}`);
  if (status === 0) return;
  const lines = `${stdout}\n${stderr}`.split('\n').filter((line) => line.trim() !== '');
  const errorLines = lines.filter((line) => /error/i.test(line));
  throw new Error(
    `${title} ended with ${status}: ${(errorLines.length > 0 ? errorLines : lines).slice(0, 4).join(' | ')}`,
  );
}

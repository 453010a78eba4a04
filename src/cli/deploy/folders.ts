// The folder of a project on the machine that it is deployed to:
//
//   current -> releases/20261122T213500123Z     the release to serve; a rename swaps the link, so it is never missing
//   releases/              one folder for each release; a folder whose name begins with a dot is incomplete
//   runtime/current -> 0.1.0                    Gatefold itself
//   data/                  the credentials table and the keys
//   env                    the settings of the service
//   run                    the script that starts the service
//   restart                the script that starts the service again
import { lstatSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../../base/failure.ts';
import { RELEASE_NOTE } from './project.ts';

/** The content of the file RELEASE_NOTE in each release. */
export interface ReleaseNote {
  /** The release that served before this release; null when there was none. */
  readonly before: string | null;
  /** The name of the folder in `runtime` with the copy of Gatefold that deployed this release. */
  readonly runtime: string;
  /**
   * For which Node and system the packages were installed: `127 linux x64`, or `127 linux x64 dev` with development
   * packages. 127 is the ABI version of Node.
   */
  readonly packages: string;
}

const RELEASE_NAME = /^\d{8}T\d{9}Z$/;

/** Returns the name of a release that is made now: the time in UTC, `20261122T213500123Z`. */
export function releaseName(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:.]/g, '');
}

export function releasePath(dir: string, release: string): string {
  return join(dir, 'releases', release);
}

/** Returns the last part of the path that the link `current` leads to; undefined when there is no such link. */
export function readCurrent(folder: string): string | undefined {
  try {
    return basename(readlinkSync(join(folder, 'current')));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'EINVAL') throw new Error(`${join(folder, 'current')} is not a link: move it away`);
    throw error;
  }
}

/** Swaps the link `current` in one step. */
export function setCurrent(folder: string, target: string): void {
  const draft = join(folder, '.current.new');
  rmSync(draft, { force: true });
  symlinkSync(target, draft);
  renameSync(draft, join(folder, 'current'));
}

export function readNote(dir: string, release: string): ReleaseNote | undefined {
  try {
    return JSON.parse(readFileSync(join(releasePath(dir, release), RELEASE_NOTE), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the names of the releases, the newest first. The time of a release is that of its note file, by the clock of
 * this machine. The time in its name is by the clock of the machine that deployed it, which may be wrong.
 */
export function listReleases(dir: string): string[] {
  const createdAt = (name: string): number =>
    statSync(join(releasePath(dir, name), RELEASE_NOTE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return readdirSync(join(dir, 'releases'))
    .filter((name) => RELEASE_NAME.test(name))
    .map((name) => ({ name, time: createdAt(name) }))
    .sort((a, b) => b.time - a.time)
    .map(({ name }) => name);
}

/** Removes a release. After an interruption, `removeLeftovers` finds the rest by the dot in its name. */
export function removeRelease(dir: string, release: string): void {
  renameAndRemove(`.${release}.gone`, releasePath(dir, release));
}

function renameAndRemove(name: string, path: string): void {
  const gone = join(dirname(path), name);
  renameSync(path, gone);
  rmSync(gone, { recursive: true, force: true });
}

/** Removes the folders that an interrupted deployment has left. The caller must hold the deployment lock. */
export function removeLeftovers(dir: string): void {
  const releases = join(dir, 'releases');
  for (const name of readdirSync(releases))
    if (name.startsWith('.')) rmSync(join(releases, name), { recursive: true, force: true });
}

/** Removes old releases. The `keep` newest releases stay, and so does each release in `inUse`. */
export function prune(dir: string, keep: number, inUse: ReadonlySet<string>): void {
  for (const release of listReleases(dir).slice(keep)) if (!inUse.has(release)) removeRelease(dir, release);
}

/**
 * Milliseconds. A folder in `runtime` that is younger is not removed: another deployment may have just copied its
 * Gatefold there, and still wait for the lock.
 */
const MIN_COPY_AGE = 3_600_000;

/** Removes each Gatefold in `runtime` that is not in use. @param running the folder of the Gatefold that runs */
export function pruneCopies(dir: string, running: string): void {
  const folder = join(dir, 'runtime');
  const inUse = new Set(listReleases(dir).map((release) => readNote(dir, release)?.runtime));
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    const isUsed = inUse.has(name) || name === readCurrent(folder) || name === basename(running);
    if (isUsed || !stat.isDirectory() || stat.mtimeMs > Date.now() - MIN_COPY_AGE) continue;
    // After an interruption, the name shows that the rest of the folder is no complete Gatefold. A folder that already
    // has such a name keeps it.
    renameAndRemove(name.endsWith('.gone') ? name : `${name}.gone`, path);
  }
}

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
import { NOTE } from './project.ts';

/** The content of the note file, which each release contains. */
export interface Note {
  /** The release that served before this release; null when there was none. */
  readonly before: string | null;
  /** The name of the folder in `runtime` with the Gatefold that deployed this release. */
  readonly runtime: string;
  /**
   * The conditions under which the packages were installed: the ABI version of Node, the platform, the CPU, and `dev`
   * when development packages are included.
   */
  readonly packages: string;
}

const RELEASE = /^\d{8}T\d{9}Z$/;

/**
 * Returns the name of a release that is made now. The name is the time in UTC, so names sort by time in every time
 * zone.
 */
export function releaseName(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:.]/g, '');
}

export function releasePath(dir: string, release: string): string {
  return join(dir, 'releases', release);
}

/**
 * Returns the last part of the path that the link `current` leads to. Returns undefined when the folder has no such
 * link.
 */
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

export function readNote(dir: string, release: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(join(releasePath(dir, release), NOTE), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the names of the releases, the newest first. The order comes from the times of the note files, by the clock
 * of this machine. The order does not use the names, because each deployer makes a name by its own clock.
 */
export function listReleases(dir: string): string[] {
  const madeAt = (name: string): number =>
    statSync(join(releasePath(dir, name), NOTE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return readdirSync(join(dir, 'releases'))
    .filter((name) => RELEASE.test(name))
    .map((name) => ({ name, createdAt: madeAt(name) }))
    .sort((a, b) => b.createdAt - a.createdAt)
    .map(({ name }) => name);
}

/**
 * Removes a release. First its folder gets a name that begins with a dot. So after an interruption, the next deployment
 * recognizes the rest of the folder and removes it.
 */
export function removeRelease(dir: string, release: string): void {
  renameAndRemove(`.${release}.gone`, releasePath(dir, release));
}

function renameAndRemove(name: string, path: string): void {
  const gone = join(dirname(path), name);
  renameSync(path, gone);
  rmSync(gone, { recursive: true, force: true });
}

/**
 * Removes the folders that an interrupted deployment has left. Only the holder of the deployment lock may call this
 * function.
 */
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
 * Minimum age in milliseconds of a folder in `runtime` that is removed. A younger one may belong to another deployment,
 * which has just copied its Gatefold there and still waits for the lock.
 */
const MIN_AGE = 3_600_000;

/**
 * Removes each Gatefold in `runtime` that no release, no later start and no running service uses.
 *
 * @param running the folder of the Gatefold that the service runs
 */
export function pruneRuntimes(dir: string, running: string): void {
  const folder = join(dir, 'runtime');
  const inUse = new Set(listReleases(dir).map((release) => readNote(dir, release)?.runtime));
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    const isUsed = inUse.has(name) || name === readCurrent(folder) || name === basename(running);
    if (isUsed || !stat.isDirectory() || stat.mtimeMs > Date.now() - MIN_AGE) continue;
    // Before the removal, the folder gets a name that no version has. So after an interruption, nobody takes the rest
    // of the folder for a complete Gatefold.
    renameAndRemove(name.endsWith('.gone') ? name : `${name}.gone`, path);
  }
}

// The releases and the copies of Gatefold in the folder of a project on its machine (docs/DEPLOYING.md, "One VM"). The
// name of an incomplete release begins with a dot.
import { lstatSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { attempt, errorCode } from '../../../base/failure.ts';
import { RELEASE_NOTE } from './project.ts';

export interface ReleaseNote {
  /** The name of the release that served before this one; null when there was none. */
  readonly before: string | null;
  /** The name of the folder in `runtime` with the copy of Gatefold that deployed this release. */
  readonly runtime: string;
  /** The ABI version of Node and the platform: `127 linux x64`, or `127 linux x64 dev` with development packages. */
  readonly packages: string;
}

const RELEASE_NAME = /^\d{8}T\d{9}Z$/;

/** Returns the name of a new release: the time in UTC, `20261122T213500123Z`. @param now Unix milliseconds */
export function releaseName(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:.]/g, '');
}

export function releasePath(dir: string, release: string): string {
  return join(dir, 'releases', release);
}

/** Returns the name of the folder that the link `current` leads to; undefined when there is no link. */
export function readCurrent(folder: string): string | undefined {
  try {
    return basename(readlinkSync(join(folder, 'current')));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'EINVAL') throw new Error(`${join(folder, 'current')} is not a link: move it away`);
    throw error;
  }
}

/** Makes the link `current` lead to `target` in one step, so that it is never missing. */
export function setCurrent(folder: string, target: string): void {
  const draft = join(folder, '.current.new');
  rmSync(draft, { force: true });
  symlinkSync(target, draft);
  renameSync(draft, join(folder, 'current'));
}

export function readNote(dir: string, release: string): ReleaseNote | undefined {
  return attempt(() => JSON.parse(readFileSync(join(releasePath(dir, release), RELEASE_NOTE), 'utf8')), undefined);
}

/** Newest first, by their notes: the time in a name comes from a machine whose clock may be wrong. */
export function listReleases(dir: string): string[] {
  const createdAt = (name: string): number =>
    statSync(join(releasePath(dir, name), RELEASE_NOTE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return readdirSync(join(dir, 'releases'))
    .filter((name) => RELEASE_NAME.test(name))
    .map((name) => ({ name, time: createdAt(name) }))
    .sort((a, b) => b.time - a.time)
    .map(({ name }) => name);
}

export function removeRelease(dir: string, release: string): void {
  renameAndRemove(releasePath(dir, release));
}

/** Renames a folder before its removal, so that an interruption leaves no incomplete folder with the old name. */
function renameAndRemove(path: string): void {
  const newPath = join(dirname(path), `.${basename(path)}.gone`);
  // An earlier removal of a folder with the same name may have been interrupted.
  removeFolder(newPath);
  renameSync(path, newPath);
  removeFolder(newPath);
}

export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** Removes incomplete releases, which an interrupted deployment has left. The caller must hold the deployment lock. */
export function removeLeftovers(dir: string): void {
  const releases = join(dir, 'releases');
  for (const name of readdirSync(releases)) if (name.startsWith('.')) removeFolder(join(releases, name));
}

export function pruneReleases(dir: string, keep: number, inUse: ReadonlySet<unknown>): void {
  for (const release of listReleases(dir).slice(keep)) if (!inUse.has(release)) removeRelease(dir, release);
}

/** Milliseconds. A younger copy stays, because another deployment may have sent it and may wait for the lock. */
const MIN_COPY_AGE = 3_600_000;

/** Removes the copies of Gatefold that nothing uses. @param runningCopy the path of the copy that the service runs */
export function pruneCopies(dir: string, runningCopy: string): void {
  const runtime = join(dir, 'runtime');
  const usedNames = listReleases(dir).map((release) => readNote(dir, release)?.runtime);
  // Without its note, a release may use any copy, so all of them stay.
  if (usedNames.includes(undefined)) return;
  const inUse = new Set([...usedNames, readCurrent(runtime), basename(runningCopy)]);
  for (const name of readdirSync(runtime)) {
    const path = join(runtime, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    const isOld = stat !== undefined && stat.mtimeMs <= Date.now() - MIN_COPY_AGE;
    // A removal that was interrupted has left a folder such as `.0.1.0.gone`.
    if (name.endsWith('.gone')) removeFolder(path);
    else if (isOld && stat.isDirectory() && !inUse.has(name)) renameAndRemove(path);
  }
}

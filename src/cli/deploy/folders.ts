// The folder of a project on the machine that it is deployed to:
//
//   current -> releases/20261122T213500123Z     swapped by a rename, so it is never missing
//   releases/                                   a folder each; a name with a dot is not complete
//   runtime/current -> 0.1.0                    Gatefold itself
//   data/ env run restart                       tables and keys; settings; how the service starts, and starts again
import { lstatSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../../base/failure.ts';
import { NOTE } from './project.ts';

/** The note in each release. */
export interface Note {
  /** The release that served before it. */
  readonly before: string | null;
  /** The folder of Gatefold in `runtime` that it was deployed with. */
  readonly runtime: string;
  /** The Node and the way in which its packages were installed. */
  readonly packages: string;
}

const RELEASE = /^\d{8}T\d{9}Z$/;

/** Returns a name for a release that is made now. Names sort by time, in every time zone. */
export function releaseName(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:.]/g, '');
}

export function releasePath(dir: string, release: string): string {
  return join(dir, 'releases', release);
}

/** Returns the target's name of the link `current`; undefined where there is none. */
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

/** Returns the releases, the newest first. The clock of this machine decides, because each deployer has its own. */
export function listReleases(dir: string): string[] {
  const made = (name: string): number =>
    statSync(join(releasePath(dir, name), NOTE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return readdirSync(join(dir, 'releases'))
    .filter((name) => RELEASE.test(name))
    .map((name) => ({ name, at: made(name) }))
    .sort((a, b) => b.at - a.at)
    .map(({ name }) => name);
}

/** Removes a release. An interruption leaves a name with a dot, which the next deployment removes. */
export function removeRelease(dir: string, release: string): void {
  const path = releasePath(dir, release);
  const gone = join(dirname(path), `.${release}.gone`);
  renameSync(path, gone);
  rmSync(gone, { recursive: true, force: true });
}

/** Removes what an interrupted deployment has left. Only the holder of the lock may call it. */
export function removeLeftovers(dir: string): void {
  const releases = join(dir, 'releases');
  for (const name of readdirSync(releases))
    if (name.startsWith('.')) rmSync(join(releases, name), { recursive: true, force: true });
}

/** Keeps the `keep` newest releases, and each one that is in `inUse`. */
export function prune(dir: string, keep: number, inUse: ReadonlySet<string>): void {
  for (const release of listReleases(dir).slice(keep)) if (!inUse.has(release)) removeRelease(dir, release);
}

/** Milliseconds for which a Gatefold stays in any case: a deployment may have brought it, and wait for the lock. */
const YOUTH = 3_600_000;

/**
 * Removes each Gatefold that neither a release, nor the next start, nor the service uses.
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
    if (isUsed || !stat.isDirectory() || stat.mtimeMs > Date.now() - YOUTH) continue;
    // An interruption leaves a name that no version has.
    const gone = name.endsWith('.gone') ? path : `${path}.gone`;
    renameSync(path, gone);
    rmSync(gone, { recursive: true, force: true });
  }
}

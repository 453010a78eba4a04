// PUBLIC_DIR can be a link that a deployment swaps. A page that was open before asks for the scripts of the release
// before. So the real path of that release is remembered, and its files are served that have a name of their own for
// each content: those that the manifest of its build lists.
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../base/failure.ts';
import { type FileState, isSameState, stateOf } from '../../base/files/open-file.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { type Fields, isObject, parseObject } from '../../base/values.ts';
import { writeWholeFile } from '../../base/whole-file.ts';

/** Where Vite writes the list of the files of a build (`build.manifest: true`). */
const MANIFEST = '.vite/manifest.json';
/** The file in DATA_DIR that has the real paths of the current release and of the one before. */
const REMEMBERED = 'public-releases.json';

const NONE: ReadonlySet<string> = new Set();

/** @param whyNot returns why a folder may not be served; then nothing is */
export function createReleases(dir: string, dataDir: string, whyNot: (path: string) => string | undefined, log: Log) {
  let state: FileState | undefined;
  let root: string | undefined;
  let earlierRoot: string | undefined;
  const manifests = new Map<string, { readonly state: FileState | undefined; readonly names: ReadonlySet<string> }>();

  /** Returns the real path of the folder; undefined while there is none. */
  function current(): string | undefined {
    const newState = stateOf(dir);
    if (newState !== undefined && state !== undefined && isSameState(newState, state)) return root;
    const isSameFolder = newState?.ino === state?.ino && newState?.dev === state?.dev;
    state = newState;
    const path = newState?.isDirectory() === true ? realpathSync.native(dir) : undefined;
    // The time of a folder changes with its files, too. A folder that was renamed keeps its inode.
    if (isSameFolder && path === root) return root;
    const last = root;
    root = undefined;
    if (path === undefined) return undefined;
    const reason = whyNot(path);
    if (reason !== undefined) {
      log.error('public-dir-refused', { dir: path, error: reason, effect: 'no file is served' });
      return undefined;
    }
    root = path;
    manifests.clear();
    earlierRoot = rememberRelease(dataDir, root, last);
    return root;
  }

  function namesIn(folder: string): ReadonlySet<string> {
    const path = join(folder, MANIFEST);
    const newState = stateOf(path);
    const known = manifests.get(folder);
    if (known !== undefined && isSame(known.state, newState)) return known.names;
    const names = newState === undefined ? NONE : readManifest(path);
    // A manifest that cannot be read for now, because the descriptors ran out, is read again at the next request.
    if (names !== undefined) manifests.set(folder, { state: newState, names });
    return names ?? NONE;
  }

  return {
    current,
    /** Returns the folders that may have a file, the current one first. */
    *rootsFor(segments: readonly string[]): Generator<string> {
      const now = current();
      if (now !== undefined) yield now;
      // A folder above has a new name. That changes nothing of the folder itself.
      if (now !== undefined && stateOf(now) === undefined) {
        state = undefined;
        const renamed = current();
        if (renamed !== undefined) yield renamed;
      }
      if (earlierRoot === undefined || earlierRoot === now || segments.length === 0) return;
      if (namesIn(earlierRoot).has(segments.join('/'))) yield earlierRoot;
    },
    /** Says whether the build gives another name to the file when its content changes. */
    isImmutable: (folder: string, name: string): boolean => namesIn(folder).has(name),
  };
}

function isSame(one: FileState | undefined, other: FileState | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isSameState(one, other);
}

/** Returns the files with a hash in their names: scripts, styles and assets; undefined when it cannot be read. */
function readManifest(path: string): ReadonlySet<string> | undefined {
  const text = attempt(() => readFileSync(path, 'utf8'), undefined);
  if (text === undefined) return undefined;
  const entries = Object.values(parseObject(text) ?? {}).filter(isObject);
  const values = entries.flatMap(({ file, css, assets }) => [file, css, assets].flat());
  return new Set(values.filter((value) => typeof value === 'string'));
}

/**
 * Notes the current release for later processes.
 *
 * @param last the release that this process has served before
 * @returns the release before the current one, if there was one
 */
function rememberRelease(dataDir: string, current: string, last: string | undefined): string | undefined {
  const path = join(dataDir, REMEMBERED);
  // Without the file, no other process has seen a release before.
  const known: Fields = attempt(() => parseObject(readFileSync(path, 'utf8')), undefined) ?? { current: last };
  const earlier = known.current === current ? known.earlier : known.current;
  const before = typeof earlier === 'string' ? earlier : undefined;
  const note = `${JSON.stringify({ current, earlier: before })}\n`;
  const write = () => {
    makeFolder(dataDir, 0o700);
    writeWholeFile(path, note);
  };
  // Without the note, only a page that was open over a restart lacks its scripts.
  if (known.current !== current) attempt(write, undefined);
  return before;
}

// PUBLIC_DIR can be a link that a deployment swaps. A page that was open before asks for the scripts of the release
// before. So the real path of that release is remembered, and its files are served that have a name of their own for
// each content: those that the manifest of its build lists.
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type FileState, isSameState, stateOf } from '../../base/files/open-file.ts';
import type { Log } from '../../base/log.ts';
import { isObject, parseObject } from '../../base/values.ts';
import { writeWholeFile } from '../../base/whole-file.ts';

export interface Releases {
  /** The real path of the folder; undefined while there is none. */
  current(): string | undefined;
  /** Returns the folders that may have a file, the current one first. */
  rootsFor(segments: readonly string[]): Iterable<string>;
  /** Says whether the build gives another name to the file when its content changes. */
  isImmutable(root: string, name: string): boolean;
}

/** Where Vite writes the list of the files of a build (`build.manifest: true`). */
const MANIFEST = '.vite/manifest.json';
/** The file in DATA_DIR that has the real paths of the current release and of the one before. */
const REMEMBERED = 'public-releases.json';

const NONE: ReadonlySet<string> = new Set();

/** @param whyNot returns why a folder may not be served; then nothing is */
export function createReleases(
  dir: string,
  dataDir: string,
  whyNot: (path: string) => string | undefined,
  log: Log,
): Releases {
  let state: FileState | undefined;
  let root: string | undefined;
  let earlierRoot: string | undefined;
  const manifests = new Map<string, { readonly state: FileState | undefined; readonly names: ReadonlySet<string> }>();

  function current(): string | undefined {
    const newState = stateOf(dir);
    if (newState !== undefined && state !== undefined && isSameState(newState, state)) return root;
    const isSameFolder = newState?.ino === state?.ino && newState?.dev === state?.dev;
    state = newState;
    const path = newState?.isDirectory() === true ? realpathSync.native(dir) : undefined;
    // The time of a folder changes with its files, too. A folder that was renamed keeps its inode.
    if (isSameFolder && path === root) return root;
    root = undefined;
    if (path === undefined) return undefined;
    const reason = whyNot(path);
    if (reason !== undefined) {
      log.error('public-dir-refused', { dir: path, error: reason, effect: 'no file is served' });
      return undefined;
    }
    root = path;
    manifests.clear();
    earlierRoot = rememberRelease(join(dataDir, REMEMBERED), root);
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
    *rootsFor(segments) {
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
    isImmutable: (folder, name) => namesIn(folder).has(name),
  };
}

function isSame(one: FileState | undefined, other: FileState | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isSameState(one, other);
}

/** Returns the files with a hash in their names: scripts, styles and assets; undefined when it cannot be read. */
function readManifest(path: string): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  try {
    for (const entry of Object.values(parseObject(readFileSync(path, 'utf8')) ?? {})) {
      if (!isObject(entry)) continue;
      for (const value of [entry.file, entry.css, entry.assets].flat()) if (typeof value === 'string') names.add(value);
    }
    return names;
  } catch {
    return undefined;
  }
}

/** Notes the current release for later processes. @returns the release before it, if there was one */
function rememberRelease(path: string, current: string): string | undefined {
  let known: Record<string, unknown> = {};
  try {
    known = parseObject(readFileSync(path, 'utf8')) ?? {};
  } catch {
    // No release was seen before.
  }
  const earlier = known.current === current ? known.earlier : known.current;
  const before = typeof earlier === 'string' ? earlier : undefined;
  if (known.current !== current) {
    try {
      writeWholeFile(path, `${JSON.stringify({ current, earlier: before })}\n`);
    } catch {
      // Without the note, only a page that was open over a restart lacks its scripts.
    }
  }
  return before;
}

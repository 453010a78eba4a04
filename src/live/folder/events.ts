// File events of the watched folders. An event only brings the next poll forward, and the poll finds the change. Events
// are lost on network disks, and when a link or a mounted volume is swapped. So polls also run without events.
import { type FSWatcher, watch } from 'node:fs';
import { attempt } from '../../base/failure.ts';
import { statOf } from '../../base/fingerprint.ts';
import { CODE_FILE } from './snapshot.ts';

/** Maximum number of folders to watch. By default, Linux allows each user at least 8,192 watches. */
const MAX_FOLDERS = 1000;

/** @param onEvent called when a code file, or a file that the event does not name, may have changed */
export function createFolderEvents(onEvent: () => void) {
  /** By path. A folder that cannot be watched has no watcher. */
  const watchedFolders = new Map<string, { readonly identity: string; readonly watcher: FSWatcher | undefined }>();

  /** Watches exactly these folders. @returns whether a folder is new, so that no event has reported its changes yet */
  function follow(folders: ReadonlySet<string>): boolean {
    for (const [path, { identity, watcher }] of watchedFolders) {
      if (folders.has(path) && identityOf(path) === identity) continue;
      watcher?.close();
      watchedFolders.delete(path);
    }
    const added = [...folders].filter((path) => !watchedFolders.has(path));
    for (const path of added) {
      const watcher = watchedFolders.size < MAX_FOLDERS ? open(path) : undefined;
      watchedFolders.set(path, { identity: identityOf(path), watcher });
    }
    return added.length > 0;
  }

  function open(path: string): FSWatcher | undefined {
    const onChange = (_: unknown, name: string | null) => {
      if (name === null || CODE_FILE.test(name)) onEvent();
    };
    // Fails when the user has no watch left, or the folder is gone.
    const watcher = attempt(() => watch(path, { persistent: false }, onChange), undefined);
    return watcher?.on('error', () => watcher.close());
  }

  return {
    follow,
    close(): void {
      for (const { watcher } of watchedFolders.values()) watcher?.close();
      watchedFolders.clear();
    },
  };
}

/** A folder that is removed and created again often gets the inode number of the old one, but not its birth time. */
function identityOf(path: string): string {
  const stat = statOf(path);
  return stat === undefined ? '' : `${stat.dev} ${stat.ino} ${stat.birthtimeMs}`;
}

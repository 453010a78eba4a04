// File events of the watched folders. An event only brings the next poll forward, and the poll finds the change. Polls
// also run without events, because events are lost when a link or a mounted volume is swapped.
import { type FSWatcher, statfsSync, watch } from 'node:fs';
import { CODE_FILE } from './snapshot.ts';

export interface FolderEvents {
  /**
   * Watches exactly these folders from now on.
   *
   * @param folders path → identity; a new folder at the same path has another identity
   * @returns whether a folder is new, so that no event has reported the changes in this folder before the call
   */
  follow(folders: ReadonlyMap<string, string>): boolean;
  /** Whether every change in these folders causes an event. */
  isTrusted(): boolean;
  close(): void;
}

/**
 * Magic numbers (linux/magic.h) of the file systems that only this kernel changes, so every change causes an event. On
 * other file systems (NFS, SMB, FUSE, 9p, shares of a virtual machine), another machine can change a file without an
 * event here.
 */
const LOCAL_FILE_SYSTEMS = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0xf2f52010, // F2FS
  0x2fc12fc1, // ZFS
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
]);
/** Maximum number of folders to watch. By default, Linux allows each user at least 8,192 watches. */
const MAX_FOLDERS = 1000;

interface WatchedFolder {
  readonly identity: string;
  /** Undefined when the folder cannot be watched. */
  readonly watcher: FSWatcher | undefined;
}

/** @param onEvent called when a code file, or a file that the event does not name, may have changed */
export function createFolderEvents(onEvent: () => void): FolderEvents {
  const watchedFolders = new Map<string, WatchedFolder>();

  function follow(folders: ReadonlyMap<string, string>): boolean {
    for (const [path, { identity, watcher }] of watchedFolders) {
      if (folders.get(path) === identity) continue;
      watcher?.close();
      watchedFolders.delete(path);
    }
    const added = [...folders].filter(([path]) => !watchedFolders.has(path));
    for (const [path, identity] of added) {
      watchedFolders.set(path, { identity, watcher: watchedFolders.size < MAX_FOLDERS ? open(path) : undefined });
    }
    return added.length > 0;
  }

  /** Returns undefined also for a folder whose file system does not report every change. */
  function open(path: string): FSWatcher | undefined {
    try {
      if (!LOCAL_FILE_SYSTEMS.has(statfsSync(path).type)) return undefined;
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (name === null || CODE_FILE.test(name)) onEvent();
      });
      watcher.on('error', () => {
        watcher.close();
        const entry = watchedFolders.get(path);
        if (entry?.watcher === watcher) watchedFolders.set(path, { ...entry, watcher: undefined });
      });
      return watcher;
    } catch {
      // The user has no watch left, or the folder is gone.
      return undefined;
    }
  }

  return {
    follow,
    isTrusted: () =>
      watchedFolders.size > 0 && [...watchedFolders.values()].every(({ watcher }) => watcher !== undefined),
    close() {
      for (const { watcher } of watchedFolders.values()) watcher?.close();
      watchedFolders.clear();
    },
  };
}

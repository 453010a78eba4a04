// The mark says that the service has had a service file, whose rules protect it. A file that is missing then is a
// mistake, and not a service without rules: `git checkout`, `rsync --delete` and the swap of a volume remove files for
// a moment. The mark is a file in DATA_DIR, so it outlasts a restart.
import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, describeFailure } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writeWholeFile } from '../../base/whole-file.ts';
import type { GroupLoad } from '../load/group-load.ts';

export type ServiceMark = ReturnType<typeof createServiceMark>;

const SERVICE_MARK = 'service-file.accepted';
const TEXT = `This service has had a service file. Without the file, Gatefold serves nothing.
To serve without rules, write defineService({}) into the file once, or start with --without-service-file.
`;

export function createServiceMark(dataDir: string, log: Log) {
  const path = join(dataDir, SERVICE_MARK);
  let isMarked = hasServiceMark(dataDir);
  let isFailureLogged = false;

  function write(isMarkedNow: boolean): void {
    if (isMarkedNow === isMarked && existsSync(path) === isMarked) return;
    isMarked = isMarkedNow;
    try {
      if (isMarked) {
        makeFolder(dataDir);
        writeWholeFile(path, TEXT, { mode: 0o644 });
      } else rmSync(path, { force: true });
    } catch (error) {
      if (isFailureLogged) return;
      isFailureLogged = true;
      const effect = isMarked
        ? 'a start without service.ts would serve without its rules'
        : 'a start without service.ts serves nothing';
      log.warn('service-mark-not-kept', { file: path, reason: describeFailure(error), effect });
    }
  }

  return {
    /** Whether a folder without a service file must not serve. */
    isSet: () => isMarked,
    /** Called with the load of the service file before its generation serves. An empty definition clears the mark. */
    update(load: GroupLoad | undefined): void {
      if (load?.ok === true) write(load.isEmpty !== true);
    },
    clear: () => write(false),
  };
}

/** Returns whether DATA_DIR has the mark. A folder that this user cannot look into counts as one with the mark. */
export function hasServiceMark(dataDir: string): boolean {
  return attempt(() => statSync(join(dataDir, SERVICE_MARK), { throwIfNoEntry: false }) !== undefined, true);
}

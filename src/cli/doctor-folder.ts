// What the doctor says of the controllers folder: whether it can be read, who may write to it, which files are no
// controllers although they look it, which do not load, and which methods are no operations.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../base/config.ts';
import { WRITABLE_BY_EVERYONE } from '../groups/naming.ts';
import type { CommandIo } from './command.ts';
import type { Report } from './findings.ts';
import { inspectFolder, type LoadedGroup, listOrRefuse } from './inspection.ts';
import { findLookAlikes } from './look-alikes.ts';
import { findShadowed } from './route-list.ts';

export interface FolderCheck {
  readonly settings: Settings;
  readonly io: CommandIo;
  readonly folder: Report;
  readonly controllers: Report;
}

/** The groups, loaded or not; undefined when nothing can be said of them. */
export async function checkFolder({ settings, io, folder, controllers }: FolderCheck): Promise<readonly LoadedGroup[] | undefined> {
  const dir = settings.controllersDir;
  try {
    const files = listOrRefuse(dir);
    checkWriters([dir, ...Array.from(files.values(), (file) => join(dir, file))], folder);
    folder('note', `${dir} has ${files.size} ${files.size === 1 ? 'controller' : 'controllers'}`);
    for (const { file, reason, onPurpose } of findLookAlikes(dir)) {
      controllers(onPurpose ? 'note' : 'warning', `it is no controller: ${reason}`, join(dir, file));
    }
    const { groups, faults } = await inspectFolder(settings, io);
    for (const group of groups) reportGroup(group, controllers);
    for (const { reason, at } of faults) controllers('wrong', `it throws outside of any request: ${reason}`, at);
    for (const { verb, path, operation, row } of findShadowed(groups)) {
      controllers('warning', `${verb} ${path} never reaches ${operation}: the explicit route to ${row.target} takes it`);
    }
    return groups;
  } catch (error) {
    folder('wrong', (error as Error).message);
    return undefined;
  }
}

/** Whoever can write here runs code as the user of the service. */
function checkWriters(paths: readonly string[], report: Report): void {
  for (const path of paths) {
    const { mode } = statSync(path);
    if ((mode & WRITABLE_BY_EVERYONE) !== 0)
      report('wrong', 'every user of this machine can write to it, and so change what the service runs', path);
    else if ((mode & 0o020) !== 0) report('note', 'its group can write to it, and so change what the service runs', path);
  }
}

function reportGroup({ ok, error, at, path, operations, unexposed }: LoadedGroup, report: Report): void {
  if (!ok) return report('wrong', `it does not load: ${error}`, at ?? path);
  if (operations.length === 0) report('warning', 'it has no operation, so every request to it fails', path);
  for (const { name, reason, place } of unexposed) {
    report('note', `${name} is no operation: ${reason}`, place === undefined ? path : `${place.file}:${place.line}`);
  }
}

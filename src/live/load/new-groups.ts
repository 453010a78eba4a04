// Groups whose files came after the load of the folder. A process that already serves imports them. A new group answers
// only when the supervisor admits it (live/supervisor/may-serve.ts), or at once in a process without a supervisor.
import { join } from 'node:path';
import { refusal } from '../../base/errors.ts';
import { fingerprint } from '../../base/fingerprint.ts';
import type { Log } from '../../base/log.ts';
import type { Group } from '../../groups/operations.ts';
import { type GroupLoad, logNotLoadable } from './group-load.ts';
import { isBeingWritten } from './passing-failures.ts';
import type { Stray } from './stray-service.ts';

/** `loading`: another generation is about to serve the group. `rejected`: its file is in code that was not accepted. */
export type Admission = 'admitted' | 'failed' | 'loading' | 'rejected';

/** How long a request still waits for a generation. All questions of one request share it. */
export interface Patience {
  milliseconds: number;
}

export interface GroupOutcome {
  readonly load: GroupLoad;
  readonly loaded?: Group;
}

export interface NewGroupsOptions {
  readonly dir: string;
  readonly log: Log;
  /** Asks whether a group may answer. `admitted` means that `importNew` and `publishNew` were called before. */
  readonly admit?: ((group: string, patience: Patience) => Promise<Admission>) | undefined;
  readonly onImporting?: ((file: string) => void) | undefined;
  readonly fileOf: (group: string) => string | undefined;
  readonly published: (group: string) => Group | undefined;
  /** Returns why a file does not load; undefined when it was not tried, or has changed since. */
  readonly brokenReason: (file: string) => string | undefined;
  readonly loadOne: (group: string, file: string) => Promise<GroupOutcome>;
  readonly publish: (group: Group) => void;
  /** Finds a file that sets rules which nothing applies. */
  readonly findStray: () => Promise<Stray | undefined>;
}

/** Maximum number of imports of a file that is still being written. Then the request for its group is refused. */
const MAX_IMPORTS = 10;
/** Milliseconds for which a request waits for a generation, besides the import itself. */
const MAX_WAIT = 2000;
/** Maximum number of questions whether one request may be answered by a new group. */
const MAX_QUESTIONS = 4;
/** Milliseconds after which a request asks no more: an answer about an import that hangs takes 14 s. */
const MAX_ASKING = 20_000;
const REJECTED =
  'the newest generation was rejected, so no new file of the folder serves: correct what the log names as generation-rejected';

export function createNewGroups(options: NewGroupsOptions) {
  const { dir, log, admit = importAndPublish, onImporting, fileOf, published, brokenReason, loadOne } = options;
  const pendingImports = new Map<string, Promise<GroupLoad | undefined>>();
  /** The groups that do not answer yet, or did not load. */
  const outcomes = new Map<string, GroupOutcome>();

  /** Returns the group when it answers. @throws HttpError GROUP_NOT_LOADABLE or GROUP_LOADING */
  async function find(group: string): Promise<Group | undefined> {
    const patience = { milliseconds: MAX_WAIT };
    const begun = performance.now();
    for (let questions = 0; questions < MAX_QUESTIONS && performance.now() - begun < MAX_ASKING; questions++) {
      const file = fileOf(group);
      if (file === undefined) return undefined;
      const reason = brokenReason(file);
      if (reason !== undefined) throw notLoadable(file, reason);
      const admission = await admit(group, patience);
      const answering = published(group);
      if (answering !== undefined) return answering;
      if (admission === 'loading') break;
      if (admission === 'rejected') throw notLoadable(file, REJECTED);
      // The import can also have failed in another worker. Then this worker has no error, and asks once more.
      const { load } = outcomes.get(group) ?? {};
      if (load?.error !== undefined) throw notLoadable(file, load.error);
    }
    throw refusal('GROUP_LOADING', undefined, { headers: { 'Retry-After': '1' } });
  }

  /** Imports a group, which then waits for `publishNew`. Returns undefined when there is no such file. */
  function importNew(group: string): Promise<GroupLoad | undefined> {
    const importing = pendingImports.get(group) ?? importInPlace(group).finally(() => pendingImports.delete(group));
    pendingImports.set(group, importing);
    return importing;
  }

  async function importInPlace(group: string): Promise<GroupLoad | undefined> {
    outcomes.delete(group);
    for (let attempt = 1; ; attempt++) {
      const file = fileOf(group);
      const earlierFingerprint = file === undefined ? 'absent' : fingerprint(join(dir, file));
      if (file === undefined || earlierFingerprint === 'absent') return undefined;
      if (published(group) !== undefined) return { group, file, ok: true };
      onImporting?.(file);
      const outcome = await loadUnlessStray(group, file);
      const { load } = outcome;
      if (!load.ok && attempt < MAX_IMPORTS && (await isBeingWritten(join(dir, file), earlierFingerprint))) continue;
      outcomes.set(group, outcome);
      if (!load.ok) logNotLoadable(log, load);
      return load;
    }
  }

  async function loadUnlessStray(group: string, file: string): Promise<GroupOutcome> {
    const stray = await options.findStray();
    if (stray === undefined) return loadOne(group, file);
    const error = `${stray.file}: ${stray.reason}`;
    return { load: { group, file, ok: false, code: 'INVALID_SERVICE_FILE', error } };
  }

  /** Lets a group that `importNew` has imported answer requests. */
  function publishNew(group: string): void {
    const loaded = outcomes.get(group)?.loaded;
    outcomes.delete(group);
    if (loaded !== undefined) options.publish(loaded);
  }

  async function importAndPublish(group: string): Promise<Admission> {
    const load = await importNew(group);
    if (load?.ok !== true) return 'failed';
    publishNew(group);
    return 'admitted';
  }

  return { find, importNew, publishNew };
}

export function notLoadable(file: string, reason: string): Error {
  return refusal('GROUP_NOT_LOADABLE', undefined, { cause: errorOf({ file, error: reason }) });
}

/** Returns why a file does not load. A reason that has a line begins with the file. */
export function errorOf({ file, error = '' }: Pick<GroupLoad, 'file' | 'error'>): Error {
  return new Error(error.startsWith(`${file}:`) ? error : `${file}: ${error}`);
}

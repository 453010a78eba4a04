// The outcome of a load, as workers report it to the supervisor, and the log lines of a failed load.
import type { LoadFailureFacts } from '../../base/events.ts';
import { SERVICE } from '../../base/group-name.ts';
import type { LoadErrorCode } from '../../base/load-refusal.ts';
import type { Log } from '../../base/log.ts';
import type { TaskFacts } from '../tasks/task.ts';
import type { Place } from './load-error.ts';

/** The files to load: the same in all workers of a generation. */
export interface FileSelection {
  /** The names of the files in the folder. A file that no longer exists is skipped. */
  readonly files: readonly string[];
  /** By file name: why the file must not be imported. An earlier import did not end, or has ended its process. */
  readonly skip: ReadonlyMap<string, string>;
  /** Whether a folder without a service file must not serve, because the service has had such a file. */
  readonly needsService?: boolean;
  /** Multiplies LOAD_TIMEOUT, after a load that was out of time. */
  readonly patience?: number;
}

/** A hint for the author of an operation, such as `created: its source is not followed`. */
export interface Note {
  readonly event: 'method-ignored' | 'operation-unchecked' | 'operation-undocumented' | 'result-unfiltered';
  readonly reason: string;
}

export interface GroupLoad extends Place {
  readonly group: string;
  /** The name of the file, relative to the folder. */
  readonly file: string;
  readonly ok: boolean;
  /** Set, as `error` is, when the file did not load. */
  readonly code?: LoadErrorCode;
  /** One line. */
  readonly error?: string;
  /** The names of the operations; absent unless `GroupsOptions.reportsOperations` is true. */
  readonly operationNames?: readonly string[];
  readonly notes?: readonly Note[];
  /** How many tools for agents (MCP) the group has; absent for a group without tools. */
  readonly tools?: number;
  readonly hung?: boolean;
  /** Whether subfolders hold groups. Only in the load of the service file. */
  readonly folders?: boolean;
  /** Whether the service file sets nothing: `defineService({})`. Only in the load of the service file. */
  readonly isEmpty?: boolean;
  /** Whether the service file has `start`, and its tasks. Only in the load of the service file. */
  readonly hasStart?: boolean;
  readonly tasks?: readonly TaskFacts[];
}

export function logNotLoadable(log: Log, load: GroupLoad): void {
  if (load.group === SERVICE) log.error('service-not-loadable', loadFailureFacts(load));
  else log.error('group-not-loadable', loadFailureFacts(load));
}

export function loadFailureFacts({ group, file, code, error, at, column }: GroupLoad): LoadFailureFacts {
  return { group, file, code, error, at, column };
}

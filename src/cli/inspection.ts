// Loads the controllers folder in another process, so that a controller that exits, blocks or fills the memory does not
// harm the command. When a controller does so, the folder is loaded again without that controller's file.
import { fork, type StdioOptions } from 'node:child_process';
import { describeFailure } from '../base/failure.ts';
import type { Settings } from '../base/settings.ts';
import type { ContractOutline } from '../contract/outline.ts';
import type { Declarations } from '../docs/declarations.ts';
import type { OpenApiDocument } from '../docs/openapi.ts';
import type { GroupLoad } from '../groups/group-load.ts';
import { listControllers } from '../groups/naming.ts';
import { entryPath } from '../own-files.ts';
import type { Question, Verdict } from './ask-app.ts';
import { type CommandIo, INSPECT_FOLDER, Refused } from './command.ts';

/** The message that starts the work of the other process. */
export interface Job {
  readonly settings: Settings;
  /** The files that ended or blocked the process in an earlier attempt, each with the reason. */
  readonly skip: readonly (readonly [file: string, reason: string])[];
  readonly loadTimeout: number;
  readonly question?: Question;
  /** Set when the OpenAPI document is wanted. */
  readonly wantsDocument?: true;
  /** Set when the declarations for front ends are wanted. */
  readonly wantsTypes?: true;
}

export interface ListedOperation {
  readonly name: string;
  /** The parts of a request that are checked, or the reason why nothing is checked. */
  readonly contract?: ContractOutline | undefined;
  /** The callers that the operation accepts, in words; undefined when anyone may call it. */
  readonly access?: string | undefined;
}

export interface LoadedGroup extends GroupLoad {
  /** The absolute path of the file. */
  readonly path: string;
  readonly operations: readonly ListedOperation[];
  readonly unexposed: readonly { readonly name: string; readonly reason: string }[];
  /** Set for a strict group, which refuses paths that no operation has: its own routes or the service file say so. */
  readonly strict?: 'routes' | 'service' | undefined;
}

/** The service file of the folder. */
export interface InspectedService extends GroupLoad {
  /** The absolute path of the file. */
  readonly path: string;
  /** The properties that the file sets, in words; undefined when the file does not load. */
  readonly properties?: readonly string[];
  /** Whether the file has `authenticate` but declares no security scheme for users. */
  readonly lacksSchemes?: boolean;
}

export interface Inspection {
  readonly groups: readonly LoadedGroup[];
  /** The service file; undefined when the folder has none. */
  readonly service?: InspectedService | undefined;
  /** Errors outside of any import: in a timer, or in a promise that is not awaited. */
  readonly faults: readonly { readonly reason: string; readonly at?: string }[];
  /** The number of configured identity providers; undefined when their file cannot be read. */
  readonly providers?: number | undefined;
  readonly verdict?: Verdict | undefined;
  readonly document?: OpenApiDocument | undefined;
  readonly declarations?: Declarations | undefined;
}

export type InspectionMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'loading'; readonly file: string }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done'; readonly inspection: Inspection }
  | { readonly kind: 'failed'; readonly message: string };

/** The end of one attempt: the inspection, or the file that ended or blocked the process. */
type Outcome = { readonly inspection: Inspection } | { readonly file: string; readonly reason: string };

/** Milliseconds that one controller may take to load. */
const LOAD_TIMEOUT = 10_000;
/** Milliseconds that the process may take to start. A slow start, with tsx on a busy machine, takes less. */
const BOOT_TIMEOUT = 60_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The settings with secrets. The process that imports the controllers needs none of them. */
const NO_SECRETS = { sessionKey: undefined, store: undefined, storeKeys: [] };

/**
 * @throws Refused when the folder cannot be read or keeps changing, and when the process fails, hangs or ends outside
 *   of an import; Error of the system when the process cannot be started
 */
export async function inspectFolder(
  settings: Settings,
  io: CommandIo,
  wanted: Pick<Job, 'question' | 'wantsDocument' | 'wantsTypes'> = {},
): Promise<Inspection> {
  const files = listOrRefuse(settings.controllersDir);
  const skip = new Map<string, string>();
  // Each further attempt skips one more file.
  while (skip.size <= files.size) {
    const loadTimeout = io.loadTimeout ?? LOAD_TIMEOUT;
    const job: Job = { settings: { ...settings, ...NO_SECRETS }, skip: [...skip], loadTimeout, ...wanted };
    const outcome = await runJob(job, io);
    if ('inspection' in outcome) return outcome.inspection;
    if (skip.has(outcome.file)) break;
    skip.set(outcome.file, outcome.reason);
  }
  throw new Refused('Cannot load the controllers: the folder keeps changing; try again when it does not');
}

/** Returns the files that do not load: the service file and controllers. */
export function brokenFiles({ service, groups }: Inspection): (LoadedGroup | InspectedService)[] {
  return [...(service === undefined ? [] : [service]), ...groups].filter(({ ok }) => !ok);
}

export function listOrRefuse(dir: string): Map<string, string> {
  try {
    return listControllers(dir);
  } catch (error) {
    throw new Refused(`Cannot read the controllers folder ${dir}: ${describeFailure(error)}`);
  }
}

function runJob(job: Job, { env }: CommandIo): Promise<Outcome> {
  // The output of controllers is ignored, because it is not part of the command's answer.
  const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', 'ipc'];
  const child = fork(entryPath('cli'), [INSPECT_FOLDER], { env: { ...env }, stdio });
  return new Promise<Outcome>((resolve, reject) => {
    let loadingFile: string | undefined;
    let result: Inspection | undefined;
    let isHung = false;
    let timer = setTimeout(killHung, BOOT_TIMEOUT);
    for (const signal of SIGNALS) process.once(signal, killBoth);
    child.on('message', (message: InspectionMessage) => {
      clearTimeout(timer);
      timer = setTimeout(killHung, 2 * job.loadTimeout);
      if (message.kind === 'ready') child.send(job, () => {});
      else if (message.kind === 'loading') loadingFile = message.file;
      else if (message.kind === 'loaded') loadingFile = undefined;
      else if (message.kind === 'done') result = message.inspection;
      else reject(new Refused(message.message));
    });
    child.once('error', reject);
    // Node reads the channel to its end before `close`, so the last message is not lost.
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      for (const name of SIGNALS) process.off(name, killBoth);
      if (result !== undefined) return resolve({ inspection: result });
      const ending = isHung
        ? 'it blocks the process'
        : signal === null
          ? `it ended the process with exit code ${code}`
          : `${signal} ended the process`;
      if (loadingFile !== undefined) return resolve({ file: loadingFile, reason: `${ending} while loading` });
      const reason = ending.replace(/^it /, 'the code ');
      reject(new Refused(`Cannot load the controllers in ${job.settings.controllersDir}: ${reason}`));
    });

    /** Ends both processes. A child in an endless loop would not end when its parent does. */
    function killBoth(signal: NodeJS.Signals): void {
      child.kill('SIGKILL');
      process.kill(process.pid, signal);
    }

    function killHung(): void {
      // A child that has sent its result hangs only in its exit, which does no harm.
      isHung = result === undefined;
      child.kill('SIGKILL');
    }
  });
}

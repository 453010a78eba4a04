// Loads the controllers folder in a child process, so that a controller that exits, blocks or fills the memory does not
// harm the command. After such a controller, another child process loads the folder without its file.
import { fork, type StdioOptions } from 'node:child_process';
import { explainFailure } from '../../base/failure.ts';
import { CLOCK_FACTOR } from '../../base/load-clock.ts';
import type { Settings } from '../../base/settings.ts';
import type { ContractOutline } from '../../contract/outline.ts';
import type { Declarations } from '../../documents/declarations.ts';
import type { OpenApiDocument } from '../../documents/openapi.ts';
import type { GroupLoad } from '../../live/load/group-load.ts';
import { listControllers } from '../../live/load/naming.ts';
import { entryPath } from '../../own-files.ts';
import { CommandError, type CommandIo, INSPECT_FOLDER } from './command.ts';

export interface Job {
  readonly settings: Settings;
  /** The files that ended or blocked the process in an earlier attempt. */
  readonly skip: readonly (readonly [file: string, reason: string])[];
  readonly wantsDocument?: true;
  readonly wantsTypes?: true;
  /** The file with made types (contract/made-types.ts); default: the one in the folder of controllers. */
  readonly madeTypes?: string;
}

export interface ListedOperation {
  readonly name: string;
  readonly contract?: ContractOutline | undefined;
  /** The callers that the operation accepts, in words; undefined when anyone may call it. */
  readonly access?: string | undefined;
  /** Whether the operation has a result type, and sends the fields that this type does not declare. */
  readonly sendsAll?: boolean;
}

export interface LoadedFile extends GroupLoad {
  /** The absolute path of the file. */
  readonly path: string;
}

export interface LoadedGroup extends LoadedFile {
  readonly operations: readonly ListedOperation[];
  /** Set for a strict group, which refuses paths that no operation has: its routes or the service file make it so. */
  readonly strict?: 'routes' | 'service' | undefined;
}

export interface Inspection {
  readonly groups: readonly LoadedGroup[];
  readonly service?: LoadedFile | undefined;
  /** The names of the channels that the controllers open when they load. */
  readonly channels: readonly string[];
  /** Errors outside of any import: in a timer, or in a promise that is not awaited. */
  readonly strayErrors: readonly { readonly reason: string; readonly at?: string }[];
  readonly document?: OpenApiDocument | undefined;
  readonly declarations?: Declarations | undefined;
}

/** A message of the child process. `ready` asks for the job, and `loading` comes before the import of a file. */
export type InspectionMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'loading'; readonly file: string }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done'; readonly inspection: Inspection }
  | { readonly kind: 'failed'; readonly message: string };

type Outcome = { readonly inspection: Inspection } | { readonly file: string; readonly reason: string };

/** Milliseconds that the child process may take to start. Even a slow start, with tsx on a busy machine, takes less. */
const BOOT_TIMEOUT = 60_000;
/** The signals that end this process, and with it the child process. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Replaces the settings with secrets. The child process imports the controllers, and needs no secret. */
const NO_SECRETS = { sessionKey: undefined, store: undefined, storeKeys: [] };

/**
 * @throws CommandError when the folder cannot be read or keeps changing, or when the child process fails, hangs or ends
 *   outside of an import; Error of the system when the child process cannot be started
 */
export async function inspectFolder(
  settings: Settings,
  io: CommandIo,
  wanted: Pick<Job, 'wantsDocument' | 'wantsTypes' | 'madeTypes'> = {},
): Promise<Inspection> {
  const files = listOrRefuse(settings.controllersDir);
  const skip = new Map<string, string>();
  // Each further attempt skips one more file.
  for (let attempt = 0; attempt <= files.size; attempt++) {
    const job: Job = { settings: { ...settings, ...NO_SECRETS }, skip: [...skip], ...wanted };
    const outcome = await runJob(job, io);
    if ('inspection' in outcome) return outcome.inspection;
    skip.set(outcome.file, outcome.reason);
  }
  throw new CommandError('Cannot load the controllers: the folder keeps changing; try again when it does not');
}

export function brokenFiles({ service, groups }: Inspection): LoadedFile[] {
  return [...(service === undefined ? [] : [service]), ...groups].filter(({ ok }) => !ok);
}

/** @throws Error of one line when the folder cannot be read */
export function listOrRefuse(dir: string): Map<string, string> {
  return explainFailure(`Cannot read the controllers folder ${dir}`, () => listControllers(dir));
}

function runJob(job: Job, { env }: CommandIo): Promise<Outcome> {
  // The output of controllers is not part of the command's answer.
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
      // The child process gives up an import that is out of time, unless its event loop does not turn.
      timer = setTimeout(killHung, (CLOCK_FACTOR + 1) * job.settings.loadTimeout);
      if (message.kind === 'ready') child.send(job, () => {});
      else if (message.kind === 'loading') loadingFile = message.file;
      else if (message.kind === 'loaded') loadingFile = undefined;
      else if (message.kind === 'done') result = message.inspection;
      else reject(new CommandError(message.message));
    });
    child.once('error', reject);
    // Node reads the channel to its end before `close`, so the last message is not lost.
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      for (const name of SIGNALS) process.off(name, killBoth);
      // A child process that hangs after its result hangs only in its exit.
      if (result !== undefined) return resolve({ inspection: result });
      const exit = signal === null ? `it ended the process with exit code ${code}` : `${signal} ended the process`;
      const ending = isHung ? 'it blocks the process' : exit;
      if (loadingFile !== undefined) return resolve({ file: loadingFile, reason: `${ending} while loading` });
      // Outside of an import, `it` would name no file.
      const reason = ending.replace(/^it /, 'the code ');
      reject(new CommandError(`Cannot load the controllers in ${job.settings.controllersDir}: ${reason}`));
    });

    /** Ends both processes. A child process in an endless loop would not notice the end of its parent. */
    function killBoth(signal: NodeJS.Signals): void {
      child.kill('SIGKILL');
      process.kill(process.pid, signal);
    }

    function killHung(): void {
      isHung = true;
      child.kill('SIGKILL');
    }
  });
}

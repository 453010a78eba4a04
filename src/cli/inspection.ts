// Loads the controllers folder in a process of its own, because that runs foreign code: a controller that ends, blocks
// or fills the process must not take the command with it. Such a file is left out of the next attempt, as the
// supervisor does.
import { fork } from 'node:child_process';
import { describeFailure } from '../base/failure.ts';
import type { Settings } from '../base/settings.ts';
import type { ContractOutline } from '../contract/outline.ts';
import type { OpenApiDocument } from '../docs/openapi.ts';
import { listControllers } from '../groups/naming.ts';
import type { GroupLoad } from '../groups/registry.ts';
import { entryPath } from '../own-files.ts';
import type { Question, Verdict } from './ask-app.ts';
import { type CommandIo, INSPECTION, Refused } from './command.ts';

export interface Job {
  readonly settings: Settings;
  /** File name → reason, of files that ended or blocked the process. */
  readonly skip: readonly (readonly [file: string, reason: string])[];
  readonly loadTimeout: number;
  readonly question?: Question;
  /** The OpenAPI document is wanted. */
  readonly wantsDocument?: true;
}

export interface ListedOperation {
  readonly name: string;
  /** What of its requests is checked, or why nothing is. */
  readonly contract?: ContractOutline | undefined;
}

export interface LoadedGroup extends GroupLoad {
  /** Absolute. */
  readonly path: string;
  readonly operations: readonly ListedOperation[];
  readonly unexposed: readonly { readonly name: string; readonly reason: string }[];
}

export interface Inspection {
  readonly groups: readonly LoadedGroup[];
  /** Thrown outside of any import: in a timer, or a promise that nobody waits for. */
  readonly faults: readonly { readonly reason: string; readonly at?: string }[];
  /** How many identity providers are configured; undefined: their file cannot be read. */
  readonly providers?: number | undefined;
  readonly verdict?: Verdict | undefined;
  readonly document?: OpenApiDocument | undefined;
}

export type FromInspection =
  | { readonly kind: 'ready' }
  | { readonly kind: 'loading'; readonly file: string }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done'; readonly inspection: Inspection }
  | { readonly kind: 'failed'; readonly message: string };

type Outcome = { readonly inspection: Inspection } | { readonly file: string; readonly reason: string };

const LOAD_TIMEOUT = 10_000;
/** Node, a TypeScript loader and a busy machine: this long is not normal. */
const BOOT_TIMEOUT = 60_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @throws Refused when the folder cannot be read, or the process cannot be started */
export async function inspectFolder(
  settings: Settings,
  io: CommandIo,
  wanted: Pick<Job, 'question' | 'wantsDocument'> = {},
): Promise<Inspection> {
  const files = listOrRefuse(settings.controllersDir);
  const skip = new Map<string, string>();
  // Each further try leaves one more file out.
  while (skip.size <= files.size) {
    const job: Job = {
      settings: { ...settings, sessionKey: undefined },
      skip: [...skip],
      loadTimeout: io.loadTimeout ?? LOAD_TIMEOUT,
      ...wanted,
    };
    const outcome = await runJob(job, io);
    if ('inspection' in outcome) return outcome.inspection;
    if (skip.has(outcome.file)) break;
    skip.set(outcome.file, outcome.reason);
  }
  throw new Refused('Cannot load the controllers: the folder changes all the time');
}

export function listOrRefuse(dir: string): Map<string, string> {
  try {
    return listControllers(dir);
  } catch (error) {
    throw new Refused(`Cannot read the controllers folder ${dir}: ${describeFailure(error)}`);
  }
}

function runJob(job: Job, { env }: CommandIo): Promise<Outcome> {
  // What controllers print is none of the command's answer.
  const child = fork(entryPath('cli'), [INSPECTION], { env: { ...env }, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  return new Promise<Outcome>((resolve, reject) => {
    let file: string | undefined;
    let done: Inspection | undefined;
    let hung = false;
    let timer = setTimeout(hang, BOOT_TIMEOUT);
    for (const signal of SIGNALS) process.once(signal, dieTogether);
    child.on('message', (message: FromInspection) => {
      clearTimeout(timer);
      timer = setTimeout(hang, 2 * job.loadTimeout);
      if (message.kind === 'ready') child.send(job, () => {});
      else if (message.kind === 'loading') file = message.file;
      else if (message.kind === 'loaded') file = undefined;
      else if (message.kind === 'done') done = message.inspection;
      else reject(new Refused(message.message));
    });
    child.once('error', reject);
    // The channel is read to its end before this: the last message is not lost.
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      for (const name of SIGNALS) process.off(name, dieTogether);
      if (done !== undefined) return resolve({ inspection: done });
      const how = hung
        ? 'it blocks the process'
        : signal === null
          ? `it ended the process with exit code ${code}`
          : `${signal} ended the process`;
      if (file !== undefined) return resolve({ file, reason: `${how} while loading` });
      reject(
        new Refused(
          `Cannot load the controllers in ${job.settings.controllersDir}: ${how.replace(/^it /, 'the code ')}`,
        ),
      );
    });

    /** A loop without end does not notice that nobody waits for it any more. */
    function dieTogether(signal: NodeJS.Signals): void {
      child.kill('SIGKILL');
      process.kill(process.pid, signal);
    }

    function hang(): void {
      hung = done === undefined;
      child.kill('SIGKILL');
    }
  });
}

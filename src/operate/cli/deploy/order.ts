// The order of the deploying machine, and the answer of the target machine, which runs a copy of the same Gatefold.
import { isObject } from '../../../base/values.ts';
import type { Project } from './project.ts';

/** `gatefold deploy-on-machine ORDER`, with an order as JSON, is the process on the target machine. */
export const DEPLOY_ON_MACHINE = 'deploy-on-machine';

export interface Order
  extends Pick<Project, 'name' | 'controllers' | 'hasTypeScript' | 'hasPage' | 'bytes' | 'closedFolders'> {
  /** `back` makes no release: the release before the current one serves again. */
  readonly action: 'release' | 'back';
  readonly dir: string;
  readonly releaseName: string;
  readonly fileCount: number;
  /** The name of the copy of Gatefold in `DIR/runtime` that runs this order: `0.1.0`, or `0.1.0+5f2a9c0d`. */
  readonly gatefoldCopy: string;
  readonly keep: number;
  readonly setup: boolean;
}

/** One line of the answer: a step that begins, or the result. */
export type Reply = { readonly step: string } | { readonly result: Result };

export interface Result {
  readonly release: string;
  readonly before: string | null;
  /** With `unstarted`, no service runs on the machine. */
  readonly state: 'serving' | 'unstarted' | 'failed';
  readonly current: string;
  /** Why the release does not serve: `controllers/X.ts:3: the reason`. */
  readonly errors: readonly string[];
  readonly notes: readonly string[];
}

/** Returns undefined for anything else than a reply, because a machine can print any JSON. */
export function readReply(value: unknown): Reply | undefined {
  if (!isObject(value)) return undefined;
  if (typeof value.step === 'string') return { step: value.step };
  return isResult(value.result) ? { result: value.result } : undefined;
}

function isResult(value: unknown): value is Result {
  if (!isObject(value)) return false;
  const { release, before, state, current, errors, notes } = value;
  const areTexts = (list: unknown) => Array.isArray(list) && list.every((item) => typeof item === 'string');
  const isKnown = state === 'serving' || state === 'unstarted' || state === 'failed';
  return isKnown && areTexts([release, current, before ?? '']) && areTexts(errors) && areTexts(notes);
}

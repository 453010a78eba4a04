// The order that the deploying machine sends, and the answer of the target machine. Both machines run the same version
// of Gatefold, because the deployment copies its own version to the target.
import type { Project } from './project.ts';

/** The first word on the command line of the process on the target machine. The second word is an order as JSON. */
export const DEPLOY_ON_MACHINE = 'deploy-on-machine';

export interface Order extends Pick<Project, 'name' | 'controllers' | 'hasTypeScript' | 'bytes'> {
  /** `back` makes no release: the release before the current one serves again. */
  readonly action: 'release' | 'back';
  /** The folder of the project on the target machine, as an absolute path. */
  readonly dir: string;
  /** The name of the new release, which is the time of its creation. */
  readonly releaseName: string;
  /** The number of files and links that are sent. When fewer of them, or fewer `bytes`, arrive, the stream was cut. */
  readonly fileCount: number;
  /** The name of the copy of Gatefold in `DIR/runtime` that runs this order: `0.1.0`, or `0.1.0+5f2a9c0d`. */
  readonly gatefoldCopy: string;
  /** The number of newest releases that stay on the machine. */
  readonly keep: number;
  /** Whether the order comes from `gatefold deploy --setup`. */
  readonly setup: boolean;
}

/** One line of the answer: either a step that begins, or the result. */
export type Reply = { readonly step: string } | { readonly result: Result };

export interface Result {
  /** The release that the order was to bring into service. */
  readonly release: string;
  /** The release that served before the order; null when there was none. */
  readonly before: string | null;
  /**
   * The state of the machine after the order:
   * - `serving`: the service serves the release.
   * - `unstarted`: no service runs there.
   * - `failed`: the release does not serve.
   */
  readonly state: 'serving' | 'unstarted' | 'failed';
  /** The release that the link `current` leads to now. */
  readonly current: string;
  /** The reasons why the release does not serve, such as `controllers/X.ts:3: the reason`. */
  readonly errors: readonly string[];
  /** Notes for people, one line each. */
  readonly notes: readonly string[];
}

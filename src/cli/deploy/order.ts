// The order of the machine that deploys, and the answer of the other one. Both run the same version of this package,
// because the deployment has brought it there.

/** The internal first word of the process on the machine that is deployed to. Its second word is an order as JSON. */
export const ON_MACHINE = 'deploy-on-machine';

export interface Order {
  readonly action: 'release' | 'back';
  /** Absolute. */
  readonly dir: string;
  /** The name of the project, which is also the name of its systemd unit. */
  readonly name: string;
  /** The name of the new release: when it was made. */
  readonly release: string;
  /** The number of files in the stream, and the sum of their sizes. A stream that was cut has fewer. */
  readonly files: number;
  readonly bytes: number;
  /** The controllers folder, relative to the release. */
  readonly controllers: string;
  /** Whether a controller is TypeScript. */
  readonly typescript: boolean;
  /** The folder of this package in `DIR/runtime`. */
  readonly runtime: string;
  /** How many releases stay. */
  readonly keep: number;
  readonly setup: boolean;
}

/** A line of the answer: a step that begins, or the result. */
export type Reply = { readonly step: string } | { readonly result: Result };

export interface Result {
  readonly release: string;
  /** The release before. */
  readonly before: string | null;
  /** `unstarted`: no service runs there. `failed`: the release does not serve. */
  readonly state: 'serving' | 'unstarted' | 'failed';
  /** The release that `current` leads to now. */
  readonly current: string | null;
  /** Why the release does not serve: `controllers/X.ts:3: the reason`. */
  readonly errors: readonly string[];
  /** Lines for people. */
  readonly notes: readonly string[];
}

// The words that `gatefold doctor` shares with its checks, so that no check imports the command.
import type { CommandCall } from './command.ts';
import type { Inspection } from './inspection.ts';

export interface Finding {
  /**
   * - `wrong`: something does not work. One such finding makes the exit code 1.
   * - `warning`: it works now, but it may fail soon or is a risk.
   * - `note`: a risk that may be intended.
   */
  readonly level: 'wrong' | 'warning' | 'note';
  readonly topic: string;
  readonly message: string;
  /** `file` or `file:line`. */
  readonly at?: string | undefined;
}

export type Report = (level: Finding['level'], message: string, at?: string) => void;

export interface Installation extends CommandCall {
  readonly inspection: Inspection | Error;
}

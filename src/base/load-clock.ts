// Limits how long the load of a file may take. The limit is processor time, because a machine that is busy, or has a
// small quota, gives a process little of it, and that is no mistake of the file. A load that uses nearly none hangs.
import { readFileSync } from 'node:fs';
import { attempt } from './failure.ts';

/** A load that uses fewer milliseconds of CPU, while the clock passes LOAD_TIMEOUT, hangs. */
const HUNG_BELOW = 50;
/** By the clock, a load may take this many times LOAD_TIMEOUT. */
export const CLOCK_FACTOR = 6;

const ownCpuTime = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Returns the milliseconds of CPU that another process has used. @returns NaN where there is no /proc: not on Linux */
export function cpuTimeOf(pid: number | undefined): number {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'), '');
  const fields = text.split(') ').at(-1)?.split(' ') ?? [];
  // Linux counts in hundredths of a second for every program.
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

export class LoadClock {
  readonly #limit: number;
  readonly #cpuTime: () => number;
  readonly #start: { readonly cpu: number; readonly at: number };
  /** Where the last LOAD_TIMEOUT by the clock began. */
  #part: { readonly cpu: number; readonly at: number };

  /** @param limit LOAD_TIMEOUT in milliseconds */
  constructor(limit: number, cpuTime = ownCpuTime) {
    this.#limit = limit;
    this.#cpuTime = cpuTime;
    this.#part = this.#start = { cpu: cpuTime(), at: performance.now() };
  }

  /**
   * Returns why the load takes too long, or undefined while it has time left.
   *
   * @param advice what the reason of a load that hangs ends with
   */
  check(advice = ''): string | undefined {
    const now = { cpu: this.#cpuTime(), at: performance.now() };
    const isPartOver = now.at - this.#part.at >= this.#limit;
    const isHung = isPartOver && now.cpu - this.#part.cpu < HUNG_BELOW;
    if (isPartOver) this.#part = now;
    const cpu = now.cpu - this.#start.cpu;
    const took = now.at - this.#start.at;
    if (!isHung && !(cpu >= this.#limit) && took < CLOCK_FACTOR * this.#limit) return undefined;
    const text = `the machine gave it ${Number.isNaN(cpu) ? 'an unknown part' : inSeconds(cpu)} of CPU in ${inSeconds(took)}`;
    return isHung ? text + advice : text;
  }
}

const inSeconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;

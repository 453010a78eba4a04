// The times at which a task is due: `every` and `at`. Every machine computes the same times from the plan alone.

/** `every` is in milliseconds. `at` is the minute of the day in the time zone. */
export type Plan = { readonly every: number } | { readonly at: number; readonly timeZone: string };

/** Returns a plan as people read it: `every 300 s` or `at 03:00 Europe/Berlin`. */
export function planText(plan: Plan | undefined): string {
  if (plan === undefined) return 'all the time';
  if ('every' in plan) return `every ${plan.every / 1000} s`;
  const [hour, minute] = [Math.floor(plan.at / 60), plan.at % 60].map((part) => String(part).padStart(2, '0'));
  return `at ${hour}:${minute} ${plan.timeZone}`;
}

export interface Due {
  readonly dueAt: number;
  /** How many times have passed, `dueAt` included. */
  readonly count: number;
}

const DAY = 86_400_000;
/** Milliseconds. Older times are not counted: a clock without a battery begins in 1970. */
const LONGEST_LOOK_BACK = 400 * DAY;

/** Returns the first time after `after`. All times here are Unix milliseconds. */
export function nextDue(plan: Plan, after: number): number {
  if ('every' in plan) return (Math.floor(after / plan.every) + 1) * plan.every;
  const today = Math.floor((after + offsetAt(after, plan.timeZone)) / DAY) * DAY;
  for (let day = today - DAY; ; day += DAY) {
    const instant = instantOf(day + plan.at * 60_000, plan.timeZone);
    if (instant > after) return instant;
  }
}

/** Returns the latest time that is after `after` and has passed; undefined when there is none. */
export function latestDue(plan: Plan, after: number, now: number): Due | undefined {
  if ('every' in plan) {
    const dueAt = Math.floor(now / plan.every) * plan.every;
    return dueAt <= after ? undefined : { dueAt, count: dueAt / plan.every - Math.floor(after / plan.every) };
  }
  let due: Due | undefined;
  let next = nextDue(plan, Math.max(after, now - LONGEST_LOOK_BACK));
  for (; next <= now; next = nextDue(plan, next)) due = { dueAt: next, count: (due?.count ?? 0) + 1 };
  return due;
}

/**
 * Returns the instant of a local time, which is given as if its zone were UTC. A time that a change of the clocks skips
 * is as long after midnight as on other days. The first counts where a time comes twice.
 */
function instantOf(local: number, timeZone: string): number {
  const [before, after] = [offsetAt(local - DAY, timeZone), offsetAt(local + DAY, timeZone)];
  const candidates = [local - Math.max(before, after), local - Math.min(before, after)];
  return candidates.find((instant) => instant + offsetAt(instant, timeZone) === local) ?? local - before;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns how many milliseconds the clocks of a zone are ahead of UTC. @throws RangeError for an unknown zone */
export function offsetAt(instant: number, timeZone: string): number {
  const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('en-US', { ...fields, timeZone, hourCycle: 'h23' });
  formats.set(timeZone, format);
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
  const part = (name: keyof typeof fields) => parts.get(name) ?? 0;
  const shown = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'));
  return shown - Math.floor(instant / 60_000) * 60_000;
}

// The tasks of a service file: `background`. A task that is not understood is an error, so the file does not load.
import { attempt } from '../../base/failure.ts';
import { TIME_UNITS } from '../../base/time.ts';
import { type Fields, isBoolean, isPlainFunction, isPlainObject } from '../../base/values.ts';
import { offsetAt, type Plan } from './plan.ts';

/** The part of a task that the supervisor knows. */
export interface TaskFacts {
  readonly name: string;
  /** Undefined for a task that runs all the time. */
  readonly plan?: Plan | undefined;
  readonly catchUp: boolean;
}

export interface Task extends TaskFacts {
  readonly run: (params: object) => unknown;
}

const FORM =
  "a function, { every: '5m', run } or { at: '03:00', timeZone: 'Europe/Berlin', run }; catchUp: false may follow";
const KEYS: ReadonlySet<PropertyKey> = new Set(['every', 'at', 'timeZone', 'catchUp', 'run']);
const MAX_EVERY = 31 * 86_400_000;

/** @throws Error whose message begins with the name of the task and a colon */
export function readTasks(background: object): ReadonlyMap<string, Task> {
  const tasks = new Map<string, Task>();
  for (const [name, value] of Object.entries(background)) {
    const refuse = (mistake: string): never => {
      throw new Error(`${name}: ${mistake}`);
    };
    // The log of `start` has the name `start`.
    if (!/^[A-Za-z][\w-]{0,63}$/.test(name) || name === 'start')
      refuse('a name has up to 64 letters, digits, - and _, begins with a letter, and is not start');
    if (isPlainFunction(value)) {
      tasks.set(name, { name, run: value, catchUp: true });
      continue;
    }
    if (!isPlainObject(value)) return refuse(`it must be ${FORM}`);
    const fields = { ...value };
    const wrongKey = Reflect.ownKeys(value).find((key) => !KEYS.has(key) || fields[String(key)] === undefined);
    if (wrongKey !== undefined) refuse(`${String(wrongKey)} is no property, or it has no value; it must be ${FORM}`);
    const { run, catchUp = true } = fields;
    if (!isPlainFunction(run)) refuse('run must be a function ({ signal, log, dueAt }) => …');
    if (!isBoolean(catchUp)) refuse('catchUp must be true or false');
    tasks.set(name, { name, run: run as Task['run'], plan: readPlan(fields, refuse), catchUp: catchUp === true });
  }
  return tasks;
}

function readPlan({ every, at, timeZone }: Fields, refuse: (mistake: string) => never): Plan {
  if ((every === undefined) === (at === undefined)) refuse('write either every or at');
  if (every !== undefined) {
    if (timeZone !== undefined) refuse('timeZone belongs to at: leave it out beside every');
    const [, count, unit = ''] = /^(\d{1,7})([smhd])$/.exec(String(every)) ?? [];
    const duration = Number(count) * (TIME_UNITS[unit] ?? Number.NaN);
    if (typeof every === 'string' && duration > 0 && duration <= MAX_EVERY) return { every: duration };
    refuse("every must be a time such as '30s', '5m', '2h' or '1d', from 1s to 31d");
  }
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(String(at)) ?? [];
  if (typeof at !== 'string' || hour === undefined) refuse("at must be a time such as '03:00'");
  if (timeZone !== undefined && !isTimeZone(timeZone))
    refuse("timeZone must be a name of the IANA database, such as 'Europe/Berlin'");
  return { at: Number(hour) * 60 + Number(minute), timeZone: (timeZone as string | undefined) ?? 'UTC' };
}

function isTimeZone(name: unknown): boolean {
  return attempt(() => typeof name === 'string' && Number.isFinite(offsetAt(0, name)), false);
}

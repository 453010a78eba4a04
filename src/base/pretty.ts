// The log for people: a line of JSON becomes a line for the terminal, a stack a list with the controller's places
// first, and a file that does not load a piece of its source with a caret. It invents nothing: what it shows stands in
// the line or in the file.
import { basename } from 'node:path';
import { isOwnFile } from '../own-files.ts';
import { type Ink, type Paint, plain, shortPlace } from './ink.ts';
import type { LogFields } from './log.ts';
import type { LogWriter } from './log-writer.ts';
import { readSourceOrEmpty } from './source-file.ts';

interface Line {
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface PrettyOptions {
  readonly ink: Ink;
  /** Paths below it are shown without it. */
  readonly cwd: string;
  /** How wide the terminal is, where that is known. */
  readonly columns?: () => number | undefined;
}

/** Writes each line as it is for people. */
export function createPrettyWriter(writer: LogWriter, options: PrettyOptions): LogWriter {
  const write = (line: string) => writer.write(prettyLine(line, options));
  return { ...writer, write };
}

/** @param line with its line feed, as is the result; what is no JSON stays as it is */
export function prettyLine(line: string, options: PrettyOptions): string {
  let fields: Line;
  try {
    fields = JSON.parse(line) as Line;
  } catch {
    return line;
  }
  const [first, ...more] = (BODIES[fields.event] ?? anyEvent)(fields, options);
  if (first === undefined) return '';
  return [`${options.ink.dim(clock(fields.time))}  ${first}`, ...more.map((text) => MARGIN + text), ''].join('\n');
}

const MARGIN = ' '.repeat(10);

/** The first line of what is shown, and those below it; none: nobody wants to know. */
type Body = (line: Line, options: PrettyOptions) => string[];

const BODIES: Readonly<Record<string, Body>> = {
  request({ method, path, status, duration_ms, credential }, { ink }) {
    const paint = statusPaint(Number(status), ink);
    const took = `${Number(duration_ms).toFixed(1)} ms`;
    const who = typeof credential === 'string' && credential !== '' ? `  ${ink.dim(plain(credential))}` : '';
    return [
      `${String(method).padEnd(7)} ${plain(String(path)).padEnd(40)} ${paint(String(status))} ${took.padStart(10)}${who}`,
    ];
  },
  'request-failed'({ page, operation, error_code, request_id, ...thrown }, options) {
    const { ink } = options;
    const what = [page, operation].filter((name) => name !== '').join('.');
    const named = [ink.bold(plain(what)), plain(String(error_code)), ink.dim(`request ${plain(String(request_id))}`)];
    const head = `${ink.red('error')}   ${named.slice(what === '' ? 1 : 0).join('  ')}`;
    // Why the group does not load has been said.
    return error_code === 'GROUP_NOT_LOADABLE' ? [head] : [head, ...describeThrown(thrown, options)];
  },
  'generation-serving'({ cause, groups, took_ms }, { ink, cwd }) {
    const what =
      cause === 'start'
        ? `${String(groups)} ${groups === 1 ? 'group' : 'groups'}`
        : plain(shortPlace(String(cause), cwd));
    return [`${ink.green('live')}    ${what}, in ${String(took_ms)} ms`];
  },
  'generation-rejected'(line, options) {
    const head = `${options.ink.red('refused')} ${plain(String(line.effect))}`;
    return [
      head,
      ...(line.file === undefined
        ? textLines(String(line.error)).map(options.ink.red)
        : describeFailure(line, options)),
    ];
  },
  'group-not-loadable'(line, options) {
    return [
      `${options.ink.red('error')}   ${plain(String(line.file))} does not load, and answers 500`,
      ...describeFailure(line, options),
    ];
  },
  'operation-info': (line, options) => fromController(line, options),
  'operation-warning': (line, options) => fromController(line, options),
  'operation-error': (line, options) => fromController(line, options),
  // Every worker says it, and at first there is nothing to say.
  'credentials-loaded': (line, options) => (line.reloads === 0 ? [] : anyEvent(line, options)),
  stopping: ({ signal }) => [`stopping on ${String(signal)}`],
  stopped: () => ['stopped'],
};

/** Fields that every line has, or that are shown otherwise. */
const APART = new Set(['time', 'level', 'event', 'pid', 'error', 'error_name', 'stack', 'cut']);

const anyEvent: Body = (fields, options) => {
  const { level, event } = fields;
  const { ink } = options;
  const paint: Paint = level === 'error' ? ink.red : level === 'warn' ? ink.yellow : ink.dim;
  const facts = Object.entries(fields).filter(
    ([name, value]) => value !== '' && !APART.has(name) && !(name === 'cause' && 'error' in fields),
  );
  const told = facts.map(
    ([name, value]) => `${ink.dim(plain(name))} ${plain(typeof value === 'string' ? value : JSON.stringify(value))}`,
  );
  const head = `${paint(String(level).padEnd(7))} ${ink.bold(plain(event))}  ${told.join('  ')}`.trimEnd();
  return [head, ...describeThrown(fields, options)];
};

/** `params.log`: what it says comes first, and where it said so last. */
function fromController({ message, group, operation, request_id, ...line }: Line, options: PrettyOptions): string[] {
  const [head = '', ...more] = anyEvent({ ...line, event: String(message) }, options);
  const place = plain(`${String(group)}.${String(operation)}  request ${String(request_id)}`);
  return [`${head}  ${options.ink.dim(place)}`, ...more];
}

/** An error with its stack and its cause; a text among the fields of a controller may be all of it. */
function describeThrown({ error, error_name, stack, cause }: LogFields, options: PrettyOptions): string[] {
  const title = error_name === undefined || error_name === 'Error' ? '' : `${wordOf(error_name)}: `;
  const text = error === undefined ? '' : title + wordOf(error);
  const within = text.search(/\n\s+at /);
  const message = within < 0 ? text : text.slice(0, within);
  return [
    ...(message === '' ? [] : textLines(message).map(options.ink.red)),
    ...(error === undefined || cause === undefined || cause === ''
      ? []
      : textLines(`because ${wordOf(cause)}`).map(options.ink.red)),
    ...stackLines(stack ?? text.slice(message.length), options),
  ];
}

/** A controller may log an object by any name, and one out of JSON need not have a text. */
function wordOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function clock(time: unknown): string {
  const date = new Date(String(time));
  return Number.isNaN(date.getTime()) ? '        ' : date.toTimeString().slice(0, 8);
}

function statusPaint(status: number, ink: Ink): Paint {
  if (status >= 500) return ink.red;
  return status >= 400 ? ink.yellow : ink.green;
}

function textLines(text: string): string[] {
  return text.split('\n').map(plain);
}

/** Places in packages that are shown of a stack. */
const MOST_FOREIGN = 3;

/**
 * The controller's places first, then some of packages; Node's and this program's say nothing to who wrote the
 * controller.
 */
function stackLines(stack: unknown, { ink, cwd }: PrettyOptions): string[] {
  if (typeof stack !== 'string') return [];
  const places = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const kindOf = (place: string) => {
    if (/node:|\(<anonymous>\)|at <anonymous>$/.test(place) || isOwnFile(pathIn(place))) return 'inside';
    return place.includes('node_modules') ? 'foreign' : 'own';
  };
  const shorten = (place: string) =>
    plain(place.trim()).replaceAll(/(?:file:\/\/)?(\/[^\s():]+)/g, (_, path: string) => shortPlace(path, cwd));
  const own = places.filter((place) => kindOf(place) === 'own').map(shorten);
  const foreign = places.filter((place) => kindOf(place) === 'foreign').map(shorten);
  const hidden = places.length - own.length - Math.min(foreign.length, MOST_FOREIGN);
  const more = hidden === 0 ? [] : [`… and ${hidden} more of Node and packages`];
  return [...own, ...[...foreign.slice(0, MOST_FOREIGN), ...more].map(ink.dim)];
}

function pathIn(place: string): string {
  return /(?:file:\/\/)?(\/[^\s()]+?)(?:\?[^:]*)?:\d+:\d+/.exec(place)?.[1] ?? '';
}

/** A group that did not load, as the log has it. */
interface Failure {
  readonly [field: string]: unknown;
  readonly file?: unknown;
  readonly error?: unknown;
  readonly at?: unknown;
  readonly column?: unknown;
}

function describeFailure({ file, error, at, column }: Failure, options: PrettyOptions): string[] {
  const { ink, cwd } = options;
  const place = typeof at === 'string' ? at : String(file);
  const named = typeof column === 'number' ? `${place}:${column}` : place;
  const reason = String(error).replace(`${basename(place)}: `, '');
  return [
    ink.bold(plain(shortPlace(named, cwd))),
    ...textLines(reason).map(ink.red),
    ...sourceFrame(at, column, options),
  ];
}

/** Lines that are shown above the one with the mistake, and below it. */
const ABOVE = 2;
const BELOW = 1;
/** The most columns of a source line: nobody writes a longer one by hand. */
const WIDEST = 160;

/** Each line is cut to the terminal. A caret beyond that is left out: the place above the lines has its column. */
function sourceFrame(at: unknown, column: unknown, { ink, columns }: PrettyOptions): string[] {
  const [, path = '', number = ''] = /^(.*):(\d+)$/.exec(String(at)) ?? [];
  const meant = Number(number);
  const lines = readSourceOrEmpty(path).replaceAll('\t', ' ').split(/\r?\n/);
  const line = lines[meant - 1];
  if (line === undefined) return [];
  const first = Math.max(1, meant - ABOVE);
  const width = String(meant + BELOW).length;
  const room = Math.max(0, Math.min(WIDEST, (columns?.() ?? WIDEST) - MARGIN.length - width - 5));
  const indent = typeof column === 'number' ? column - 1 : line.length - line.trimStart().length;
  const caret = indent < room ? [`${' '.repeat(width + 2)} │ ${' '.repeat(indent)}${ink.red('^')}`] : [];
  return lines.slice(first - 1, meant + BELOW).flatMap((text, i) => {
    const shown = `${String(first + i).padStart(width)} │ ${plain(text.slice(0, room))}`;
    return first + i === meant ? [`${ink.red('>')} ${shown}`, ...caret] : [ink.dim(`  ${shown}`)];
  });
}

// Formats the log for people. A JSON line becomes a line for the terminal: a request without the names of its fields,
// any other event with them. Below it are the error, the places in the author's code, and the line of a mistake.
import { isOwnFile } from '../own-files.ts';
import { attempt, FIRST_PLACE } from './failure.ts';
import { type Ink, plain, shortPlace } from './ink.ts';
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
  /** Paths below this folder are shown relative to it. */
  readonly cwd: string;
  readonly columns?: () => number | undefined;
}

/** Returns a writer that formats each line of this process. The lines of other processes are formatted already. */
export function createPrettyWriter(writer: LogWriter, options: PrettyOptions): LogWriter {
  const write = (line: string) => writer.pass(prettyLine(line, options));
  return { ...writer, write };
}

/** Formats one log line. Returns a line that is not JSON as it is. @param line with its line feed, like the result */
export function prettyLine(line: string, options: PrettyOptions): string {
  const fields = attempt(() => JSON.parse(line) as Line, undefined);
  if (fields === undefined) return line;
  // Each worker logs this event with 0 reloads when it starts. Nobody needs that line.
  if (fields.event === 'credentials-loaded' && fields.reloads === 0) return '';
  const timeOfDay = options.ink.dim(new Date(fields.time).toTimeString().slice(0, 8));
  if (fields.event === 'request') return `${timeOfDay}  ${requestText(fields, options.ink)}\n`;
  const lines = [...describeThrown(fields, options), ...describePlace(fields, options)];
  return [`${timeOfDay}  ${eventText(fields, options.ink)}`, ...lines.map((text) => MARGIN + text), ''].join('\n');
}

const MARGIN = ' '.repeat(10);

function requestText({ method, path, status, duration_ms, credential = '' }: Line, ink: Ink): string {
  const code = Number(status);
  const paint = code >= 500 ? ink.red : code >= 400 ? ink.yellow : ink.green;
  const duration = `${Number(duration_ms).toFixed(1)} ms`.padStart(10);
  const facts = `${String(method).padEnd(7)} ${plainText(path).padEnd(40)} ${paint(String(status))} ${duration}`;
  return `${facts}  ${ink.dim(plainText(credential))}`.trimEnd();
}

/** Fields that every line has, or that are shown below the line. */
const UNLISTED_FIELDS = new Set('time level event pid error error_name stack cut at column'.split(' '));

const LEVEL_PAINTS: Readonly<Record<string, keyof Ink>> = { error: 'red', warn: 'yellow' };

function eventText(fields: Line, ink: Ink): string {
  const paint = ink[LEVEL_PAINTS[fields.level] ?? 'dim'];
  const facts = Object.entries(fields)
    .filter(([name, value]) => value !== '' && !UNLISTED_FIELDS.has(name) && !isStack(value))
    .map(([name, value]) => `${ink.dim(plain(name))} ${plainText(value)}`);
  return `${paint(String(fields.level).padEnd(7))} ${ink.bold(plainText(fields.event))}  ${facts.join('  ')}`.trimEnd();
}

/** Formats an error with its stack, and the stacks of the errors that a controller has logged. */
function describeThrown(fields: LogFields, options: PrettyOptions): string[] {
  const { error, error_name, stack } = fields;
  const title = error_name === undefined || error_name === 'Error' ? '' : `${textOf(error_name)}: `;
  // An error of the service has its stack in a field of its own, whatever its message is.
  const isLogged = stack === undefined && isStack(error);
  const lines = error === undefined || isLogged ? [] : textLines(title + textOf(error));
  const loggedStacks = Object.entries(fields).flatMap(([name, value]) =>
    name !== 'stack' && (name !== 'error' || isLogged) && isStack(value) ? wholeStack(value, options) : [],
  );
  return [...lines.map(options.ink.red), ...stackLines(textOf(stack ?? ''), options), ...loggedStacks];
}

/** Returns whether a field is an error that a controller has logged: the service writes its stack. */
const isStack = (value: unknown): value is string => typeof value === 'string' && FIRST_PLACE.test(value);

function wholeStack(stack: string, options: PrettyOptions): string[] {
  const start = stack.search(FIRST_PLACE);
  return [...textLines(stack.slice(0, start)).map(options.ink.red), ...stackLines(stack.slice(start), options)];
}

/** Returns the text of a field: a controller may log any value under any name. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const plainText = (value: unknown): string => plain(textOf(value));

const textLines = (text: string): string[] => text.split('\n').map(plain);

/** How many places of a stack are shown when all are in Node and in packages. */
const MAX_FOREIGN_PLACES = 3;

/** Lists the places of a stack in the author's code, and counts the other places. */
function stackLines(stack: string, { ink, cwd }: PrettyOptions): string[] {
  const places = stack.split('\n').filter((line) => /^\s+at /.test(line));
  // `node:` is a module of Node. An anonymous place is a function of V8, such as Array.map.
  const isForeign = (place: string) =>
    /node:|node_modules|\(<anonymous>\)|at <anonymous>$/.test(place) || isOwnFile(pathIn(place));
  const authored = places.filter((place) => !isForeign(place));
  const shown = authored.length > 0 ? authored : places.slice(0, MAX_FOREIGN_PLACES);
  const hiddenCount = places.length - shown.length;
  const lines = shown.map((place) =>
    plain(place.trim()).replaceAll(/(?:file:\/\/)?(\/[^\s():]+)/g, (_, path: string) => shortPlace(path, cwd)),
  );
  return hiddenCount === 0 ? lines : [...lines, ink.dim(`… and ${hiddenCount} more of Node and packages`)];
}

/** Returns the path before `:line:column`, without `file://` and a query; an empty text when there is none. */
function pathIn(place: string): string {
  return /(?:file:\/\/)?(\/[^\s()]+?)(?:\?[^:]*)?:\d+:\d+/.exec(place)?.[1] ?? '';
}

/** Maximum columns of a source line that are shown when the width of the terminal is unknown. */
const MAX_SOURCE_WIDTH = 160;

/** Shows the place `file:line` of a mistake, and the source there with a caret. No caret is beyond the terminal. */
function describePlace({ at, column }: LogFields, { ink, cwd, columns }: PrettyOptions): string[] {
  if (typeof at !== 'string') return [];
  const place = plain(shortPlace(typeof column === 'number' ? `${at}:${column}` : at, cwd));
  const [, path = '', line = ''] = /^(.*):(\d+)$/.exec(at) ?? [];
  const source = readSourceOrEmpty(path).replaceAll('\t', ' ').split(/\r?\n/)[Number(line) - 1];
  if (source === undefined) return [ink.bold(place)];
  const width = Math.max(0, Math.min(MAX_SOURCE_WIDTH, columns?.() ?? MAX_SOURCE_WIDTH) - MARGIN.length);
  const indent = typeof column === 'number' ? column - 1 : source.length - source.trimStart().length;
  const caret = indent >= 0 && indent < width ? [' '.repeat(indent) + ink.red('^')] : [];
  return [ink.bold(place), plain(source.slice(0, width)), ...caret];
}

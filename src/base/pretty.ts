// Formats the log for people. A JSON line becomes a line for the terminal. A stack becomes a list in which the places
// in controllers come first. A file that does not load is shown with the line of its mistake and a caret.
import { basename } from 'node:path';
import { isOwnFile } from '../own-files.ts';
import type { EventName } from './events.ts';
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
  /** Paths below this folder are shown relative to it. */
  readonly cwd: string;
  /** Returns the width of the terminal, or undefined when the width is unknown. */
  readonly columns?: () => number | undefined;
}

/** Returns a writer that formats each line of this process. The lines of other processes are formatted already. */
export function createPrettyWriter(writer: LogWriter, options: PrettyOptions): LogWriter {
  const write = (line: string) => writer.write(prettyLine(line, options));
  return { ...writer, write };
}

/** Formats one log line. Returns a line that is not JSON as it is. @param line with its line feed, like the result */
export function prettyLine(line: string, options: PrettyOptions): string {
  let fields: Line;
  try {
    fields = JSON.parse(line) as Line;
  } catch {
    return line;
  }
  const [firstLine, ...moreLines] = (FORMATTERS[fields.event] ?? formatAnyEvent)(fields, options);
  if (firstLine === undefined) return '';
  const timeOfDay = new Date(fields.time).toTimeString().slice(0, 8);
  const lines = [`${options.ink.dim(timeOfDay)}  ${firstLine}`, ...moreLines.map((text) => MARGIN + text)];
  return `${lines.join('\n')}\n`;
}

const MARGIN = ' '.repeat(10);

/** Returns the first line of an event, and the lines below the first. An empty list hides the event. */
type Formatter = (line: Line, options: PrettyOptions) => string[];

const FORMATTERS: Readonly<Record<string, Formatter>> = {
  request({ method, path, status, duration_ms, credential, ...ids }, { ink }) {
    const paint = statusPaint(Number(status), ink);
    const duration = `${Number(duration_ms).toFixed(1)} ms`;
    const caller = typeof credential === 'string' && credential !== '' ? `  ${ink.dim(plain(credential))}` : '';
    return [
      `${String(method).padEnd(7)} ${plainText(path).padEnd(40)} ${paint(String(status))} ${duration.padStart(10)}${caller}${traceFacts(ids, ink)}`,
    ];
  },
  'request-failed'({ page, operation, error_code, request_id, ...fields }, options) {
    const { ink } = options;
    const subject = [page, operation].filter((name) => name !== '').join('.');
    const facts = [ink.bold(plain(subject)), plainText(error_code), ink.dim(`request ${plainText(request_id)}`)];
    const head = `${ink.red('error')}   ${facts.slice(subject === '' ? 1 : 0).join('  ')}${traceFacts(fields, ink)}`;
    // An earlier log line has already shown why the group does not load.
    return error_code === 'GROUP_NOT_LOADABLE' ? [head] : [head, ...describeThrown(fields, options)];
  },
  'generation-serving'({ cause, groups, took_ms }, { ink, cwd }) {
    const groupCount = `${groups} ${groups === 1 ? 'group' : 'groups'}`;
    const subject = cause === 'start' ? groupCount : plain(shortPlace(String(cause), cwd));
    return [`${ink.green('live')}    ${subject}, in ${took_ms} ms`];
  },
  'generation-rejected'(line, options) {
    const { red } = options.ink;
    const head = `${red('refused')} ${plainText(line.effect)}`;
    if (line.file === undefined) return [head, ...textLines(String(line.error)).map(red)];
    return [head, ...describeLoadFailure(line, options)];
  },
  'group-not-loadable'(line, options) {
    const head = `${options.ink.red('error')}   ${plainText(line.file)} does not load, and answers 500`;
    return [head, ...describeLoadFailure(line, options)];
  },
  'operation-info': formatMessage,
  'operation-warning': formatMessage,
  'operation-error': formatMessage,
  // Each worker logs this event with 0 reloads when it starts. Nobody needs that line, so it is hidden.
  'credentials-loaded': (line, options) => (line.reloads === 0 ? [] : formatAnyEvent(line, options)),
  stopping: ({ signal }) => [`stopping on ${String(signal)}`],
  stopped: () => ['stopped'],
} satisfies Readonly<Partial<Record<EventName, Formatter>>>;

/** Fields that are not listed as facts, because every line has them or because `describeThrown` formats them. */
const UNLISTED_FIELDS = new Set(['time', 'level', 'event', 'pid', 'error', 'error_name', 'stack', 'cut']);

const LEVEL_PAINTS: Readonly<Record<string, keyof Ink>> = { error: 'red', warn: 'yellow' };

const formatAnyEvent: Formatter = (fields, options) => {
  const { level, event } = fields;
  const { ink } = options;
  const paint = ink[LEVEL_PAINTS[level] ?? 'dim'];
  const facts = Object.entries(fields).filter(
    ([name, value]) => value !== '' && !UNLISTED_FIELDS.has(name) && !(name === 'cause' && 'error' in fields),
  );
  const factTexts = facts.map(([name, value]) => `${ink.dim(plain(name))} ${plainText(value)}`);
  const head = `${paint(String(level).padEnd(7))} ${ink.bold(plain(event))}  ${factTexts.join('  ')}`.trimEnd();
  return [head, ...describeThrown(fields, options)];
};

/** Returns the ids of the trace that the request belongs to, or an empty text when there is no trace. */
function traceFacts({ trace_id, span_id }: LogFields, ink: Ink): string {
  if (trace_id === undefined) return '';
  return `  ${ink.dim(`trace_id ${plainText(trace_id)}  span_id ${plainText(span_id)}`)}`;
}

/** Formats a line of `params.log`: the controller's message comes first, the name of the operation last. */
function formatMessage({ message, group, operation, request_id, ...line }: Line, options: PrettyOptions): string[] {
  const [head = '', ...moreLines] = formatAnyEvent({ ...line, event: String(message) }, options);
  const source = plain(`${String(group)}.${String(operation)}  request ${String(request_id)}`);
  return [`${head}  ${options.ink.dim(source)}`, ...moreLines];
}

/** Formats an error with its cause and its stack. A field `error` may have the message and the stack in one text. */
function describeThrown({ error, error_name, stack, cause }: LogFields, options: PrettyOptions): string[] {
  const title = error_name === undefined || error_name === 'Error' ? '' : `${textOf(error_name)}: `;
  const text = error === undefined ? '' : title + textOf(error);
  const stackStart = text.search(/\n\s+at /);
  const message = stackStart < 0 ? text : text.slice(0, stackStart);
  const hasCause = error !== undefined && cause !== undefined && cause !== '';
  const lines = [
    ...(message === '' ? [] : textLines(message)),
    ...(hasCause ? textLines(`because ${textOf(cause)}`) : []),
  ];
  return [...lines.map(options.ink.red), ...stackLines(textOf(stack ?? text.slice(message.length)), options)];
}

/** Returns the text of a field. A controller may log an object as any field. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const plainText = (value: unknown): string => plain(textOf(value));

function statusPaint(status: number, ink: Ink): Paint {
  if (status >= 500) return ink.red;
  return status >= 400 ? ink.yellow : ink.green;
}

const textLines = (text: string): string[] => text.split('\n').map(plain);

/** Maximum lines of one stack that are shown and belong to packages. */
const MAX_PACKAGE_PLACES = 3;

/** Lists the places of a stack: first all in controllers, then some in packages. Counts the other places. */
function stackLines(stack: string, { ink, cwd }: PrettyOptions): string[] {
  const places = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const ownerOf = (place: string) => {
    // `node:` is a module of Node. An anonymous place is a function of V8, such as Array.map.
    if (/node:|\(<anonymous>\)|at <anonymous>$/.test(place) || isOwnFile(pathIn(place))) return 'internal';
    return place.includes('node_modules') ? 'package' : 'controller';
  };
  const shortenPaths = (place: string) =>
    plain(place.trim()).replaceAll(/(?:file:\/\/)?(\/[^\s():]+)/g, (_, path: string) => shortPlace(path, cwd));
  const inControllers = places.filter((place) => ownerOf(place) === 'controller').map(shortenPaths);
  const inPackages = places.filter((place) => ownerOf(place) === 'package').map(shortenPaths);
  const hiddenCount = places.length - inControllers.length - Math.min(inPackages.length, MAX_PACKAGE_PLACES);
  const more = hiddenCount === 0 ? [] : [`… and ${hiddenCount} more of Node and packages`];
  return [...inControllers, ...[...inPackages.slice(0, MAX_PACKAGE_PLACES), ...more].map(ink.dim)];
}

/** Returns the path before `:line:column`, without `file://` and a query; an empty text when there is none. */
function pathIn(place: string): string {
  return /(?:file:\/\/)?(\/[^\s()]+?)(?:\?[^:]*)?:\d+:\d+/.exec(place)?.[1] ?? '';
}

function describeLoadFailure({ file, error, at, column }: LogFields, options: PrettyOptions): string[] {
  const { ink, cwd } = options;
  const place = typeof at === 'string' ? at : String(file);
  const placeWithColumn = typeof column === 'number' ? `${place}:${column}` : place;
  // The error may begin with the place, which the first line shows already.
  const reason = String(error).replace(`${basename(place)}: `, '');
  return [
    ink.bold(plain(shortPlace(placeWithColumn, cwd))),
    ...textLines(reason).map(ink.red),
    ...sourceFrame(at, column, options),
  ];
}

/** Source lines that are shown above the line with the mistake. */
const LINES_ABOVE = 2;
/** Source lines that are shown below the line with the mistake. */
const LINES_BELOW = 1;
/** Maximum columns of a source line that are shown. */
const MAX_SOURCE_WIDTH = 160;

/** Shows the source around the mistake at `file:line`, cut to the terminal's width. No caret is beyond that width. */
function sourceFrame(at: unknown, column: unknown, { ink, columns }: PrettyOptions): string[] {
  const [, path = '', numberText = ''] = /^(.*):(\d+)$/.exec(String(at)) ?? [];
  const markedLine = Number(numberText);
  const lines = readSourceOrEmpty(path).replaceAll('\t', ' ').split(/\r?\n/);
  const line = lines[markedLine - 1];
  if (line === undefined) return [];
  const firstNumber = Math.max(1, markedLine - LINES_ABOVE);
  const width = String(markedLine + LINES_BELOW).length;
  const terminalWidth = columns?.() ?? MAX_SOURCE_WIDTH;
  const prefixWidth = MARGIN.length + '> '.length + width + ' │ '.length;
  const textWidth = Math.max(0, Math.min(MAX_SOURCE_WIDTH, terminalWidth - prefixWidth));
  const indent = typeof column === 'number' ? column - 1 : line.length - line.trimStart().length;
  const caret = indent < textWidth ? [`${' '.repeat(width + 2)} │ ${' '.repeat(indent)}${ink.red('^')}`] : [];
  return lines.slice(firstNumber - 1, markedLine + LINES_BELOW).flatMap((text, i) => {
    const row = `${String(firstNumber + i).padStart(width)} │ ${plain(text.slice(0, textWidth))}`;
    return firstNumber + i === markedLine ? [`${ink.red('>')} ${row}`, ...caret] : [ink.dim(`  ${row}`)];
  });
}

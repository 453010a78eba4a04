// The command framework: choosing a command by its first word, its flags and operands, the settings, one answer on
// standard output as text or JSON, errors in one line on standard error, exit codes. It knows no command; commands.ts
// lists them.
import { availableParallelism } from 'node:os';
import {
  type FlagOptions,
  parseWords,
  readSettings,
  type SettingReading,
  SettingsError,
  settingsOf,
} from '../base/config.ts';
import { createInk, escapeInvisible, type Ink, plain } from '../base/ink.ts';
import type { Settings } from '../base/settings.ts';

/** The first word of the process that loads a folder for a command; not for people. */
export const INSPECTION = 'inspect-folder';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Standard output is a terminal: it may have colours. */
  readonly isTTY: boolean;
  /** Unix milliseconds. */
  readonly now?: () => number;
  /** Milliseconds one controller may take to load. */
  readonly loadTimeout?: number;
}

/** 0: all is well; 1: something is wrong, or refused; 2: called wrongly. */
export type ExitCode = 0 | 1 | 2;

/** Called wrongly: exit 2. */
export class UsageError extends Error {}

/** What stands in the way, as one line for people: exit 1. */
export class Refused extends Error {}

/** One command. A file of this room exports it as `command`, and commands.ts has a row for it. */
export interface Command {
  /** As typed behind `gatefold`: `routes`, `credentials issue`. */
  readonly name: string;
  /** The words behind the name, as help shows them. */
  readonly usage: string;
  readonly about: string;
  /** A line a flag of its own. */
  readonly help: readonly string[];
  /** Its own flags; `--json`, `--help` and every setting of the server are there already. */
  readonly options: FlagOptions;
  /** Names of the words that must follow; `[NAME]`, last, may be left out. */
  readonly operands: readonly string[];
  /** The settings it reads: one of these that makes no sense is refused. Absent: all of them. */
  readonly reads?: readonly (keyof Settings)[];
  readonly run: (call: Call) => Promise<Answer>;
}

/** Commands behind one first word: `credentials issue`, `credentials list`. */
export interface CommandGroup {
  readonly about: string;
  readonly commands: readonly Command[];
}

/** A command that parses its own words. */
export type RawCommand = (argv: readonly string[], io: CommandIo) => Promise<ExitCode>;

export interface Entry {
  readonly name: string;
  readonly about: string;
  readonly load: () => Promise<{ readonly command: Command | CommandGroup | RawCommand }>;
}

export interface Call {
  /** Flags that take a value. */
  readonly options: Readonly<Record<string, string | undefined>>;
  /** Flags without a value, those that were given. */
  readonly flags: ReadonlySet<string>;
  readonly operands: readonly string[];
  /** Folders are absolute. */
  readonly settings: Settings;
  readonly readings: readonly SettingReading[];
  readonly io: CommandIo;
  readonly ink: Ink;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Answer {
  readonly json: unknown;
  /** For people, without the last line feed. */
  readonly text: string;
  /** Default: 0. */
  readonly exitCode?: ExitCode;
  /** Lines for standard error. */
  readonly complaints?: readonly string[];
  /**
   * What to do when the answer cannot be printed, where it cannot be repeated; then a closed pipe is a failure, too.
   */
  readonly ifUnprinted?: string;
}

const COMMON_HELP = [
  '--controllers-dir DIR  The folder of controllers; default: CONTROLLERS_DIR, else ./controllers',
  '--data-dir DIR         The folder of the tables; default: DATA_DIR, else ./data',
  '--json                 Print one JSON value',
  '--help                 Print this',
];

/** Runs the command that the first word names. @param title what stands before that word */
export async function runEntry(
  title: string,
  about: string,
  entries: readonly Entry[],
  argv: readonly string[],
  io: CommandIo,
): Promise<ExitCode> {
  const [name = '', ...words] = argv;
  try {
    if (name === '--help' || name === '-h' || name === 'help')
      return await print(io.stdout, `${listEntries(title, about, entries)}\n`, 0);
    const entry = entries.find((known) => known.name === name);
    if (entry === undefined)
      throw new UsageError(name === '' ? 'a command is missing' : `unknown command ${JSON.stringify(name)}`);
    const { command } = await entry.load();
    if (typeof command === 'function') return await command(words, io);
    if ('run' in command) return await runCommand(command, words, io);
    return await runEntry(`${title} ${name}`, command.about, command.commands.map(entryOf), words, io);
  } catch (error) {
    return printFailure(title, error, io);
  }
}

function entryOf(command: Command): Entry {
  return { name: command.name.split(' ').at(-1) as string, about: command.about, load: async () => ({ command }) };
}

export async function runCommand(command: Command, argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const title = `gatefold ${command.name}`;
  try {
    const options: FlagOptions = {
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      ...command.options,
    };
    const { values, positionals } = parseWords(argv, options);
    if (values.help === true) return await print(io.stdout, `${helpOf(command)}\n`, 0);
    checkOperands(command, positionals);
    const readings = readSettings(io.env, values, { cores: availableParallelism(), cwd: io.cwd });
    const bad = readings.find(
      ({ row, problem }) => problem !== undefined && (command.reads?.includes(row.key) ?? true),
    );
    if (bad?.problem !== undefined) throw new (bad.source === 'flag' ? UsageError : Refused)(bad.problem);
    const settings = settingsOf(readings);
    const answer = await command.run({
      options: values as Call['options'],
      flags: new Set(Object.keys(values).filter((name) => values[name] === true)),
      operands: positionals,
      settings,
      readings,
      io,
      ink: createInk(io),
      now: (io.now ?? Date.now)(),
    });
    const { complaints = [] } = answer;
    const output = values.json === true ? escapeInvisible(JSON.stringify(answer.json)) : answer.text;
    const printed = await print(io.stdout, `${output}\n`, answer.exitCode ?? 0, answer.ifUnprinted);
    if (complaints.length === 0) return printed;
    return await print(io.stderr, complaints.map((line) => `${title}: ${plain(line)}\n`).join(''), printed);
  } catch (error) {
    return printFailure(title, error, io);
  }
}

function checkOperands({ operands }: Command, given: readonly string[]): void {
  if (given.length > operands.length) throw new UsageError('too many arguments');
  const missing = operands.slice(given.length).filter((name) => !name.startsWith('['));
  if (missing.length > 0) throw new UsageError(`missing ${missing.join(' and ')}`);
}

function listEntries(title: string, about: string, entries: readonly Entry[]): string {
  const width = Math.max(...entries.map(({ name }) => name.length));
  const rows = entries.map((entry) => `  ${entry.name.padEnd(width)}  ${entry.about}`);
  return [
    `Usage: ${title} COMMAND [OPTIONS]`,
    '',
    `${about}.`,
    '',
    ...rows,
    '',
    `${title} COMMAND --help tells more.`,
  ].join('\n');
}

function helpOf({ name, usage, about, help }: Command): string {
  const title = [name, usage].filter((word) => word !== '').join(' ');
  const lines = [...help, ...COMMON_HELP].map((line) => `  ${line}`);
  const more = 'The other settings of the server are flags here, too.';
  return [`Usage: gatefold ${title}`, '', `${about}.`, '', ...lines, '', more].join('\n');
}

function printFailure(title: string, error: unknown, io: CommandIo): Promise<ExitCode> {
  const isUsage = error instanceof UsageError || error instanceof SettingsError;
  const message = plain((error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' '));
  return print(io.stderr, `${title}: ${message}${isUsage ? `; see ${title} --help` : ''}\n`, isUsage ? 2 : 1);
}

/**
 * Resolves when the text is on its way. A reader that has seen enough and gone is no failure; a full disk is.
 *
 * @throws Refused with `ifUnprinted`, where there is one, whatever the failure
 */
export function print(
  stream: NodeJS.WritableStream,
  text: string,
  exitCode: ExitCode,
  ifUnprinted?: string,
): Promise<ExitCode> {
  return new Promise((done, refuse) => {
    // Without a listener a closed pipe would end the process with a stack.
    const fail = (error: Error) => {
      if (ifUnprinted !== undefined) return refuse(new Refused(`Cannot print: ${error.message}; ${ifUnprinted}`));
      done((error as NodeJS.ErrnoException).code === 'EPIPE' ? exitCode : 1);
    };
    stream.once('error', fail);
    stream.write(text, (error) => {
      if (error) return fail(error);
      stream.off('error', fail);
      done(exitCode);
    });
  });
}

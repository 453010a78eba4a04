// Runs a command: chooses the command by the first word, parses its flags and settings, and prints its answer as text
// or JSON. An error is printed as one line on standard error. commands.ts lists the commands.
import { availableParallelism } from 'node:os';
import {
  type FlagOptions,
  parseCommandLine,
  readSettings,
  type SettingReading,
  SettingsError,
  settingsOf,
} from '../base/config.ts';
import { createInk, escapeInvisible, type Ink, plain } from '../base/ink.ts';
import type { Settings } from '../base/settings.ts';

/** The first word with which a command starts `gatefold` again, to load the controllers in another process. */
export const INSPECT_FOLDER = 'inspect-folder';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether standard output is a terminal. */
  readonly isTTY: boolean;
  /** The time in Unix milliseconds. */
  readonly now?: () => number;
  /** Milliseconds that one controller may take to load. */
  readonly loadTimeout?: number;
}

/**
 * The exit code of a command:
 * - 0: success.
 * - 1: a problem was found, or the command refuses.
 * - 2: the command line is wrong.
 */
export type ExitCode = 0 | 1 | 2;

/** The command line is wrong. The exit code is 2. */
export class UsageError extends Error {}

/** The command cannot do its work. The message is one line for people. The exit code is 1. */
export class Refused extends Error {}

export interface Command {
  /** The words after `gatefold`, such as `routes` or `credentials issue`. */
  readonly name: string;
  /** The flags and operands after the name, as help shows them. */
  readonly usage?: string;
  /** The sentence that help shows, without its full stop. */
  readonly about: string;
  /**
   * Flag → its help. A flag that takes a value has a name for the value: `keep COUNT`. Every command also has `--json`,
   * `--help` and each setting of the server.
   */
  readonly flags?: Readonly<Record<string, string>>;
  /** The names of the operands. The last name can be `[NAME]`, which is optional, or `NAME…`, which can be repeated. */
  readonly operands?: readonly string[];
  /** The settings that must be valid, because the command reads them; default: all settings. */
  readonly reads?: readonly (keyof Settings)[];
  readonly run: (call: Call) => Promise<Answer>;
}

/** A command that parses its own words. */
type RawCommand = (argv: readonly string[], io: CommandIo) => Promise<ExitCode>;

/** A command that can be chosen by its name. */
export interface Entry {
  readonly name: string;
  readonly about: string;
  /** Imports the file of the command. A list has commands with the same first word, such as `credentials issue`. */
  readonly load: () => Promise<{ readonly command: Command | readonly Command[] | RawCommand }>;
}

export interface Call {
  /** The values of the flags that take a value. */
  readonly options: Readonly<Record<string, string | undefined>>;
  /** The names of the given flags that take no value. */
  readonly flags: ReadonlySet<string>;
  readonly operands: readonly string[];
  /** The settings of the server. Folders in the settings are absolute paths. */
  readonly settings: Settings;
  /** Each setting with its source, such as a flag, and with what is wrong with it. */
  readonly readings: readonly SettingReading[];
  readonly io: CommandIo;
  readonly ink: Ink;
  /** The time in Unix milliseconds. */
  readonly now: number;
}

export interface Answer {
  readonly json: unknown;
  /** The answer as a text for people, without the last line feed. */
  readonly text: string;
  /** The exit code; default: 0. */
  readonly exitCode?: ExitCode;
  /** Warnings, one line each, for standard error. */
  readonly complaints?: readonly string[];
  /** Advice for the case that printing fails. Set for an answer that cannot be repeated, such as a new token. */
  readonly adviceIfUnprinted?: string;
}

const COMMON_FLAGS: NonNullable<Command['flags']> = {
  'controllers-dir DIR': 'The folder of controllers; default: CONTROLLERS_DIR, else ./controllers',
  'data-dir DIR': 'The folder of the tables; default: DATA_DIR, else ./data',
  json: 'Print one JSON value',
  help: 'Print this',
};

/** Runs the command that the first word of `argv` names. @param title the words before that word */
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
    const entry = entries.find((candidate) => candidate.name === name);
    if (entry === undefined)
      throw new UsageError(name === '' ? 'a command is missing' : `unknown command ${JSON.stringify(name)}`);
    const { command } = await entry.load();
    if (typeof command === 'function') return await command(words, io);
    if ('run' in command) return await runCommand(command, words, io);
    return await runEntry(`${title} ${name}`, entry.about, command.map(entryOf), words, io);
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
    const commandFlags = Object.keys(command.flags ?? {}).map((flag): [string, FlagOptions[string]] => {
      const [name = '', value] = flag.split(' ');
      return [name, { type: value === undefined ? 'boolean' : 'string' }];
    });
    const options: FlagOptions = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };
    const { values, positionals } = parseCommandLine(argv, { ...options, ...Object.fromEntries(commandFlags) });
    if (values.help === true) return await print(io.stdout, `${helpOf(command)}\n`, 0);
    checkOperands(command, positionals);
    const readings = readSettings(io.env, values, { cores: availableParallelism(), cwd: io.cwd });
    const invalid = readings.find(
      ({ row, problem }) => problem !== undefined && (command.reads?.includes(row.key) ?? true),
    );
    if (invalid?.problem !== undefined) throw new (invalid.source === 'flag' ? UsageError : Refused)(invalid.problem);
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
    const exitCode = await print(io.stdout, `${output}\n`, answer.exitCode ?? 0, answer.adviceIfUnprinted);
    if (complaints.length === 0) return exitCode;
    return await print(io.stderr, complaints.map((line) => `${title}: ${plain(line)}\n`).join(''), exitCode);
  } catch (error) {
    return printFailure(title, error, io);
  }
}

function checkOperands({ operands = [] }: Command, values: readonly string[]): void {
  if (values.length > operands.length && operands.at(-1)?.endsWith('…') !== true)
    throw new UsageError('too many arguments');
  const missing = operands.slice(values.length).filter((name) => !name.startsWith('['));
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
    `${title} COMMAND --help shows its flags.`,
  ].join('\n');
}

function helpOf({ name, usage, about, flags }: Command): string {
  const title = usage === undefined ? name : `${name} ${usage}`;
  const lines = Object.entries({ ...flags, ...COMMON_FLAGS }).map(
    ([flag, help]) => `  ${`--${flag}`.padEnd(23)}${help.replace('\n', `\n${' '.repeat(25)}`)}`,
  );
  const note = 'The other settings of the server are flags here, too.';
  return [`Usage: gatefold ${title}`, '', `${about}.`, '', ...lines, '', note].join('\n');
}

function printFailure(title: string, error: unknown, io: CommandIo): Promise<ExitCode> {
  const isUsage = error instanceof UsageError || error instanceof SettingsError;
  const message = plain((error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' '));
  return print(io.stderr, `${title}: ${message}${isUsage ? `; see ${title} --help` : ''}\n`, isUsage ? 2 : 1);
}

/**
 * Writes a text. Returns `exitCode` when the text is written, and also when the reader has closed the pipe. Returns 1
 * after any other failure, such as a full disk.
 *
 * @throws Refused with the advice, after any failure and also after a closed pipe, when there is advice
 */
export function print(
  stream: NodeJS.WritableStream,
  text: string,
  exitCode: ExitCode,
  adviceIfUnprinted?: string,
): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    // Without a listener, a closed pipe would end the process with a stack trace.
    const fail = (error: Error) => {
      if (adviceIfUnprinted !== undefined)
        return reject(new Refused(`Cannot print: ${error.message}; ${adviceIfUnprinted}`));
      resolve((error as NodeJS.ErrnoException).code === 'EPIPE' ? exitCode : 1);
    };
    stream.once('error', fail);
    stream.write(text, (error) => {
      if (error) return fail(error);
      stream.off('error', fail);
      resolve(exitCode);
    });
  });
}

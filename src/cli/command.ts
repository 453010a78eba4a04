// Runs a command: chooses the command by the first word, and parses its flags and settings. Its answer is printed as
// text or JSON. An error is printed as one line on standard error. The result is the exit code. commands.ts lists the
// commands.
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

/** The first word on the command line of the internal process that loads a folder for a command. */
export const INSPECTION = 'inspect-folder';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether standard output is a terminal, which can show colours. */
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

/** The error for a wrong command line. The exit code is 2. */
export class UsageError extends Error {}

/** The error of a command that cannot do its work. The message is one line for people. The exit code is 1. */
export class Refused extends Error {}

/** One command. A file exports its command as `command`, and commands.ts lists the command. */
export interface Command {
  /** The words after `gatefold`, such as `routes` or `credentials issue`. */
  readonly name: string;
  /** The flags and operands after the name, as help shows them. */
  readonly usage?: string;
  readonly about: string;
  /**
   * The flags of the command with their help. Every command also has `--json`, `--help` and each setting of the server.
   * A flag that takes a value has a name for the value: `keep COUNT`.
   */
  readonly flags?: Readonly<Record<string, string>>;
  /**
   * The names of the operands. The last one is optional when it is `[NAME]`, and can be repeated when it is `NAME…`.
   */
  readonly operands?: readonly string[];
  /**
   * The settings that the command reads. The command refuses to run when one of these is invalid. When `reads` is
   * undefined, the command reads all settings.
   */
  readonly reads?: readonly (keyof Settings)[];
  readonly run: (call: Call) => Promise<Answer>;
}

/** Commands that share their first word, such as `credentials issue` and `credentials list`. */
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
  /** The values of the flags that take a value. */
  readonly options: Readonly<Record<string, string | undefined>>;
  /** The names of the given flags that take no value. */
  readonly flags: ReadonlySet<string>;
  readonly operands: readonly string[];
  /** The settings of the server. Folders in the settings are absolute paths. */
  readonly settings: Settings;
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
  /**
   * The advice for an answer that could not be printed. Only an answer that cannot be repeated, such as a token, has
   * this advice. For such an answer, a closed pipe is a failure, too.
   */
  readonly ifUnprinted?: string;
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
    const exitCode = await print(io.stdout, `${output}\n`, answer.exitCode ?? 0, answer.ifUnprinted);
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
 * Writes a text, and resolves when the text is written. A reader that closes the pipe early is not a failure, but a
 * full disk is.
 *
 * @throws Refused with the advice `ifUnprinted`, after any failure, when that advice is given
 */
export function print(
  stream: NodeJS.WritableStream,
  text: string,
  exitCode: ExitCode,
  ifUnprinted?: string,
): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    // Without a listener, a closed pipe would end the process with a stack trace.
    const fail = (error: Error) => {
      if (ifUnprinted !== undefined) return reject(new Refused(`Cannot print: ${error.message}; ${ifUnprinted}`));
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

// Runs a command: chooses it by the first word, parses flags and settings, and prints the answer as text or JSON, or an
// error as one line. commands.ts lists the commands.
import { availableParallelism } from 'node:os';
import * as config from '../../base/config.ts';
import { errorMessage } from '../../base/failure.ts';
import { createInk, escapeInvisible, type Ink, plain } from '../../base/ink.ts';
import type { Settings } from '../../base/settings.ts';
import { commandEnvironment } from './command-environment.ts';

/** `gatefold inspect-folder` is the child process in which inspection.ts loads the controllers. */
export const INSPECT_FOLDER = 'inspect-folder';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
  /** Returns the time in Unix milliseconds; default: `Date.now`. */
  readonly now?: () => number;
}

/** With 2, the command line is wrong. With 1, a problem was found, or the command cannot do its work. */
export type ExitCode = 0 | 1 | 2;

export class UsageError extends Error {}

/** The command cannot do its work. The message is one line for people. */
export class CommandError extends Error {}

export interface Command {
  /** The one or two words after `gatefold`: `routes` or `credentials issue`. */
  readonly name: string;
  /** A sentence for help, without its full stop. */
  readonly about: string;
  /**
   * Key: the name of a flag, followed by a placeholder when the flag takes a value: `check`, `keep COUNT`. Value: the
   * text for help. Every command also has the flags `--json` and `--help`, and one flag for each setting of the server.
   */
  readonly flags?: Readonly<Record<string, string>>;
  /** The names of the operands. The last of them can be `[NAME]` (an optional operand) or `NAME…` (at least one). */
  readonly operands?: readonly string[];
  /** The settings that must be valid for this command; default: all settings. */
  readonly reads?: readonly (keyof Settings)[];
  readonly run: (call: CommandCall) => Promise<Answer>;
}

/** A command that parses its flags and operands itself. */
type RawCommand = (argv: readonly string[], io: CommandIo) => Promise<ExitCode>;

/** A command as help lists it. Its file is imported only when a user calls the command. */
export interface ListedCommand {
  /** The word that chooses the command: `routes`, or `issue` in the list of `gatefold credentials`. */
  readonly name: string;
  readonly about: string;
  /** Imports the file. Its `command` is an array when a second word chooses the command, as in `credentials issue`. */
  readonly load: () => Promise<{ readonly command: Command | readonly Command[] | RawCommand }>;
}

export interface CommandCall {
  readonly flagValues: Readonly<Record<string, string | undefined>>;
  readonly switches: ReadonlySet<string>;
  readonly operands: readonly string[];
  /** The settings of the server. Folders in the settings are absolute paths. */
  readonly settings: Settings;
  /** Each setting with its source, such as a flag. An invalid setting has a `problem`. */
  readonly readings: readonly config.SettingReading[];
  readonly io: CommandIo;
  readonly ink: Ink;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Answer {
  readonly json: unknown;
  readonly text: string;
  readonly exitCode?: ExitCode;
  readonly warnings?: readonly string[];
  /** Advice to print when the answer cannot be printed. It is for an answer that comes only once, such as a token. */
  readonly adviceIfUnprinted?: string;
}

const COMMON_FLAGS: NonNullable<Command['flags']> = {
  'controllers-dir DIR': 'The folder of controllers; default: CONTROLLERS_DIR, else ./controllers',
  'data-dir DIR': 'The folder of the tables; default: DATA_DIR, else ./data',
  json: 'Print one JSON value',
  help: 'Print this',
};

/** @param prefix `gatefold`, or `gatefold credentials` for a list of commands with two words */
export async function runListedCommand(
  prefix: string,
  about: string,
  commands: readonly ListedCommand[],
  argv: readonly string[],
  io: CommandIo,
): Promise<ExitCode> {
  const [name = '', ...words] = argv;
  try {
    if (name === '--help' || name === '-h' || name === 'help')
      return await print(io.stdout, `${listHelp(prefix, about, commands)}\n`, 0);
    const choice = commands.find((row) => row.name === name);
    if (choice === undefined)
      throw new UsageError(name === '' ? 'a command is missing' : `unknown command ${JSON.stringify(name)}`);
    const { command } = await choice.load();
    if (typeof command === 'function') return await command(words, io);
    if ('run' in command) return await runCommand(command, words, io);
    const rows = command.map((row): ListedCommand => {
      return { name: row.name.split(' ').at(-1) as string, about: row.about, load: async () => ({ command: row }) };
    });
    return await runListedCommand(`${prefix} ${name}`, choice.about, rows, words, io);
  } catch (error) {
    return printFailure(prefix, error, io);
  }
}

export async function runCommand(command: Command, argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const prefix = `gatefold ${command.name}`;
  try {
    const ownFlags = Object.keys(command.flags ?? {}).map((flag): [string, config.FlagOptions[string]] => {
      const [name = '', placeholder] = flag.split(' ');
      return [name, { type: placeholder === undefined ? 'boolean' : 'string' }];
    });
    const common: config.FlagOptions = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };
    const { values, positionals } = config.parseCommandLine(argv, { ...common, ...Object.fromEntries(ownFlags) });
    if (values.help === true) return await print(io.stdout, `${helpOf(command)}\n`, 0);
    checkOperands(command, positionals);
    const env = commandEnvironment(io, values, command.reads);
    const readings = config.readSettings(env, values, { cores: availableParallelism(), cwd: io.cwd });
    const isRead = ({ row }: config.SettingReading) => command.reads?.includes(row.key) ?? true;
    const invalid = readings.find((reading) => reading.problem !== undefined && isRead(reading));
    if (invalid !== undefined) throw new (invalid.source === 'flag' ? UsageError : CommandError)(invalid.problem);
    const settings = config.settingsOf(readings);
    const answer = await command.run({
      // `values` also has the switches, each with the value `true`. No command reads a switch as a text.
      flagValues: values as CommandCall['flagValues'],
      switches: new Set(Object.keys(values).filter((name) => values[name] === true)),
      operands: positionals,
      settings,
      readings,
      io: { ...io, env },
      ink: createInk(io),
      now: (io.now ?? Date.now)(),
    });
    const { warnings = [] } = answer;
    const output = values.json === true ? escapeInvisible(JSON.stringify(answer.json)) : answer.text;
    const exitCode = await print(io.stdout, `${output}\n`, answer.exitCode ?? 0, answer.adviceIfUnprinted);
    if (warnings.length === 0) return exitCode;
    return await print(io.stderr, warnings.map((line) => `${prefix}: ${plain(line)}\n`).join(''), exitCode);
  } catch (error) {
    return printFailure(prefix, error, io);
  }
}

function checkOperands({ operands = [] }: Command, values: readonly string[]): void {
  if (values.length > operands.length && operands.at(-1)?.endsWith('…') !== true)
    throw new UsageError('too many arguments');
  const missing = operands.slice(values.length).filter((name) => !name.startsWith('['));
  if (missing.length > 0) throw new UsageError(`missing ${missing.join(' and ')}`);
}

function listHelp(prefix: string, about: string, commands: readonly ListedCommand[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map((row) => `  ${row.name.padEnd(width)}  ${row.about}`);
  const note = `${prefix} COMMAND --help shows its flags.`;
  return [`Usage: ${prefix} COMMAND [OPTIONS]`, '', `${about}.`, '', ...lines, '', note].join('\n');
}

function helpOf({ name, operands = [], about, flags }: Command): string {
  const lines = Object.entries({ ...flags, ...COMMON_FLAGS }).map(
    ([flag, help]) => `  ${`--${flag}`.padEnd(23)}${help.replaceAll('\n', `\n${' '.repeat(25)}`)}`,
  );
  const note = 'The other settings of the server are flags here, too.';
  return [`Usage: gatefold ${[name, ...operands].join(' ')} [OPTIONS]`, '', `${about}.`, '', ...lines, '', note].join(
    '\n',
  );
}

function printFailure(prefix: string, error: unknown, io: CommandIo): Promise<ExitCode> {
  // `parseCommandLine` throws a SettingsError for a wrong flag.
  const isUsage = error instanceof UsageError || error instanceof config.SettingsError;
  const advice = isUsage ? `; see ${prefix} --help` : '';
  return print(io.stderr, `${prefix}: ${plain(lineOf(error))}${advice}\n`, isUsage ? 2 : 1);
}

export function lineOf(error: unknown): string {
  return errorMessage(error).replaceAll(/\s+/g, ' ');
}

/**
 * Writes a text. Returns `exitCode`, also when the reader has closed the pipe, and 1 after any other failure.
 *
 * @throws CommandError with `adviceIfUnprinted`, if it is given, after any failure
 */
export function print(
  stream: NodeJS.WritableStream,
  text: string,
  exitCode: ExitCode,
  adviceIfUnprinted?: string,
): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    // Without a listener for `error`, a closed pipe would end the process with a stack trace.
    const fail = (error: Error) => {
      if (adviceIfUnprinted !== undefined)
        return reject(new CommandError(`Cannot print: ${error.message}; ${adviceIfUnprinted}`));
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

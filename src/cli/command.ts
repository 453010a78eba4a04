// What the commands have in common: the words after a command's name, the settings among them, one answer on standard
// output as text or JSON, errors in one line on standard error, exit codes. It knows no command.
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { flagOf, readSettings, type SettingReading, type Settings, SettingsError, settingRows, settingsOf } from '../base/config.ts';
import { createInk, type Ink, plain } from './ink.ts';

/** The first word of the process that loads a folder for a command; nobody types it. */
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

export interface Command {
  readonly name: string;
  /** The words behind the name, as help shows them. */
  readonly usage: string;
  readonly about: string;
  /** A line a flag of its own. */
  readonly help: readonly string[];
  readonly options: NonNullable<ParseArgsConfig['options']>;
  /** Names of the words that must follow. */
  readonly operands: readonly string[];
  /** Settings that make no sense are for the command to tell; without: they are refused. */
  readonly takesBadSettings?: true;
  readonly run: (call: Call) => Promise<Answer>;
}

export interface Call {
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly operands: readonly string[];
  /** Folders are absolute. */
  readonly settings: Settings;
  readonly readings: readonly SettingReading[];
  readonly io: CommandIo;
  readonly ink: Ink;
}

export interface Answer {
  readonly json: unknown;
  /** For people, without the last line feed. */
  readonly text: string;
  readonly exitCode: ExitCode;
  /** Lines for standard error. */
  readonly complaints?: readonly string[];
}

const COMMON_HELP = [
  '--controllers-dir DIR  The folder of controllers; default: CONTROLLERS_DIR, else ./controllers',
  '--data-dir DIR         The folder of the tables; default: DATA_DIR, else ./data',
  '--json                 Print one JSON value',
  '--help                 Print this',
];

export async function runCommand(command: Command, argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const title = `gatefold ${command.name}`;
  try {
    const words = parseWords(command, argv);
    if (words.wantsHelp) return await print(io.stdout, `${helpOf(command)}\n`, 0);
    if (words.operands.length !== command.operands.length) {
      throw new UsageError(command.operands.length === 0 ? 'there is a word too many' : `it takes ${command.operands.join(' and ')}`);
    }
    const readings = readSettings(io.env, words.settings, { cores: availableParallelism() });
    const bad = readings.find(({ problem }) => problem !== undefined);
    if (bad?.problem !== undefined && !command.takesBadSettings) throw new (bad.source === 'flag' ? UsageError : Refused)(bad.problem);
    const { controllersDir, dataDir, ...others } = settingsOf(readings);
    const settings = { ...others, controllersDir: resolve(io.cwd, controllersDir), dataDir: resolve(io.cwd, dataDir) };
    const answer = await command.run({ options: words.options, operands: words.operands, settings, readings, io, ink: createInk(io) });
    await print(io.stdout, `${words.wantsJson ? JSON.stringify(answer.json) : answer.text}\n`, 0);
    const complaints = (answer.complaints ?? []).map((line) => `${title}: ${plain(line)}\n`).join('');
    return complaints === '' ? answer.exitCode : await print(io.stderr, complaints, answer.exitCode);
  } catch (error) {
    return printFailure(title, error, io);
  }
}

interface Words {
  readonly options: Call['options'];
  readonly operands: readonly string[];
  /** The flags that are settings, for the server's own reading. */
  readonly settings: readonly string[];
  readonly wantsJson: boolean;
  readonly wantsHelp: boolean;
}

function parseWords(command: Command, argv: readonly string[]): Words {
  const flags = new Set(settingRows({ cores: 1 }).map((row) => flagOf(row.name).slice(2)));
  const options: NonNullable<ParseArgsConfig['options']> = {
    ...Object.fromEntries(Array.from(flags, (name) => [name, { type: 'string' as const }])),
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    ...command.options,
  };
  const { values, positionals, tokens } = parseStrictly(argv, options);
  const names = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw new UsageError(`--${repeated}: given twice`);
  return {
    options: values as Call['options'],
    operands: positionals,
    settings: tokens.flatMap((token) => (token.kind === 'option' && flags.has(token.name) ? [`--${token.name}=${token.value}`] : [])),
    wantsJson: values.json === true,
    wantsHelp: values.help === true,
  };
}

function parseStrictly(argv: readonly string[], options: NonNullable<ParseArgsConfig['options']>) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, tokens: true });
  } catch (error) {
    // The first sentence; the rest of it is about `--` and positional arguments.
    throw new UsageError((error as Error).message.split(/\. |\n/, 1)[0]);
  }
}

function helpOf({ name, usage, about, help }: Command): string {
  const lines = [...help, ...COMMON_HELP].map((line) => `  ${line}`);
  const title = [name, usage].filter((word) => word !== '').join(' ');
  return [`Usage: gatefold ${title}`, '', `${about}.`, '', ...lines, '', 'The other settings of the server are flags here, too.'].join(
    '\n',
  );
}

export function printFailure(title: string, error: unknown, io: CommandIo): Promise<ExitCode> {
  const isUsage = error instanceof UsageError || error instanceof SettingsError;
  const message = plain((error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' '));
  return print(io.stderr, `${title}: ${message}${isUsage ? `; see ${title} --help` : ''}\n`, isUsage ? 2 : 1);
}

/** Resolves when the text is on its way. A reader that has seen enough and gone is no failure; a full disk is. */
export function print(stream: NodeJS.WritableStream, text: string, exitCode: ExitCode): Promise<ExitCode> {
  return new Promise((done) => {
    // Without a listener a closed pipe would end the process with a stack.
    const fail = (error: Error) => done((error as NodeJS.ErrnoException).code === 'EPIPE' ? exitCode : 1);
    stream.once('error', fail);
    stream.write(text, (error) => {
      if (error) return fail(error);
      stream.off('error', fail);
      done(exitCode);
    });
  });
}

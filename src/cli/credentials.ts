// `gatefold credentials issue|list|rotate|revoke|check`: words in, one answer out, an exit code back. It reads no environment
// and touches no stream but those it is given. What happens to the table is credentials/changes.ts.
import { existsSync } from 'node:fs';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { type SettingRow, settingRows } from '../base/config.ts';
import { identifyCaller } from '../credentials/identify.ts';
import { listCredentials } from '../credentials/listing.ts';
import { compile } from '../credentials/live-table.ts';
import { checkSessionToken, deriveSessionKey, hasSessionShape } from '../credentials/session.ts';
import { readSessionKey } from '../credentials/session-key.ts';
import { readContent } from '../credentials/table-file.ts';
import { tokenFault } from '../credentials/token.ts';
import { createRow, revokeRow, rotateRow } from '../credentials/write/changes.ts';
import { StoreError, tablePath, updateTable } from '../credentials/write/store.ts';
import { drawTable, printable } from './credentials-table.ts';
import { expiryOf, handlerOf, methodsOf, overlapOf, plainText, UsageError } from './credentials-values.ts';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** 0: done; 1: refused; 2: called wrongly. */
export type ExitCode = 0 | 1 | 2;

interface Call {
  /** The flags that take a value. */
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly operand: string;
  readonly dataDir: string;
  readonly io: CommandIo;
  readonly now: number;
}

interface Answer {
  readonly json: unknown;
  /** For people, without the last line feed. */
  readonly text: string;
  readonly exitCode?: ExitCode;
  /** What to say when the answer cannot be printed, for it cannot be had again. */
  readonly ifUnprinted?: string;
}

interface Command {
  readonly usage: string;
  readonly about: string;
  readonly help: readonly string[];
  readonly options: NonNullable<ParseArgsConfig['options']>;
  readonly operand?: string;
  readonly run: (call: Call) => Promise<Answer>;
}

const COMMON_OPTIONS = {
  'data-dir': { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies Command['options'];

const COMMON_HELP = [
  '--data-dir DIR      The folder of production.json; default: DATA_DIR, else ./data',
  '--json              Print one JSON value',
  '--help              Print this',
];

const COMMANDS: ReadonlyMap<string, Command> = new Map([
  [
    'issue',
    {
      usage: 'issue --name NAME [--methods GET,POST] [--expires ISO-DATE|90d] [--handler GROUP] [--description TEXT]',
      about: 'Make a credential and print its token, this once',
      help: [
        '--name NAME         Who will use it',
        '--methods LIST      The HTTP methods it may use, with commas; default: all',
        '--expires WHEN      A day or time in UTC (2030-01-31, 2030-01-31T12:00:00Z) or a span (12h, 90d, 2w); default: never',
        '--handler GROUP     The handler group that answers it; default: Sdk',
        '--description TEXT  A note; controllers see it',
      ],
      options: {
        name: { type: 'string' },
        methods: { type: 'string' },
        expires: { type: 'string' },
        handler: { type: 'string' },
        description: { type: 'string' },
      },
      run: issue,
    },
  ],
  ['list', { usage: 'list', about: 'Show the table, without hashes', help: [], options: {}, run: list }],
  [
    'rotate',
    {
      usage: 'rotate ID [--overlap 7d]',
      about: 'Make a new secret under the same id and print its token, this once',
      help: ['--overlap SPAN      How long the old secret stays good (12h, 7d, 2w); default: it ends at once'],
      options: { overlap: { type: 'string' } },
      operand: 'ID',
      run: rotate,
    },
  ],
  [
    'revoke',
    { usage: 'revoke ID', about: 'End a credential and its sessions, for good', help: [], options: {}, operand: 'ID', run: revoke },
  ],
  ['check', { usage: 'check', about: 'Read a token from standard input and say whether it is live', help: [], options: {}, run: check }],
]);

/** @param argv the words after `gatefold credentials` */
export async function runCredentials(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [name = '', ...words] = argv;
  const title = `gatefold credentials${COMMANDS.has(name) ? ` ${name}` : ''}`;
  try {
    if (name === '--help' || name === '-h' || name === 'help') return await print(io.stdout, `${helpOfAll()}\n`, 0);
    const command = COMMANDS.get(name);
    if (command === undefined) {
      throw new UsageError(name === '' ? 'a command is missing' : `${JSON.stringify(name)} is none of its commands`);
    }
    const { options, operands, wantsJson, wantsHelp } = parseWords(words, command);
    if (wantsHelp) return await print(io.stdout, `${helpOf(command)}\n`, 0);
    if (operands.length !== (command.operand === undefined ? 0 : 1)) {
      throw new UsageError(command.operand === undefined ? 'there is a word too many' : `it takes one ${command.operand}`);
    }
    const call = { options, operand: operands[0] ?? '', dataDir: dataDirOf(options, io), io, now: (io.now ?? Date.now)() };
    const answer = await command.run(call);
    const text = wantsJson ? JSON.stringify(answer.json) : answer.text;
    return await print(io.stdout, `${text}\n`, answer.exitCode ?? 0, answer.ifUnprinted);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const isUsage = error instanceof UsageError;
    const line = `${title}: ${message.replaceAll(/\s+/g, ' ')}${isUsage ? `; see ${title} --help` : ''}\n`;
    return await print(io.stderr, line, isUsage ? 2 : 1).catch((): ExitCode => (isUsage ? 2 : 1));
  }
}

interface Words {
  readonly options: Call['options'];
  readonly operands: readonly string[];
  readonly wantsJson: boolean;
  readonly wantsHelp: boolean;
}

function parseWords(words: readonly string[], command: Command): Words {
  try {
    const options = { ...COMMON_OPTIONS, ...command.options };
    const { values, positionals, tokens } = parseArgs({ args: [...words], options, allowPositionals: true, tokens: true });
    const names = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const repeated = names.find((name, index) => names.indexOf(name) !== index);
    if (repeated !== undefined) throw new UsageError(`--${repeated} is given twice`);
    const { json = false, help = false, ...valued } = values;
    return { options: valued as Call['options'], operands: positionals, wantsJson: json, wantsHelp: help };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message.split(/[.\n]/, 1)[0]);
  }
}

async function issue({ options, dataDir, now }: Call): Promise<Answer> {
  const { name, description, handler, methods, expires } = options;
  if (name === undefined) throw new UsageError('--name is missing');
  const request = {
    name: plainText(name, '--name'),
    description: description === undefined ? undefined : plainText(description, '--description'),
    handler: handler === undefined ? undefined : handlerOf(handler),
    methods: methods === undefined ? undefined : methodsOf(methods),
    expiresAt: expires === undefined ? undefined : expiryOf(expires, now),
  };
  const { token, row } = createRow(request, now);
  await updateTable(dataDir, (table) => table.append(row));
  const { hash: _hash, ...shown } = row;
  return {
    json: { ...shown, token: token.token },
    text: `Issued ${token.id} (${request.name}), ${untilWhen(request.expiresAt)}. The token, shown this once:\n\n${token.token}\n`,
    ifUnprinted: `the row ${token.id} was made: revoke it`,
  };
}

async function rotate({ options, operand: id, dataDir, now }: Call): Promise<Answer> {
  const overlap = options.overlap === undefined ? 0 : overlapOf(options.overlap);
  const { token, name, previousUntil } = await updateTable(dataDir, (table) => rotateRow(table, id, overlap, now));
  const until = previousUntil === undefined ? undefined : new Date(previousUntil).toISOString();
  const old = until === undefined ? 'the old secret has ended' : `the old secret is good until ${until}`;
  return {
    json: { id, name, token: token.token, ...(until === undefined ? {} : { previous_expires_at: until }) },
    text: `Rotated ${id} (${printable(name)}), ${old}. The token, shown this once:\n\n${token.token}\n`,
    ifUnprinted: `the secret of ${id} was changed: rotate it again`,
  };
}

async function revoke({ operand: id, dataDir, now }: Call): Promise<Answer> {
  const { name, revokedAt } = await updateTable(dataDir, (table) => revokeRow(table, id, now));
  return { json: { id, name, revoked_at: revokedAt }, text: `Revoked ${id} (${printable(name)}), as of ${revokedAt}.` };
}

async function list({ dataDir, now }: Call): Promise<Answer> {
  if (!existsSync(dataDir)) throw new StoreError(`Cannot read ${tablePath(dataDir)}: the folder does not exist`);
  const rows = listCredentials(tablePath(dataDir), now);
  return { json: rows, text: rows.length === 0 ? 'There are no credentials.' : drawTable(rows) };
}

async function check({ dataDir, io, now }: Call): Promise<Answer> {
  const text = (await readAll(io.stdin)).replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (text === '') throw new UsageError('there is no token on standard input');
  const token = text.replace(/^bearer +/i, '');
  const isSession = token.startsWith('gfs_');
  const key = isSession ? sessionKeyOf(dataDir, io) : undefined;
  const fault = isSession ? undefined : tokenFault(token);
  const shape = isSession ? hasSessionShape(token) : fault !== 'shape';
  const checksum = shape && (isSession ? key !== undefined && 'rowId' in checkSessionToken(key, token, 0) : fault === undefined);
  const table = compile(tablePath(dataDir), readContent(tablePath(dataDir)));
  const caller = identifyCaller(text, { table, now, sessionKey: () => key });
  const live = caller.kind === 'row';
  const about =
    caller.kind === 'row' ? { id: caller.row.id, name: caller.row.name } : { reason: caller.kind === 'refused' ? caller.reason : FOREIGN };
  return {
    json: { shape, checksum, live, ...about },
    text: [
      `shape:    ${shape ? 'right' : 'wrong'}`,
      `checksum: ${checksum ? 'right' : 'wrong'}`,
      `live:     ${caller.kind === 'row' ? `yes, ${caller.row.id} (${printable(caller.row.name)})` : `no, ${about.reason}`}`,
    ].join('\n'),
    exitCode: live ? 0 : 1,
  };
}

const FOREIGN = 'it is not a token of ours';

/** Far longer than any token; whoever pipes a disk in gets an answer. */
const MAX_INPUT = 64 * 1024;

async function readAll(stdin: CommandIo['stdin']): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    length += chunk.length;
    if (length > MAX_INPUT) throw new UsageError('there is more on standard input than a token');
  }
  // As a header value would arrive, so that what is checked is what a request is checked for.
  return Buffer.concat(chunks).toString('latin1');
}

function sessionKeyOf(dataDir: string, { env }: CommandIo): Buffer | undefined {
  const text = env.SESSION_KEY || readSessionKey(dataDir);
  return text === undefined ? undefined : deriveSessionKey(text);
}

function dataDirOf(options: Call['options'], { env }: CommandIo): string {
  const setting = settingRows({ cores: 1 }).find((row) => row.key === 'dataDir') as SettingRow;
  const given = options['data-dir'];
  if (given === '') throw new UsageError('--data-dir: the value is missing');
  const text = given ?? (env[setting.name] || setting.fallback);
  try {
    return setting.parse(text) as string;
  } catch (error) {
    throw new UsageError(`--data-dir: the value is not ${(error as Error).message}`);
  }
}

function untilWhen(time: number | undefined): string {
  return time === undefined ? 'it does not expire' : `it expires ${new Date(time).toISOString()}`;
}

function helpOfAll(): string {
  const lines = [...COMMANDS].map(([name, command]) => `  ${name.padEnd(8)}${command.about}`);
  return ['Usage: gatefold credentials COMMAND [OPTIONS]', '', ...lines, '', 'gatefold credentials COMMAND --help says more.'].join('\n');
}

function helpOf(command: Command): string {
  const lines = [...command.help, ...COMMON_HELP].map((line) => `  ${line}`);
  return [`Usage: gatefold credentials ${command.usage}`, '', `${command.about}.`, '', ...lines].join('\n');
}

function print(stream: NodeJS.WritableStream, text: string, exitCode: ExitCode, ifUnprinted = ''): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    // Without a listener a closed pipe would end the process with a stack.
    const fail = (error: Error) => reject(new Error(`Cannot print: ${error.message}${ifUnprinted === '' ? '' : `; ${ifUnprinted}`}`));
    stream.once('error', fail);
    stream.write(text, (error) => {
      if (error) return fail(error);
      stream.off('error', fail);
      resolve(exitCode);
    });
  });
}

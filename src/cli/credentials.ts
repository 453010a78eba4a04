// `gatefold credentials issue|list|rotate|revoke|check`: the flags of each, what they mean, and what is printed. The
// changes to the table are credentials/write/changes.ts; what may be shown of it is credentials/table/listing.ts.

import { existsSync } from 'node:fs';
import { METHODS } from '../base/builtins.ts';
import { describeFailure } from '../base/failure.ts';
import { alignColumns, plain } from '../base/ink.ts';
import { makeFolder } from '../base/make-folder.ts';
import { parseRate, RATE_FORM } from '../base/rate.ts';
import { identifyCaller } from '../credentials/identify.ts';
import { checkSessionToken, deriveSessionKey, hasSessionShape, readSessionKey } from '../credentials/session.ts';
import { parseSpan, parseTime } from '../credentials/table/instant.ts';
import { type Listed, listCredentials } from '../credentials/table/listing.ts';
import { readTable } from '../credentials/table/live-table.ts';
import { isHandlerName, isScope } from '../credentials/table/table.ts';
import { hasTokenShape, parseToken } from '../credentials/token.ts';
import { createRow, revokeRow, rotateRow } from '../credentials/write/changes.ts';
import { tablePath, updateTable } from '../credentials/write/store.ts';
import { groupNameOf, listControllers } from '../groups/naming.ts';
import { type Answer, type Call, type Command, type CommandGroup, Refused, UsageError } from './command.ts';

const ISSUE: Command = {
  name: 'credentials issue',
  usage: '--name NAME [--methods GET,POST] [--expires ISO-DATE|90d] [--groups LIST] [--scopes LIST] …',
  about: 'Make a credential and print its token, this once',
  help: [
    '--name NAME            Who will use it',
    '--methods LIST         The HTTP methods it may use, with commas; default: all',
    '--expires WHEN         A day or time in UTC (2030-01-31, 2030-01-31T12:00:00Z) or a span (45s, 30m, 12h, 90d, 2w); default: never',
    '--groups LIST          The handler groups it may call by their URLs, with commas, or *',
    '--handler GROUP        Instead of --groups: the one group that answers all its calls; default: Sdk',
    '--scopes LIST          What it has leave for, with commas: orders:read,orders:write; controllers see it',
    '--limit RATE           How often it may call: 100/s, "5000/h burst 200"; default: as often as it likes',
    '--description TEXT     A note; controllers see it',
  ],
  options: {
    name: { type: 'string' },
    methods: { type: 'string' },
    expires: { type: 'string' },
    groups: { type: 'string' },
    handler: { type: 'string' },
    scopes: { type: 'string' },
    limit: { type: 'string' },
    description: { type: 'string' },
  },
  operands: [],
  reads: ['controllersDir', 'dataDir'],
  run: issue,
};

const LIST: Command = {
  name: 'credentials list',
  usage: '',
  about: 'Show the table, without hashes',
  help: [],
  options: {},
  operands: [],
  reads: ['dataDir'],
  run: list,
};

const ROTATE: Command = {
  name: 'credentials rotate',
  usage: 'ID [--overlap 7d]',
  about: 'Make a new secret under the same id and print its token, this once',
  help: ['--overlap SPAN         How long the old secret stays good (30m, 12h, 7d); default: it ends at once'],
  options: { overlap: { type: 'string' } },
  operands: ['ID'],
  reads: ['dataDir'],
  run: rotate,
};

const REVOKE: Command = {
  name: 'credentials revoke',
  usage: 'ID',
  about: 'End a credential and its sessions, for good',
  help: [],
  options: {},
  operands: ['ID'],
  reads: ['dataDir'],
  run: revoke,
};

const CHECK: Command = {
  name: 'credentials check',
  usage: '',
  about: 'Read a token from standard input and say whether it is live',
  help: [],
  options: {},
  operands: [],
  reads: ['dataDir', 'sessionKey'],
  run: check,
};

export const command: CommandGroup = {
  about: 'Issue, list, rotate, revoke and check application credentials',
  commands: [ISSUE, LIST, ROTATE, REVOKE, CHECK],
};

async function issue({ options, settings, now }: Call): Promise<Answer> {
  const { name, description, groups, handler, scopes, methods, limit, expires } = options;
  if (name === undefined) throw new UsageError('--name is missing');
  if (groups !== undefined && handler !== undefined) throw new UsageError('--groups and --handler exclude each other');
  const request = {
    name: plainText(name, '--name'),
    description: description === undefined ? undefined : plainText(description, '--description'),
    groups: groups === undefined ? undefined : groups === '*' ? ('*' as const) : listOf(groups, '--groups', groupOf),
    handler: handler === undefined ? undefined : groupOf(handler, '--handler'),
    scopes: scopes === undefined ? undefined : listOf(scopes, '--scopes', scopeOf),
    methods: methods === undefined ? undefined : listOf(methods, '--methods', methodOf),
    limit: limit === undefined ? undefined : limitOf(limit),
    expiresAt: expires === undefined ? undefined : expiryOf(expires, now),
  };
  const { token, row } = createRow(request, now);
  makeDataFolder(settings.dataDir);
  await updateTable(settings.dataDir, (table) => table.append(row));
  const { hash: _hash, ...shown } = row;
  return {
    json: { ...shown, token: token.token },
    text: `Issued ${token.id} (${request.name}), ${untilWhen(request.expiresAt)}. The token, shown this once:\n\n${token.token}\n`,
    complaints: missingGroups(request.groups ?? [request.handler ?? 'Sdk'], settings.controllersDir).map((complaint) =>
      handler === undefined && groups === undefined ? `${complaint}, ${WITHOUT_SDK}` : complaint,
    ),
    ifUnprinted: `the row ${token.id} was made: revoke it`,
  };
}

/** What most people want who do not say what they want. */
const WITHOUT_SDK = "so each call with this token is a 500. One for the groups that URLs name: --groups '*'";

function limitOf(text: string): string {
  if (parseRate(text) === undefined) throw new UsageError(`--limit must be ${RATE_FORM}`);
  return text;
}

/** Whoever sets out has no folder yet. Its tables are secrets. */
function makeDataFolder(dir: string): void {
  try {
    makeFolder(dir, 0o700);
  } catch (error) {
    throw new Refused(`Cannot make ${dir}: ${describeFailure(error)}`);
  }
}

/** The token is good all the same: the controller may come later. */
function missingGroups(names: readonly string[] | '*', dir: string): string[] {
  if (names === '*') return [];
  try {
    const known = listControllers(dir);
    const missing = names.filter((name) => !known.has(groupNameOf(name) ?? ''));
    return missing.map((name) => `there is no handler group ${name} in ${dir} yet`);
  } catch (error) {
    return [`whether there is a handler group ${names.join(', ')} was not checked: ${dir}: ${describeFailure(error)}`];
  }
}

async function rotate({ options, operands: [id = ''], settings: { dataDir }, now }: Call): Promise<Answer> {
  const overlap = options.overlap === undefined ? 0 : overlapOf(options.overlap);
  const { token, name, previousUntil } = await updateTable(dataDir, (table) => rotateRow(table, id, overlap, now));
  const until = previousUntil === undefined ? undefined : new Date(previousUntil).toISOString();
  const old = until === undefined ? 'the old secret has ended' : `the old secret is good until ${until}`;
  return {
    json: { id, name, token: token.token, ...(until === undefined ? {} : { previous_expires_at: until }) },
    text: `Rotated ${id} (${shorten(name)}), ${old}. The token, shown this once:\n\n${token.token}\n`,
    ifUnprinted: `the secret of ${id} was changed: rotate it again`,
  };
}

async function revoke({ operands: [id = ''], settings: { dataDir }, now }: Call): Promise<Answer> {
  const { name, revokedAt } = await updateTable(dataDir, (table) => revokeRow(table, id, now));
  return { json: { id, name, revoked_at: revokedAt }, text: `Revoked ${id} (${shorten(name)}), as of ${revokedAt}.` };
}

async function list({ settings: { dataDir }, now }: Call): Promise<Answer> {
  if (!existsSync(dataDir)) throw new Refused(`Cannot read ${tablePath(dataDir)}: the folder does not exist`);
  const rows = listCredentials(tablePath(dataDir), now);
  return { json: rows, text: rows.length === 0 ? 'There are no credentials.' : drawTable(rows) };
}

async function check({ settings, io, now }: Call): Promise<Answer> {
  const { dataDir } = settings;
  const text = (await readAll(io.stdin)).replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (text === '') throw new UsageError('there is no token on standard input');
  const token = text.replace(/^bearer +/i, '');
  const isSession = token.startsWith('gfs_');
  const key = isSession ? sessionKeyOf(settings) : undefined;
  const shape = isSession ? hasSessionShape(token) : hasTokenShape(token);
  const isSigned = () => key !== undefined && 'rowId' in checkSessionToken(key, token, 0);
  const checksum = shape && (isSession ? isSigned() : parseToken(token) !== undefined);
  const table = readTable(tablePath(dataDir));
  const caller = identifyCaller(text, { table, now, sessionKey: () => key });
  const live = caller.kind === 'row';
  const about =
    caller.kind === 'row'
      ? { id: caller.row.id, name: caller.row.name }
      : { reason: caller.kind === 'refused' ? caller.reason : FOREIGN };
  return {
    json: { shape, checksum, live, ...about },
    text: [
      `shape:    ${shape ? 'right' : 'wrong'}`,
      `checksum: ${checksum ? 'right' : 'wrong'}`,
      `live:     ${caller.kind === 'row' ? `yes, ${caller.row.id} (${shorten(caller.row.name)})` : `no, ${about.reason}`}`,
    ].join('\n'),
    exitCode: live ? 0 : 1,
  };
}

const FOREIGN = 'it is not a token of ours';

/** Far longer than any token. */
const MAX_INPUT = 64 * 1024;

async function readAll(stdin: Call['io']['stdin']): Promise<string> {
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

function sessionKeyOf({ sessionKey, dataDir }: Call['settings']): Buffer | undefined {
  const text = sessionKey ?? readSessionKey(dataDir);
  return text === undefined ? undefined : deriveSessionKey(text);
}

function untilWhen(time: number | undefined): string {
  return time === undefined ? 'it does not expire' : `it expires ${new Date(time).toISOString()}`;
}

function plainText(text: string, flag: string): string {
  if (text.trim() === '') throw new UsageError(`${flag}: the value is empty`);
  if (text.length > 200) throw new UsageError(`${flag}: the value has ${text.length} characters, the limit is 200`);
  if (/\p{Cc}/u.test(text)) throw new UsageError(`${flag}: the value has control characters`);
  return text;
}

function listOf(text: string, flag: string, parse: (item: string, flag: string) => string): string[] {
  return [...new Set(text.split(',').map((item) => parse(item.trim(), flag)))];
}

function groupOf(text: string, flag: string): string {
  if (!isHandlerName(text)) throw new UsageError(`${flag}: ${JSON.stringify(text)} is not the name of a handler group`);
  return text;
}

function scopeOf(text: string, flag: string): string {
  if (!isScope(text)) throw new UsageError(`${flag}: ${JSON.stringify(text)} is not a scope such as orders:write`);
  return text;
}

function methodOf(text: string, flag: string): string {
  const method = text.toUpperCase();
  if (!METHODS.includes(method)) throw new UsageError(`${flag}: ${JSON.stringify(method)} is not an HTTP method`);
  return method;
}

function expiryOf(text: string, now: number): number {
  const span = parseSpan(text);
  const time = span === undefined ? parseTime(text) : now + span;
  if (time === undefined)
    throw new UsageError(`--expires: ${JSON.stringify(text)} is not a time such as 2030-01-31 or 90d`);
  if (time <= now) throw new UsageError(`--expires: ${text} is over already`);
  return time;
}

function overlapOf(text: string): number {
  const span = parseSpan(text);
  if (span === undefined)
    throw new UsageError(`--overlap: ${JSON.stringify(text)} is not a span such as 30m, 12h or 7d`);
  return span;
}

const HEADER = ['ID', 'NAME', 'STATE', 'EXPIRES', 'METHODS', 'HANDLER', 'GROUPS', 'SCOPES'];

function drawTable(rows: readonly Listed[]): string {
  const lines = rows.map((row) => [
    row.id ?? '-',
    row.name,
    row.reason === undefined ? row.state : `${row.state}: ${row.reason}`,
    row.expires_at ?? ifGood(row, 'never'),
    row.methods?.join(',') ?? ifGood(row, 'all'),
    row.handler ?? '-',
    row.groups === '*' ? '*' : (row.groups?.join(',') ?? '-'),
    row.scopes?.join(',') ?? '-',
  ]);
  return alignColumns([HEADER, ...lines.map((line) => line.map(shorten))])
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}

function ifGood(row: Listed, text: string): string {
  return row.state === 'quarantined' ? '-' : text;
}

/** A name in a table edited by hand, or registered by a stranger, must neither steer the terminal nor fill it. */
function shorten(text: string): string {
  return plain(text).slice(0, 80);
}

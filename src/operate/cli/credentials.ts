// `gatefold credentials issue|list|rotate|revoke|check`. callers/credentials/table/listing.ts chooses what is shown.
import { existsSync } from 'node:fs';
import { describeFailure, explainFailure } from '../../base/failure.ts';
import { groupNameOf } from '../../base/group-name.ts';
import { alignColumns, plain } from '../../base/ink.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { identifyCaller } from '../../callers/credentials/identify.ts';
import * as sessions from '../../callers/credentials/session.ts';
import type { ListedRow } from '../../callers/credentials/table/listing.ts';
import { hasTokenShape, parseToken } from '../../callers/credentials/token.ts';
import { createRow, pruneRows, revokeRow, rotateRow } from '../../callers/credentials/write/changes.ts';
import { tablePath } from '../../callers/credentials/write/table-file.ts';
import { listControllers } from '../../live/load/naming.ts';
import { type Answer, type Command, type CommandCall, CommandError, UsageError } from './command.ts';
import { parseIssueFlags, parseOverlap, parseRevokedBefore } from './credential-flags.ts';
import { copyWarnings, editTable, listRows, loadTable } from './credentials-table.ts';

const READS: Command['reads'] = ['controllersDir', 'dataDir', 'store'];

export const command: readonly Command[] = [
  {
    name: 'credentials issue',
    about: 'Make a credential and print its token, this once',
    flags: {
      'name NAME': 'Who will use it; it must be given',
      'methods LIST': 'The HTTP methods it may use, with commas; default: all',
      'expires WHEN':
        'A day or time in UTC (2030-01-31, 2030-01-31T12:00:00Z) or a span (45s, 30m, 12h, 90d, 2w); default: never',
      'groups LIST': 'The handler groups it may call by their URLs, with commas, or *',
      'handler GROUP': 'Instead of --groups: the one group that answers all its calls; default: Sdk',
      'scopes LIST': 'Its permissions, with commas: orders:read,orders:write; controllers see them',
      'limit RATE': 'How often it may call: 100/s, "5000/h burst 200"; default: no limit',
      'description TEXT': 'A note; controllers see it',
    },
    reads: READS,
    run: issue,
  },
  { name: 'credentials list', about: 'Show the table, without hashes', reads: READS, run: list },
  {
    name: 'credentials rotate',
    about: 'Make a new secret under the same id and print its token, this once',
    flags: { 'overlap SPAN': 'How long the old secret stays valid (30m, 12h, 7d); default: it ends at once' },
    operands: ['ID'],
    reads: READS,
    run: rotate,
  },
  {
    name: 'credentials revoke',
    about: 'End a credential and its sessions, for good',
    flags: {
      here: 'Only on this machine, without the store: for an emergency while the store is away',
      undo: 'With --here: make this machine follow the store again',
    },
    operands: ['ID'],
    reads: READS,
    run: revoke,
  },
  {
    name: 'credentials prune',
    about: 'Remove the rows that were revoked long ago',
    flags: { 'revoked-before WHEN': 'A day or time in UTC (2030-01-31), or a span before now (90d); it must be given' },
    reads: READS,
    run: prune,
  },
  {
    name: 'credentials check',
    about: 'Read a token from standard input and say whether it is live',
    reads: ['controllersDir', 'dataDir', 'sessionKey', 'store'],
    run: check,
  },
];

async function issue({ flagValues, settings, now }: CommandCall): Promise<Answer> {
  const request = parseIssueFlags(flagValues, now);
  const { token, row } = createRow(request, now);
  // Only its owner can read the folder of the table and of the session key.
  if (settings.store === undefined)
    explainFailure(`Cannot make ${settings.dataDir}`, () => makeFolder(settings.dataDir, 0o700));
  await editTable(settings, [], (table) => table.append(row));
  const { hash: _hash, ...shownFields } = row;
  const missing = describeMissingGroups(request.groups ?? [request.handler ?? 'Sdk'], settings.controllersDir);
  const { expiresAt } = request;
  const expiry = expiresAt === undefined ? 'it does not expire' : `it expires ${new Date(expiresAt).toISOString()}`;
  const isForSdk = request.groups === undefined && request.handler === undefined;
  return {
    json: { ...shownFields, token: token.token },
    text: `Issued ${token.id} (${request.name}), ${expiry}. The token, shown this once:\n\n${token.token}\n`,
    warnings: isForSdk ? missing.map((line) => `${line}, ${SDK_ADVICE}`) : missing,
    adviceIfUnprinted: `the row ${token.id} was added: revoke it`,
  };
}

/** Advice for a token that was issued without --groups and --handler: it calls only the group Sdk. */
const SDK_ADVICE = "so each call with this token is a 500. One for the groups that URLs name: --groups '*'";

/** Returns a warning for each group without a controller. The controller may come later, so this is no error. */
function describeMissingGroups(names: readonly string[] | '*', dir: string): string[] {
  if (names === '*') return [];
  try {
    const controllers = listControllers(dir);
    const missing = names.filter((name) => !controllers.has(groupNameOf(name) as string));
    return missing.map((name) => `there is no handler group ${name} in ${dir} yet`);
  } catch (error) {
    return [`cannot check that the handler group ${names.join(', ')} exists: ${dir}: ${describeFailure(error)}`];
  }
}

async function rotate({ flagValues, operands: [id = ''], settings, now }: CommandCall): Promise<Answer> {
  const overlap = parseOverlap(flagValues.overlap);
  const { token, name, previousUntil } = await editTable(settings, [id], (table) => rotateRow(table, id, overlap, now));
  const until = previousUntil === undefined ? undefined : new Date(previousUntil).toISOString();
  const oldSecret = until === undefined ? 'the old secret has ended' : `the old secret is valid until ${until}`;
  return {
    json: { id, name, token: token.token, previous_expires_at: until },
    text: `Rotated ${id} (${escapeAndShorten(name)}), ${oldSecret}. The token, shown this once:\n\n${token.token}\n`,
    adviceIfUnprinted: `the secret of ${id} was changed: rotate it again`,
  };
}

async function revoke({ operands: [id = ''], switches, settings, now }: CommandCall): Promise<Answer> {
  if (switches.has('undo') && !switches.has('here')) throw new UsageError('--undo needs --here');
  if (switches.has('here')) {
    if (settings.store === undefined) throw new UsageError('--here is for machines that share a store');
    const { revokeHere } = await import('./revoke-here.ts');
    return revokeHere(settings.dataDir, id, switches.has('undo'), now);
  }
  const { name, revokedAt } = await editTable(settings, [id], (table) => revokeRow(table, id, now));
  const text = `Revoked ${id} (${escapeAndShorten(name)}), as of ${revokedAt}.`;
  return { json: { id, name, revoked_at: revokedAt }, text };
}

async function prune({ flagValues, settings, now }: CommandCall): Promise<Answer> {
  const before = parseRevokedBefore(flagValues['revoked-before'], now);
  const count = await editTable(settings, undefined, (table) => pruneRows(table, before));
  const revokedBefore = new Date(before).toISOString();
  return {
    json: { removed: count, revoked_before: revokedBefore },
    text: `Removed ${count} rows that were revoked before ${revokedBefore}.`,
  };
}

async function list({ settings, now }: CommandCall): Promise<Answer> {
  const { dataDir, store } = settings;
  if (store === undefined && !existsSync(dataDir))
    throw new CommandError(`Cannot read ${tablePath(dataDir)}: the folder does not exist`);
  const table = await listRows(settings, now);
  const { rows } = table;
  const text = rows.length === 0 ? 'There are no credentials.' : drawTable(rows);
  return { json: rows, text, warnings: copyWarnings(table, settings) };
}

async function check({ settings, io, now }: CommandCall): Promise<Answer> {
  // `trim` would also remove a no-break space, for example, which a request would send as a part of the token.
  const text = (await readAll(io.stdin)).replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (text === '') throw new UsageError('there is no token on standard input');
  const token = text.replace(/^bearer +/i, '');
  const isSession = token.startsWith('gfs_');
  const keyText = isSession ? (settings.sessionKey ?? sessions.readSessionKey(settings.dataDir)) : undefined;
  const key = keyText === undefined ? undefined : sessions.deriveSessionKey(keyText);
  const hasRightShape = isSession ? sessions.hasSessionShape(token) : hasTokenShape(token);
  // A session token has a signature in the place of a checksum. The time 0 makes an expired session pass this check.
  const isSignatureRight = () => key !== undefined && 'rowId' in sessions.checkSessionToken(key, token, 0);
  const isChecksumRight = hasRightShape && (isSession ? isSignatureRight() : parseToken(token) !== undefined);
  const table = await loadTable(settings);
  const caller = identifyCaller(text, { table, now, sessionKey: () => key });
  const row = caller.kind === 'row' ? caller.row : undefined;
  const reason = caller.kind === 'refused' ? caller.reason : 'this is not a token of Gatefold';
  const shape = `shape:    ${hasRightShape ? 'right' : 'wrong'}`;
  const checksum = `checksum: ${isChecksumRight ? 'right' : 'wrong'}`;
  const live = `live:     ${row === undefined ? `no, ${reason}` : `yes, ${row.id} (${escapeAndShorten(row.name)})`}`;
  const details = row === undefined ? { reason } : { id: row.id, name: row.name };
  return {
    json: { shape: hasRightShape, checksum: isChecksumRight, live: row !== undefined, ...details },
    text: [shape, checksum, live].join('\n'),
    warnings: copyWarnings(table, settings),
    exitCode: row === undefined ? 1 : 0,
  };
}

/** Bytes of standard input for `credentials check`. Every token is far shorter. */
const MAX_INPUT = 64 * 1024;

async function readAll(stdin: CommandCall['io']['stdin']): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    length += chunk.length;
    if (length > MAX_INPUT) throw new UsageError('standard input is too long to be a token');
  }
  // Node decodes the header of a request in the same way.
  return Buffer.concat(chunks).toString('latin1');
}

const HEADER = ['ID', 'NAME', 'STATE', 'EXPIRES', 'METHODS', 'HANDLER', 'GROUPS', 'SCOPES'];

function drawTable(rows: readonly ListedRow[]): string {
  const lines = rows.map((row) => [
    row.id ?? '-',
    row.name,
    row.reason === undefined ? row.state : `${row.state}: ${row.reason}`,
    row.expires_at ?? unlessQuarantined(row, 'never'),
    row.methods?.join(',') ?? unlessQuarantined(row, 'all'),
    row.handler ?? '-',
    row.groups === '*' ? '*' : (row.groups?.join(',') ?? '-'),
    row.scopes?.join(',') ?? '-',
  ]);
  return alignColumns([HEADER, ...lines.map((line) => line.map(escapeAndShorten))])
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}

function unlessQuarantined(row: ListedRow, fallback: string): string {
  return row.state === 'quarantined' ? '-' : fallback;
}

/** Makes a name safe for the terminal: anybody may have registered a very long name, or one with control characters. */
function escapeAndShorten(text: string): string {
  return plain(text).slice(0, 80);
}

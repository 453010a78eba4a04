// The check of the session key, the table and its rows for `gatefold doctor`. No finding has a secret or a hash.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { METHODS } from '../../base/builtins.ts';
import { statOf } from '../../base/fingerprint.ts';
import { groupNameOf } from '../../base/group-name.ts';
import { trustedMode } from '../../base/system.ts';
import { readSessionKey } from '../../callers/credentials/session.ts';
import { type ListedRow, listCredentials } from '../../callers/credentials/table/listing.ts';
import { STORE_COPY } from '../../callers/credentials/write/editable-table.ts';
import { tablePath } from '../../callers/credentials/write/table-file.ts';
import { WRITABLE_BY_EVERYONE } from '../../live/load/naming.ts';
import type { Installation, Report } from './finding.ts';
import type { Inspection } from './inspection.ts';

const EXPIRY_NOTICE_MS = 30 * 86_400_000;
/** Maximum number of findings about rows, and of field names in one finding. One more finding counts the other rows. */
const MAX_NAMED = 50;

export function checkCredentials({ settings, now, inspection }: Installation, report: Report): void {
  try {
    if (settings.sessionKey === undefined) readSessionKey(settings.dataDir);
  } catch (error) {
    report('wrong', (error as Error).message);
  }
  checkFolder(settings, report);
  const path = tablePath(settings.dataDir);
  const { rows, isCopy } = listCredentials(path, now);
  if (isCopy && settings.store === undefined) report('warning', `it is ${STORE_COPY}`, path);
  const liveRows = rows.filter(({ state }) => state === 'live');
  checkFile(path, liveRows, report);
  const findings = [...rows.flatMap((row) => findingsOf(row, now)), ...missingGroups(liveRows, inspection)];
  for (const [level, message] of findings.slice(0, MAX_NAMED)) report(level, message, path);
  const unreadFields = new Set(liveRows.flatMap(({ other_fields = [] }) => other_fields));
  if (unreadFields.size > 0)
    report('note', `nothing reads these fields of its rows: ${[...unreadFields].slice(0, MAX_NAMED).join(', ')}`, path);
  const others = findings.slice(MAX_NAMED);
  if (others.length === 0) return;
  const level = others.some(([level]) => level === 'wrong') ? 'wrong' : 'warning';
  report(level, `${others.length} more of the kind; gatefold credentials list shows all`, path);
}

/** A user who can write to the folder can replace every file in it, whatever the mode of the file is. */
function checkFolder({ dataDir, sessionKey }: Installation['settings'], report: Report): void {
  const modeOf = (path: string) => trustedMode(statOf(path) ?? { mode: 0 });
  if ((modeOf(dataDir) & WRITABLE_BY_EVERYONE) !== 0)
    report('wrong', 'every user of this machine can write to it, and so add a credential; chmod o-w', dataDir);
  const keyPath = join(dataDir, 'session.key');
  if (sessionKey === undefined && (modeOf(keyPath) & 0o004) !== 0)
    report('warning', 'every user of this machine can read it, and so make session tokens; chmod 600', keyPath);
}

function checkFile(path: string, liveRows: readonly ListedRow[], report: Report): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const mode = trustedMode(stats);
  if ((mode & WRITABLE_BY_EVERYONE) !== 0)
    report('wrong', 'every user of this machine can write to it, and so add a credential; chmod o-w', path);
  // The file has hashes, which are no secrets. Only a literal, the complete value of an Authorization header, is one.
  if (liveRows.some(({ literal }) => literal) && (mode & 0o044) !== 0)
    report('warning', 'it has literal header values, and others than its owner can read it', path);
}

type RowFinding = readonly [level: 'wrong' | 'warning', message: string];

function findingsOf(row: ListedRow, now: number): RowFinding[] {
  const credential = `credential ${JSON.stringify(row.name)}${row.id === undefined ? '' : ` (${row.id})`}`;
  if (row.state === 'quarantined') return [['wrong', `${credential} is invalid and was skipped: ${row.reason}`]];
  if (row.state === 'expired')
    return [['wrong', `${credential} expired at ${row.expires_at}; revoke it when it is no longer wanted`]];
  if (row.state !== 'live') return [];
  const findings: RowFinding[] = [];
  const warn = (message: string) => findings.push(['warning', `${credential} ${message}`]);
  if (row.expires_at !== undefined && Date.parse(row.expires_at) - now <= EXPIRY_NOTICE_MS)
    warn(`expires at ${row.expires_at}, within 30 days`);
  const unknownMethods = row.methods?.filter((method) => !METHODS.includes(method)) ?? [];
  if (unknownMethods.length > 0) warn(`is for ${unknownMethods.join(', ')}, a method that no request has`);
  const emptyList = row.methods?.length === 0 ? 'methods' : row.groups?.length === 0 ? 'groups' : undefined;
  if (emptyList !== undefined) warn(`may call nothing: its list of ${emptyList} is empty`);
  if (row.literal) warn('carries a literal header value; issue one that is kept as a hash');
  return findings;
}

function missingGroups(liveRows: readonly ListedRow[], inspection: Inspection | Error): RowFinding[] {
  if (inspection instanceof Error) return [];
  const served = new Set(inspection.groups.map(({ group }) => group));
  const named = liveRows.flatMap(({ handler, groups = [] }) => handler ?? (groups === '*' ? [] : groups));
  const missing = new Set(named.filter((name) => !served.has(groupNameOf(name) as string)));
  const describe = (name: string) => `credentials name the handler group ${name}, which is not in the folder`;
  return Array.from(missing, (name) => ['wrong', describe(name)]);
}

// What the doctor says of the credentials table and the session key: by name and id, never by secret, hash or header value.
import { statSync } from 'node:fs';
import { type Listed, listCredentials } from '../credentials/listing.ts';
import { readSessionKey } from '../credentials/session-key.ts';
import { tablePath } from '../credentials/write/store.ts';
import { groupNameOf, WRITABLE_BY_EVERYONE } from '../groups/naming.ts';
import type { Report } from './findings.ts';
import type { LoadedGroup } from './inspection.ts';

export interface CredentialCheck {
  readonly dataDir: string;
  /** The setting, if there is one. */
  readonly sessionKey: string | undefined;
  /** Unix milliseconds. */
  readonly now: number;
  readonly groups: readonly LoadedGroup[] | undefined;
}

const SOON = 30 * 86_400_000;
/** A line a row is enough for so many rows; then their number is. */
const MAX_NAMED = 50;

export function checkCredentials({ dataDir, sessionKey, now, groups }: CredentialCheck, report: Report): void {
  try {
    if (sessionKey === undefined) readSessionKey(dataDir);
  } catch (error) {
    report('wrong', (error as Error).message);
  }
  const path = tablePath(dataDir);
  let rows: Listed[];
  try {
    rows = listCredentials(path, now);
  } catch (error) {
    return report('wrong', (error as Error).message);
  }
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) report('note', `there is no ${path}, so there are no credentials`);
  else if ((mode & WRITABLE_BY_EVERYONE) !== 0) report('wrong', 'every user of this machine can write to it, and so let anybody in', path);
  const live = rows.filter(({ state }) => state === 'live');
  if (mode !== undefined) report('note', `${live.length} of ${rows.length} credentials ${live.length === 1 ? 'is' : 'are'} live`, path);
  if (live.some(({ literal }) => literal) && mode !== undefined && (mode & 0o044) !== 0) {
    report('warning', 'it has literal header values, and others than its owner can read it', path);
  }
  const lines = [...rows.flatMap((row) => lineOf(row, now)), ...missingHandlers(live, groups)];
  for (const [level, message] of lines.slice(0, MAX_NAMED)) report(level, message, path);
  const unnamed = lines.slice(MAX_NAMED);
  if (unnamed.length > 0) {
    const isWrong = unnamed.some(([level]) => level === 'wrong');
    report(isWrong ? 'wrong' : 'warning', `${unnamed.length} more of the kind; gatefold credentials list shows all`, path);
  }
}

type Line = readonly [level: 'wrong' | 'warning', message: string];

function lineOf(row: Listed, now: number): Line[] {
  const who = `credential ${JSON.stringify(row.name)}${row.id === undefined ? '' : ` (${row.id})`}`;
  if (row.state === 'quarantined') return [['wrong', `${who} is bad and was left out: ${row.reason}`]];
  if (row.state === 'expired') return [['wrong', `${who} expired at ${row.expires_at}; revoke it when it is no longer wanted`]];
  if (row.state !== 'live') return [];
  const lines: Line[] = [];
  if (row.expires_at !== undefined && Date.parse(row.expires_at) - now <= SOON) {
    lines.push(['warning', `${who} expires at ${row.expires_at}, within 30 days`]);
  }
  if (row.literal) lines.push(['warning', `${who} carries a literal header value; issue one that is kept as a hash`]);
  return lines;
}

/** The requests of such a row are 500s. */
function missingHandlers(live: readonly Listed[], groups: readonly LoadedGroup[] | undefined): Line[] {
  if (groups === undefined) return [];
  const served = new Set(groups.map(({ group }) => group));
  const missing = new Set(live.map(({ handler }) => handler).filter((handler) => !served.has(groupNameOf(handler ?? '') ?? '')));
  return Array.from(missing, (handler) => ['wrong', `credentials name the handler group ${handler}, which is not in the folder`] as const);
}

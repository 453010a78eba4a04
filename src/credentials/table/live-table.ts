// The table in memory: decides whether new content goes live, and logs it. Each load builds a whole table and swaps one
// reference; when the new content is bad the last good table stays. It reads no file and holds no timer.
import type { Log } from '../../base/log.ts';
import type { FileContent } from './file.ts';
import { atOnce, inSlices, type Sliced } from './slices.ts';
import { type CredentialTable, compileTable, EMPTY_TABLE, type Quarantined } from './table.ts';

/** A log line a row is enough for so many rows; then only their number. */
const MAX_NAMED = 20;

export interface TableStatus {
  readonly rows: number;
  readonly quarantined: readonly Quarantined[];
  readonly reloads: number;
  readonly reloadFailures: number;
  /** Why the file as it stands is not live; absent when it is. */
  readonly lastFailure?: string;
}

export interface LiveTable {
  current(): CredentialTable;
  /** To be called with every content that was read, changed or not, one after the other. Resolves when it is live, or refused. */
  consider(content: FileContent): Promise<void>;
  status(): TableStatus;
}

export interface LiveTableOptions {
  /** For messages. */
  readonly path: string;
  readonly first: FileContent;
  readonly log: Log;
}

/** @throws Error one line, when the first content is not a table */
export async function createLiveTable({ path, first, log }: LiveTableOptions): Promise<LiveTable> {
  let table = await inSlices(compileContent(path, first));
  let liveKey = first.key;
  let suspectKey: string | undefined;
  let failed: { readonly key: string; readonly message: string } | undefined;
  let reloads = 0;
  let reloadFailures = 0;
  let told: ReadonlySet<string> = new Set();
  tell(first);

  /**
   * A change to a good table is live at once. Anything else must be found twice in a row, so that neither a moment without a
   * file nor one of the many states of a file that is written in place counts; then it is reported, once.
   */
  async function consider(content: FileContent): Promise<void> {
    if (content.key === liveKey) {
      suspectKey = failed = undefined;
      return;
    }
    if (content.key === failed?.key) return;
    const isConfirmed = content.key === suspectKey;
    suspectKey = content.key;
    if (content.kind !== 'bytes' && !isConfirmed) return;
    try {
      table = await inSlices(compileContent(path, content));
    } catch (error) {
      if (isConfirmed) fail(content.key, (error as Error).message);
      return;
    }
    liveKey = content.key;
    suspectKey = failed = undefined;
    reloads++;
    tell(content);
  }

  function fail(key: string, message: string): void {
    failed = { key, message };
    reloadFailures++;
    log.error('credentials-reload-failed', { error: message, rows_still_live: table.rows.size });
  }

  function tell(content: FileContent): void {
    const literals = [...table.literals.values()].filter((row) => row !== undefined).map((row) => row.name);
    log.info('credentials-loaded', { file: path, missing: content.kind === 'missing', rows: table.rows.size, reloads });
    const complaints = new Map<string, () => void>();
    for (const { name, reason } of table.quarantined.slice(0, MAX_NAMED)) {
      complaints.set(`${name}: ${reason}`, () => log.warn('credentials-row-quarantined', { name, reason }));
    }
    const unnamed = table.quarantined.length - MAX_NAMED;
    if (unnamed > 0) complaints.set(`${unnamed}`, () => log.warn('credentials-row-quarantined', { more: unnamed }));
    if (literals.length > 0) {
      const names = literals.slice(0, MAX_NAMED);
      complaints.set(JSON.stringify(literals), () => log.warn('credentials-literal-rows', { count: literals.length, names }));
    }
    // What stands in the table for a month is not said again at every change of another row.
    for (const [text, say] of complaints) if (!told.has(text)) say();
    told = new Set(complaints.keys());
  }

  return {
    current: () => table,
    consider,
    status: () => ({
      rows: table.rows.size,
      quarantined: table.quarantined,
      reloads,
      reloadFailures,
      ...(failed === undefined ? {} : { lastFailure: failed.message }),
    }),
  };
}

/** At once, for the commands. @throws Error one line */
export function compile(path: string, content: FileContent): CredentialTable {
  return atOnce(compileContent(path, content));
}

/** No file is an empty table: an operator removes it to revoke every token. A damaged file leaves the last good table. */
export function* compileContent(path: string, content: FileContent, onRow?: Parameters<typeof compileTable>[1]): Sliced<CredentialTable> {
  if (content.kind === 'missing') return EMPTY_TABLE;
  try {
    if (content.kind === 'unreadable') throw new Error(content.reason);
    return yield* compileTable(content.bytes(), onRow);
  } catch (error) {
    throw new Error(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

// The table in memory, kept in step with its file. Each load builds a whole table and swaps one reference; the last
// good table stays when the new content is bad. When the file is read is base/live-file.ts.
import { type Content, createLiveFile, type LiveFile, type LiveFileStatus, readContent } from '../../base/live-file.ts';
import type { Log } from '../../base/log.ts';
import { atOnce, inSlices, type Sliced } from './slices.ts';
import { type CredentialTable, compileTable, EMPTY_TABLE, type Quarantined } from './table.ts';

/** Some 250,000 rows. A larger file is neither read nor written: a worker has to keep it in memory. */
export const MOST_BYTES = 64 * 1024 * 1024;
/** Two looks at what is bad, and the reading itself, take less than the second that is promised. */
const POLL_MS = 250;
/** So many rows get a log line each; of the others the log has the number. */
const MAX_NAMED = 20;

export interface TableStatus extends LiveFileStatus {
  readonly rows: number;
  readonly quarantined: readonly Quarantined[];
}

export interface LiveTable extends Pick<LiveFile, 'look' | 'close'> {
  current(): CredentialTable;
  status(): TableStatus;
}

/** @throws Error one line, when the first content is not a table */
export async function createLiveTable(path: string, log: Log, pollMs = POLL_MS): Promise<LiveTable> {
  let table = EMPTY_TABLE;
  let reported: ReadonlySet<string> = new Set();
  const first = readContent([path], MOST_BYTES);
  onLive(await parse(first), 0);
  const file = createLiveFile({
    paths: [path],
    mostBytes: MOST_BYTES,
    pollMs,
    confirmations: 2,
    liveKey: first.key,
    parse,
    onLive,
    onFailure: (error) => log.error('credentials-reload-failed', { error, rows_still_live: table.rows.size }),
  });

  function parse(content: Content): Promise<CredentialTable> {
    return inSlices(compileContent(path, content));
  }

  function onLive(next: CredentialTable, reloads: number): void {
    table = next;
    const literals = [...table.literals.values()].filter((row) => row !== undefined).map((row) => row.name);
    log.info('credentials-loaded', { file: path, missing: table === EMPTY_TABLE, rows: table.rows.size, reloads });
    const complaints = new Map<string, () => void>();
    for (const { name, reason } of table.quarantined.slice(0, MAX_NAMED)) {
      complaints.set(`${name}: ${reason}`, () => log.warn('credentials-row-quarantined', { name, reason }));
    }
    const unnamed = table.quarantined.length - MAX_NAMED;
    if (unnamed > 0) complaints.set(`${unnamed}`, () => log.warn('credentials-row-quarantined', { more: unnamed }));
    if (literals.length > 0) {
      const names = literals.slice(0, MAX_NAMED);
      complaints.set(JSON.stringify(literals), () =>
        log.warn('credentials-literal-rows', { count: literals.length, names }),
      );
    }
    // A change of another row does not repeat them.
    for (const [text, warn] of complaints) if (!reported.has(text)) warn();
    reported = new Set(complaints.keys());
  }

  return {
    current: () => table,
    look: file.look,
    status: () => ({ rows: table.rows.size, quarantined: table.quarantined, ...file.status() }),
    close: file.close,
  };
}

type OnRow = Parameters<typeof compileTable>[1];

/** Reads the table at once, for the commands. @throws Error one line */
export function readTable(path: string, onRow?: OnRow): CredentialTable {
  return atOnce(compileContent(path, readContent([path], MOST_BYTES), onRow));
}

/**
 * No file is an empty table: an operator removes it to revoke every token. A damaged file leaves the last good table.
 */
function* compileContent(path: string, content: Content, onRow?: OnRow): Sliced<CredentialTable> {
  try {
    if (content.files !== undefined) return yield* compileTable(content.files[0] as Buffer, onRow);
    if (content.isMissing) return EMPTY_TABLE;
    throw new Error(content.reason);
  } catch (error) {
    throw new Error(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

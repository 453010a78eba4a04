// Keeps the table in memory equal to its file. Valid content becomes a new table object, so a caller that was
// identified with another object is checked again. Invalid content is logged, and the last valid table stays live.
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { attempt } from '../../../base/failure.ts';
import type { Log } from '../../../base/log.ts';
import { bytesOf, type Content, createLiveFile, readContent } from '../../../base/polled-file.ts';
import { runAtOnce, runInSlices, type Sliced } from './slices.ts';
import { type CompileOptions, type CredentialTable, compileTable, EMPTY_TABLE, type OnRow } from './table.ts';

/** Some two million rows. Each worker keeps the text in memory. The longest string of Node has 24 bytes less. */
export const MAX_BYTES = 512 * 1024 * 1024;
/** Commands and the log warn of a larger table. */
export const FILLING_BYTES = Math.floor(0.7 * MAX_BYTES);
export const FILLING_ADVICE =
  'beyond it no row can be added; remove old rows: gatefold credentials prune --revoked-before 90d';
/** Milliseconds between two polls. A change is live, and a mistake reported, within a second. */
const POLL_MS = 250;
/** Maximum number of quarantined rows with a log line each. One further line has the number of the other rows. */
const MAX_NAMED_ROWS = 20;

/** @throws Error with a message of one line, when the file exists and is not a table */
export async function createLiveTable(path: string, log: Log, pollMs = POLL_MS) {
  let table = EMPTY_TABLE;
  let loggedWarnings: ReadonlySet<string> = new Set();
  const firstContent = readContent([path], MAX_BYTES);
  onLive(await parse(firstContent), 0);
  const file = createLiveFile({
    paths: [path],
    maxBytes: MAX_BYTES,
    pollMs,
    // Invalid content may be a file that is still being written, so two polls in a row must find it.
    confirmations: 2,
    liveContent: firstContent,
    parse,
    onLive,
    onFailure: (error) => log.error('credentials-reload-failed', { error, rows_still_live: table.rows.size }),
  });

  const bell = watchRenames(path, () => void file.lookNow());

  function parse(content: Content): Promise<CredentialTable> {
    return runInSlices(compileContent(path, content, { previous: table }));
  }

  function onLive(next: CredentialTable, reloads: number): void {
    table = next;
    const literalNames = [...table.literals.values()].filter((row) => row !== undefined).map(({ name }) => name);
    log.info('credentials-loaded', { file: path, missing: table === EMPTY_TABLE, rows: table.rows.size, reloads });
    const warnings = new Map<string, () => void>();
    for (const { name, reason } of table.quarantined.slice(0, MAX_NAMED_ROWS)) {
      warnings.set(`${name}: ${reason}`, () => log.warn('credentials-row-quarantined', { name, reason }));
    }
    const more = table.quarantined.length - MAX_NAMED_ROWS;
    if (more > 0) warnings.set(`${more}`, () => log.warn('credentials-row-quarantined', { more }));
    const count = literalNames.length;
    const names = literalNames.slice(0, MAX_NAMED_ROWS);
    if (count > 0)
      warnings.set(JSON.stringify(literalNames), () => log.warn('credentials-literal-rows', { count, names }));
    // A warning that was logged for the previous table is not logged again.
    for (const [text, logWarning] of warnings) if (!loggedWarnings.has(text)) logWarning();
    loggedWarnings = new Set(warnings.keys());
  }

  return {
    current: () => table,
    look: file.look,
    lookNow: file.lookNow,
    status: () => ({ rows: table.rows.size, quarantined: table.quarantined, ...file.status() }),
    close(): void {
      bell?.close();
      file.close();
    },
  };
}

/**
 * Calls a function when another file gets this path. All commands write in this way. The polls find every other change:
 * one of another machine, one behind a link, and one in place, which may not be complete yet.
 *
 * @returns undefined where the system offers no such events
 */
function watchRenames(path: string, onRename: () => void): FSWatcher | undefined {
  const listener = (event: string, name: string | null) => {
    if (event === 'rename' && name === basename(path)) onRename();
  };
  const watcher = attempt(() => watch(dirname(path), { persistent: false }, listener), undefined);
  return watcher?.on('error', () => watcher.close());
}

/** Reads the table synchronously, for the commands. @throws Error with a message of one line */
export function readTable(path: string, onRow?: OnRow): CredentialTable {
  return runAtOnce(compileContent(path, readContent([path], MAX_BYTES), { onRow }));
}

/** A missing file counts as a table without rows, because an operator may remove the file to revoke every token. */
function* compileContent(path: string, content: Content, options: CompileOptions): Sliced<CredentialTable> {
  try {
    const bytes = bytesOf(content);
    return bytes === undefined ? EMPTY_TABLE : yield* compileTable(bytes, options);
  } catch (error) {
    throw new Error(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

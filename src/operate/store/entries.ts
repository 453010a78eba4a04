// Names the rows of the table, which are entries in the store, and converts between names and the text of the file.
import { attempt, explainFailure } from '../../base/failure.ts';
import { bytesOf, readContent } from '../../base/polled-file.ts';
import { MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { idOfRow, type RawRow } from '../../callers/credentials/table/row.ts';
import { parseTableText, refuseRepeatedFields } from '../../callers/credentials/table/text.ts';
import { sha256 } from '../../callers/credentials/token.ts';
import { tablePath } from '../../callers/credentials/write/table-file.ts';
import { MAX_VALUE_BYTES } from './schema.ts';

/** Matches an id that can be the name of its row. Names that are made contain `~`, which no such id contains. */
const PLAIN_ID = /^[0-9A-Za-z._-]{1,200}$/;

/**
 * Returns a function that names rows. The name of a row is its id. A row without an id, or with the id of an earlier
 * row, gets a name from a digest of its literal, which no command changes, or else of its content, such as `~0123abcd`
 * or `~0123abcd+2`. The store keeps such rows, too, because rows with the same id make each other invalid, and every
 * machine must see this.
 */
export function createRowNames(): (row: unknown) => string {
  const usedNames = new Set<string>();
  return (row) => {
    const { id, authorization } = (row ?? {}) as RawRow;
    let name = typeof id === 'string' && PLAIN_ID.test(id) ? id : '';
    if (name === '' || usedNames.has(name)) {
      const digestName = `~${sha256(JSON.stringify(authorization ?? row))
        .toString('hex')
        .slice(0, 24)}`;
      name = digestName;
      for (let count = 2; usedNames.has(name); count++) name = `${digestName}+${count}`;
    }
    usedNames.add(name);
    return name;
  };
}

/** Returns the id of a row that commands take. @param row its JSON */
export function idOfEntry(name: string, row: string): string {
  return name.startsWith('~') ? String(idOfRow((JSON.parse(row) ?? {}) as RawRow)) : name;
}

/** The member `store` of a table's file, which marks the file as a copy of the rows in the store. */
interface CopyMark {
  /** The version of the rows in the store; empty when the store must be read anew. */
  readonly version: string;
  /** The hashes of secrets that this machine saw end (lost-changes.ts), by the name of the row. */
  readonly replaced?: unknown;
}

export type TableFile = NonNullable<ReturnType<typeof readTableFile>>;

/**
 * @returns the JSON of each row by its name, and the mark of a copy; undefined when there is no file
 * @throws Error with a message of one line, also when the file is not a copy and an object has the same field twice
 */
export function readTableFile(dataDir: string) {
  const path = tablePath(dataDir);
  return explainFailure(`Cannot read ${path}`, () => {
    const bytes = bytesOf(readContent([path], MAX_BYTES));
    if (bytes === undefined) return undefined;
    const { members, rows, repeatedFields } = parseTableText(bytes);
    let copyMark = members.store as CopyMark | undefined;
    // JSON.stringify writes a repeated field only once. A row that is invalid because of the field would become valid.
    if (copyMark === undefined) refuseRepeatedFields(repeatedFields);
    else if (repeatedFields.length > 0) copyMark = { ...copyMark, version: '' };
    const nameOf = createRowNames();
    return { rows: new Map(rows.map((row) => [nameOf(row), JSON.stringify(row)])), copyMark };
  });
}

/** The lists and objects of a row at most. Functions that call themselves for each level of a row need this bound. */
const MAX_NESTED = 1000;

/**
 * Returns the JSON of a row in the store. A value that would damage the text of the table becomes a row that workers
 * quarantine under this name, so that one such value stops no change of another row.
 */
export function usableRow(name: string, value: string): string {
  const isJson = attempt(() => JSON.parse(value) !== undefined, false);
  if (isJson && (value.match(/[[{]/g)?.length ?? 0) <= MAX_NESTED) return value;
  const limits = `at most ${MAX_VALUE_BYTES} bytes and ${MAX_NESTED} lists and objects`;
  return JSON.stringify({ id: name.slice(0, 200), unusable: `its value in the store is not JSON of ${limits}` });
}

/** Returns the text of a file that is no copy. @param rows the JSON of each row */
export function tableText(rows: Iterable<string>): string {
  const list = [...rows].join(',\n');
  return `{"production":[${list === '' ? '' : `\n${list}\n`}]}\n`;
}

/** @param list the rows, as their text in the file */
export function copyText(list: readonly Buffer[], copyMark: CopyMark): Buffer {
  const head = `{"store":${JSON.stringify(copyMark)},\n"production":[${list.length === 0 ? '' : '\n'}`;
  return Buffer.concat([Buffer.from(head), ...list, Buffer.from(list.length === 0 ? ']}\n' : '\n]}\n')]);
}

/** @param row the JSON of a row */
export function isRevoked(row: string): boolean {
  return revocationTime(row) !== undefined;
}

export function revocationTime(row: string): unknown {
  return (JSON.parse(row) as { revoked_at?: unknown } | null)?.revoked_at ?? undefined;
}

/** Returns the row with this time of revocation; with undefined, the row is not revoked. */
export function withRevocation(row: string, time: unknown): string {
  return JSON.stringify({ ...(JSON.parse(row) as object), revoked_at: time });
}

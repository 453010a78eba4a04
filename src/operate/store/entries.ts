// Names the rows of the table, because the store keeps each row as an entry with a name, and converts between names and
// the text of the file.
import { readFileSync } from 'node:fs';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { parseTableText, refuseRepeatedFields } from '../../callers/credentials/table/text.ts';
import { sha256 } from '../../callers/credentials/token.ts';
import { tablePath } from '../../callers/credentials/write/table-file.ts';

/** Matches an id that can be the name of its row. Names that are made contain `~`, which no such id contains. */
const PLAIN_ID = /^[0-9A-Za-z._-]{1,200}$/;

/**
 * Returns a function that names rows. The name of a row is its id. A row without an id, or with the id of an earlier
 * row, gets a name from a digest of its content, such as `~0123abcd` or `~0123abcd+2`. The store keeps such rows, too,
 * because rows with the same id make each other invalid, and every machine must see this.
 */
export function createRowNames(): (row: unknown) => string {
  const usedNames = new Set<string>();
  return (row) => {
    const id = (row as { id?: unknown } | null)?.id;
    let name = typeof id === 'string' && PLAIN_ID.test(id) ? id : '';
    if (name === '' || usedNames.has(name)) {
      const digestName = `~${sha256(JSON.stringify(row)).toString('hex').slice(0, 24)}`;
      name = digestName;
      for (let count = 2; usedNames.has(name); count++) name = `${digestName}+${count}`;
    }
    usedNames.add(name);
    return name;
  };
}

/** The member `store` of a table's file, which marks the file as a copy of the rows in the store. */
interface CopyMark {
  /** The version of the rows in the store; empty when the store must be read anew. */
  readonly version: string;
}

export interface TableFile {
  /** The JSON of each row by its name. */
  readonly rows: ReadonlyMap<string, string>;
  readonly copyMark: CopyMark | undefined;
}

/**
 * @returns undefined when there is no file
 * @throws Error with a message of one line, also when the file is not a copy and an object has the same field twice
 */
export function readTableFile(dataDir: string): TableFile | undefined {
  const path = tablePath(dataDir);
  try {
    const { members, rows, repeatedFields } = parseTableText(readFileSync(path));
    let copyMark = members.store as CopyMark | undefined;
    // JSON.stringify writes a repeated field only once. A row that is invalid because of the field would become valid.
    if (copyMark === undefined) refuseRepeatedFields(repeatedFields);
    else if (repeatedFields.length > 0) copyMark = { version: '' };
    const nameOf = createRowNames();
    return { rows: new Map(rows.map((row) => [nameOf(row), JSON.stringify(row)])), copyMark };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${path}: ${describeFailure(error)}`);
  }
}

/** @param rows the JSON of each row @param copyMark undefined for a file that is no copy */
export function tableText(rows: Iterable<string>, copyMark?: CopyMark): string {
  const member = copyMark === undefined ? '' : `"store":${JSON.stringify(copyMark)},\n`;
  const list = [...rows].join(',\n');
  return `{${member}"production":[${list === '' ? '' : `\n${list}\n`}]}\n`;
}

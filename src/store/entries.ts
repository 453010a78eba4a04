// Names the rows of the credentials table, because the store keeps each row as an entry with a name. Also makes the
// text of a table's file.
import { sha256 } from '../credentials/token.ts';

const PLAIN_NAME = /^[0-9A-Za-z._-]{1,200}$/;

/**
 * Returns a function that names rows. The name of a row is its id. A row without an id, or with the id of an earlier
 * row, gets a name that is made from its content. The store keeps such a row, too, because rows with the same id make
 * each other invalid on every machine.
 */
export function createRowNames(): (row: unknown) => string {
  const usedNames = new Set<string>();
  return (row) => {
    const id = (row as { id?: unknown } | null)?.id;
    let name = typeof id === 'string' && PLAIN_NAME.test(id) ? id : '';
    if (name === '' || usedNames.has(name)) name = `~${sha256(JSON.stringify(row)).toString('hex').slice(0, 24)}`;
    for (let count = 2; usedNames.has(name); count++) name = `${name.split('+', 1)[0]}+${count}`;
    usedNames.add(name);
    return name;
  };
}

/** The member `store` of a table's file, which marks the rows as a copy of the rows in the store. */
export interface ReplicaMark {
  readonly version: string;
}

/** Returns the text of a table's file. @param rows the JSON of each row */
export function tableText(rows: Iterable<string>, mark?: ReplicaMark): string {
  const member = mark === undefined ? '' : `"store":${JSON.stringify(mark)},\n`;
  const list = [...rows].join(',\n');
  return `{${member}"production":[${list === '' ? '' : `\n${list}\n`}]}\n`;
}

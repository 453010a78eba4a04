// Converts the rows of the credentials table to entries of the store. Each row gets a name. The file also writes the
// text of a table with such rows.
import { sha256 } from '../credentials/token.ts';

const PLAIN_NAME = /^[0-9A-Za-z._-]{1,200}$/;

/**
 * Returns a function that names rows. The name of a row is its id. A row without an id, or with the id of an earlier
 * row, gets a name that is made from its content. The store must keep such a row too: it may be a mistake of the author
 * that quarantines another row.
 */
export function createRowNames(): (row: unknown) => string {
  const taken = new Set<string>();
  return (row) => {
    const id = (row as { id?: unknown } | null)?.id;
    let name = typeof id === 'string' && PLAIN_NAME.test(id) ? id : '';
    if (name === '' || taken.has(name)) name = `~${sha256(JSON.stringify(row)).toString('hex').slice(0, 24)}`;
    for (let count = 2; taken.has(name); count++) name = `${name.split('+', 1)[0]}+${count}`;
    taken.add(name);
    return name;
  };
}

/** The member `store` of a table's file. The member marks the rows as a copy of the rows in the store. */
export interface ReplicaMark {
  readonly version: string;
}

/** Returns the text of a table's file. @param rows the JSON of each row */
export function tableText(rows: Iterable<string>, mark?: ReplicaMark): string {
  const head = mark === undefined ? '' : `"store":${JSON.stringify(mark)},\n`;
  const list = [...rows].join(',\n');
  return `{${head}"production":[${list === '' ? '' : `\n${list}\n`}]}\n`;
}

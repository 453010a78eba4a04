// The rows of the credentials table as entries of the store: their names, and the text of a table with such rows.
import { sha256 } from '../credentials/token.ts';

const PLAIN_NAME = /^[0-9A-Za-z._-]{1,200}$/;

/**
 * Names rows. A row is named by its id. A row without an id, or with the id of an earlier row, gets a name of its
 * content: the store must keep it, because it may be a mistake of the author's that quarantines another row.
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

/** The member of a table's file that says that the rows are a copy of the store's. */
export interface ReplicaMark {
  readonly version: string;
}

/** @param rows the JSON of each row */
export function tableText(rows: Iterable<string>, mark?: ReplicaMark): string {
  const head = mark === undefined ? '' : `"store":${JSON.stringify(mark)},\n`;
  const list = [...rows].join(',\n');
  return `{${head}"production":[${list === '' ? '' : `\n${list}\n`}]}\n`;
}

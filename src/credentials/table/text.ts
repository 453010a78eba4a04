// Parses the text of the table, `{"production":[row, …]}`, into rows. table.ts reads the rows.
import { isUtf8 } from 'node:buffer';
import { type RepeatedKey, repeatedKeys } from '../../base/json-keys.ts';

export interface TableText {
  /** All members of the object: `production`, and any that the author of the file has added. */
  readonly members: Readonly<Record<string, unknown>>;
  /** The member `production`. */
  readonly rows: readonly unknown[];
  readonly repeated: readonly RepeatedKey[];
}

/** @throws Error of one line, without any part of the text, which may contain secrets */
export function parseTableText(bytes: Buffer): TableText {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8');
  // Some editors write a byte order mark, which JSON.parse refuses.
  const text = bytes.toString().replace(/^\uFEFF/, '');
  const members = parseJson(text, bytes.length);
  const repeated = repeatedKeys(text, members);
  if (repeated.some(({ key, path }) => key === 'production' && path.length === 0))
    throw new Error('it has the list "production" twice');
  const rows = members?.production;
  if (!Array.isArray(rows)) throw new Error('it has no list "production"');
  return { members: members as TableText['members'], rows, repeated };
}

function parseJson(text: string, length: number): { readonly production?: unknown } | null {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message would quote the text.
    throw new Error(`it is not JSON (${length === 0 ? 'it is empty' : `${length} bytes`})`);
  }
}

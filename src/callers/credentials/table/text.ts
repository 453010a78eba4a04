// Parses the text of the credentials table, `{"production":[row, …]}`. table.ts checks the rows.
import { isUtf8 } from 'node:buffer';
import { type RepeatedKey, repeatedKeys } from '../../../base/json-keys.ts';

export interface TableText {
  /** All members of the object: `production`, and any that the author of the file has added. */
  readonly members: Readonly<Record<string, unknown>>;
  readonly rows: readonly unknown[];
  readonly repeatedFields: readonly RepeatedKey[];
}

/** @throws Error with a message of one line, which quotes no part of the text, because the text may contain secrets */
export function parseTableText(bytes: Buffer): TableText {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8');
  return parseMembers(bytes.toString(), bytes.length);
}

/** @param byteLength the length of the whole text @throws like `parseTableText` */
export function parseMembers(textWithMark: string, byteLength: number): TableText {
  // Some editors write a byte order mark, which JSON.parse refuses.
  const text = textWithMark.replace(/^\uFEFF/, '');
  const members = parseJson(text, byteLength) as { readonly production?: unknown } | null;
  const repeatedFields = repeatedKeys(text, members);
  if (repeatedFields.some(({ key, path }) => key === 'production' && path.length === 0))
    throw new Error('it has the list "production" twice');
  const rows = members?.production;
  if (!Array.isArray(rows)) throw new Error('it has no list "production"');
  return { members: members as TableText['members'], rows, repeatedFields };
}

export function refuseRepeatedFields([first]: TableText['repeatedFields']): void {
  if (first === undefined) return;
  const path = ['the table', ...first.path].join('/').slice(0, 100);
  throw new Error(`${path} has the field ${JSON.stringify(first.key.slice(0, 100))} twice; remove one of them`);
}

/** @param byteLength the length of the whole text, of which `text` may be a part */
export function parseJson(text: string, byteLength: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The message of JSON.parse would quote the text.
    throw new Error(`it is not JSON (${byteLength === 0 ? 'it is empty' : `${byteLength} bytes`})`);
  }
}

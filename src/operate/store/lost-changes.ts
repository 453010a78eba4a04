// Finds the changes that this machine has seen and that the store has lost: a standby that lagged was promoted, or a
// backup restored. A revocation, and the end of a secret, must hold all the same.
import { type Fields, isObject, parseObject } from '../../base/values.ts';
import { isAbsent } from '../../callers/credentials/table/row.ts';

/** At most this many hashes of a row are kept, the latest ones. */
const MAX_ENDED = 20;

/** Row name → the hashes of the secrets that changes of the row have ended, as this machine saw. */
export type EndedHashes = Map<string, readonly string[]>;

/** Reads the list that a copy has. Anything that is no such list is ignored. */
export function readEndedHashes(value: unknown): EndedHashes {
  const lists = isObject(value) ? Object.entries(value) : [];
  return new Map(lists.flatMap(([name, list]) => (Array.isArray(list) ? [[name, list.filter(isText)]] : [])));
}

/** Notes which secrets a change of a row has ended. @param after undefined when the row was removed */
export function noteEndedHashes(ended: EndedHashes, name: string, before?: string, after?: string): void {
  if (after === undefined) ended.delete(name);
  if (before === undefined || after === undefined || before === after) return;
  const next = parseObject(after) ?? {};
  // A row without a hash is damaged. Somebody may mend it, with the same hash.
  if (!isText(next.hash)) return;
  const valid = new Set(hashesOf(next));
  const hashes = [...(ended.get(name) ?? []), ...hashesOf(parseObject(before) ?? {})];
  const list = [...new Set(hashes)].filter((hash) => !valid.has(hash)).slice(-MAX_ENDED);
  if (list.length === 0) ended.delete(name);
  else ended.set(name, list);
}

/**
 * Returns a row of the store with the changes that it lacks: the revocation of the row as this machine saw it, and its
 * rotation when the store has a secret again that a rotation has replaced. Returns the same text when it lacks none.
 */
export function withLostChanges(current: string, seen: string, ended: readonly string[] = []): string {
  const [row, seenRow] = [parseObject(current), parseObject(seen)];
  if (row === undefined || seenRow === undefined) return current;
  const fields: Record<string, unknown> = {};
  if (isAbsent(row.revoked_at) && !isAbsent(seenRow.revoked_at)) fields.revoked_at = seenRow.revoked_at;
  const replaced = new Set([...ended, ...previousOf(seenRow)]);
  if (isText(seenRow.hash) && row.hash !== seenRow.hash && replaced.has(row.hash as string)) {
    fields.hash = seenRow.hash;
    fields.previous = seenRow.previous;
  } else if (previousOf(row).some((hash) => ended.includes(hash))) {
    fields.previous = (row.previous as { hash: string }[]).filter(({ hash }) => !ended.includes(hash));
  }
  return Object.keys(fields).length === 0 ? current : JSON.stringify({ ...row, ...fields });
}

/** Returns whether two texts are the same row. Somebody may have written one of them by SQL, with other white space. */
export function isSameRow(one: string, other: string): boolean {
  return one === other || JSON.stringify(JSON.parse(one)) === JSON.stringify(JSON.parse(other));
}

function hashesOf(row: Fields): string[] {
  return [row.hash, ...previousOf(row)].filter(isText);
}

function previousOf({ previous }: Fields): string[] {
  const list = Array.isArray(previous) ? previous : [];
  return list.map((item) => (isObject(item) ? item.hash : undefined)).filter(isText);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

// Finds keys that an object of a JSON text has twice. JSON.parse silently takes the last one, and the author may have
// meant the first: `"revoked_at": "2026-…"` above an old `"revoked_at": null`.

export interface RepeatedKey {
  readonly key: string;
  /** The keys and indexes that lead to the object: `['production', 3]`. */
  readonly path: readonly (string | number)[];
}

/** One string, or one of the characters that objects and lists are made of. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

/** @param value what JSON.parse made of the text */
export function repeatedKeys(text: string, value: unknown): RepeatedKey[] {
  // Each key ends in `":`. Strings with `\":` in them are rare, so the two counts decide nearly every text.
  const colon = /"\s*:/g;
  let keys = countKeys(value);
  while (keys >= 0 && colon.test(text)) keys--;
  return keys === 0 ? [] : [...scan(text)];
}

function* scan(text: string): Generator<RepeatedKey> {
  const open: { readonly keys: Set<string>; at: string | number }[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const innermost = open.at(-1);
    if (token === '{' || token === '[') open.push({ keys: new Set(), at: 0 });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && typeof innermost?.at === 'number') innermost.at++;
    else if (token === ':' && innermost !== undefined) {
      const key = JSON.parse(last) as string;
      if (innermost.keys.has(key)) yield { key, path: open.slice(0, -1).map(({ at }) => at) };
      innermost.keys.add(key);
      innermost.at = key;
    }
    last = token;
  }
}

/** Counts without recursion: a text may be nested deeper than the stack is. */
function countKeys(value: unknown): number {
  let count = 0;
  const rest = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const items = Object.values(next);
    if (!Array.isArray(next)) count += items.length;
    for (const item of items) if (typeof item === 'object' && item !== null) rest.push(item);
  }
  return count;
}

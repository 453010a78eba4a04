// Finds keys that an object of a JSON text has twice. JSON.parse silently takes the last value, but the author may have
// meant the first: a new `"revoked_at": "2026-…"` above an old `"revoked_at": null`.

export interface RepeatedKey {
  readonly key: string;
  /** The keys and indexes that lead to the object: `['production', 3]`. */
  readonly path: readonly (string | number)[];
}

/** Matches one string, or one character of the syntax of objects and lists. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

export function repeatedKeys(text: string, value: unknown): RepeatedKey[] {
  // A quick count avoids the slow scan. Each key of the text ends with `":`, and the parsed value has a repeated key
  // only once. So no key is repeated when the text has as many `":` as the value has keys. A string that contains `\":`
  // also makes the numbers differ, so the scan decides.
  const keyEnd = /"\s*:/g;
  let difference = countKeys(value);
  while (difference >= 0 && keyEnd.test(text)) difference--;
  return difference === 0 ? [] : [...scanForRepeatedKeys(text)];
}

function* scanForRepeatedKeys(text: string): Generator<RepeatedKey> {
  /** The objects and lists around the token. `position` is the last key of an object, or the index in a list. */
  const openValues: { readonly keys: Set<string>; position: string | number }[] = [];
  let previousToken = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const innermost = openValues.at(-1);
    if (token === '{' || token === '[') openValues.push({ keys: new Set(), position: 0 });
    else if (token === '}' || token === ']') openValues.pop();
    else if (token === ',' && typeof innermost?.position === 'number') innermost.position++;
    else if (token === ':' && innermost !== undefined) {
      const key = JSON.parse(previousToken) as string;
      if (innermost.keys.has(key)) yield { key, path: openValues.slice(0, -1).map(({ position }) => position) };
      innermost.keys.add(key);
      innermost.position = key;
    }
    previousToken = token;
  }
}

/** Uses no recursion, because a value may be nested deeper than the stack allows. */
function countKeys(value: unknown): number {
  let count = 0;
  const pending = [value];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const items = Object.values(next);
    if (!Array.isArray(next)) count += items.length;
    for (const item of items) if (typeof item === 'object' && item !== null) pending.push(item);
  }
  return count;
}

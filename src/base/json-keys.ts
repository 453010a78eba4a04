// Finds a key that an object of a JSON text has twice. JSON.parse takes the last one without a word, and the first may be the
// one that its author meant: `"revoked_at": "2026-…"` above an old `"revoked_at": null`.

/** One string, or one of the characters that objects and lists are made of. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

/**
 * @param value what JSON.parse made of the text
 * @returns a key that comes twice; undefined: there is none
 */
export function repeatedKey(text: string, value: unknown): string | undefined {
  // Each key ends in `":`, and only a text with `\":` in it has more of these: nearly every text is done with here.
  if ((text.match(/"\s*:/g)?.length ?? 0) === countKeys(value)) return undefined;
  const objects: Set<string>[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') objects.push(new Set());
    else if (token === '}' || token === ']') objects.pop();
    else if (token === ':') {
      const key = JSON.parse(last) as string;
      const keys = objects.at(-1);
      if (keys?.has(key)) return key;
      keys?.add(key);
    }
    last = token;
  }
  return undefined;
}

/** Without recursion: a text may be nested deeper than the stack is. */
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

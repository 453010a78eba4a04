// Quotes texts for the JSON of answers and log lines that is built by hand. For every request, this is faster than a
// call of `JSON.stringify` with an object.

/** Matches any character that JSON may escape or that a terminal could obey as a command. */
const UNUSUAL = /[^ !#-[\]-~]/;

/** Returns what `JSON.stringify` returns for a text, but takes less time for usual texts. */
export function quote(text: string): string {
  return UNUSUAL.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const quotedNames = new Map<string, string>();

/**
 * Quotes a name and caches the result, which saves a hundredth of the time of a request. The caller passes only names
 * whose number is bounded, such as those of groups and operations.
 */
export function quoteName(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) {
    quoted = quote(name);
    quotedNames.set(name, quoted);
  }
  return quoted;
}

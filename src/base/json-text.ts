// Writes texts into JSON that is put together by hand, on the hot path.

/** A character that JSON escapes, or that a terminal could obey. */
const UNUSUAL = /[^ !#-[\]-~]/;

/** Does what `JSON.stringify` does for a text, in less time for usual texts. */
export function quote(text: string): string {
  return UNUSUAL.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const quotedNames = new Map<string, string>();

/**
 * Quotes a name, each only once: a check of the name in each line costs a hundredth of a request. The caller passes
 * only names whose number is bounded, such as those of groups and operations.
 */
export function quoteName(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) {
    quoted = quote(name);
    quotedNames.set(name, quoted);
  }
  return quoted;
}

// Reads the header `tracestate` of W3C Trace Context (3.3). This service adds no member of its own, so it only checks
// the list and passes it on.

/** The most members of a list (3.3.1.1). A longer list is dropped as a whole. */
const MOST_MEMBERS = 32;
/** Characters that a list keeps at least (3.3.1.5). From a longer one, whole members are removed. */
const LONGEST_LIST = 512;
/** Members that are longer are removed first (3.3.1.5). */
const LONG_MEMBER = 128;

/** A name, or a tenant and its system: `rojo`, `fw529a3039@dt` (3.3.1.3.1). */
const KEY = /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/;
/** Printable ASCII without comma and equals sign, whose last character is no space (3.3.1.3.2). */
const VALUE = /^[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;

/**
 * @param lines the values of all header lines of that name, in their order
 * @returns the list in its shortest spelling; empty for a list that breaks a rule, and for an empty list
 */
export function parseTracestate(lines: readonly string[]): string {
  const members = lines
    .join(',')
    .split(',')
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((member) => member !== '');
  if (members.length > MOST_MEMBERS) return '';
  const keys = new Set<string>();
  for (const member of members) {
    const at = member.indexOf('=');
    const key = member.slice(0, at);
    if (at < 0 || keys.has(key) || !KEY.test(key) || !VALUE.test(member.slice(at + 1))) return '';
    keys.add(key);
  }
  return shorten(members).join(',');
}

/** Removes long members, and then the last ones: the first members are the newest. */
function shorten(members: string[]): string[] {
  const lengthOf = (list: readonly string[]) => list.join(',').length;
  for (let i = members.length - 1; i >= 0 && lengthOf(members) > LONGEST_LIST; i--)
    if ((members[i] as string).length > LONG_MEMBER) members.splice(i, 1);
  while (lengthOf(members) > LONGEST_LIST) members.pop();
  return members;
}

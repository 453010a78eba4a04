// Reads the header `tracestate` of W3C Trace Context (3.3). This service adds no member of its own. It only checks the
// list, shortens it when it is too long, and passes it on.
import { trimBlanks } from '../../base/values.ts';

/** The standard allows at most this many members in a list (3.3.1.1). A longer list is dropped as a whole. */
const MAX_MEMBERS = 32;
/** A longer list loses whole members. The standard requires at least this many characters to be passed on (3.3.1.5). */
const MAX_LIST_LENGTH = 512;
/** Members with more characters than this are removed first (3.3.1.5). */
const LONG_MEMBER = 128;

/**
 * Matches a member. Its key is a name, or a tenant and its system, such as `rojo` or `fw529a3039@dt` (3.3.1.3.1). Its
 * value is printable ASCII without comma and equals sign, and does not end in a space (3.3.1.3.2).
 */
const MEMBER =
  /^([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;

/** Returns the list without blanks and empty members, cut to `MAX_LIST_LENGTH`; '' for a list that breaks a rule. */
export function parseTracestate(lines: readonly string[]): string {
  const members = lines
    .join(',')
    .split(',')
    .map(trimBlanks)
    .filter((member) => member !== '');
  if (members.length > MAX_MEMBERS) return '';
  const keys = new Set<string>();
  for (const member of members) {
    const key = MEMBER.exec(member)?.[1];
    if (key === undefined || keys.has(key)) return '';
    keys.add(key);
  }
  return shorten(members).join(',');
}

/** Removes long members first, and then others, each time from the end, because the first members are the newest. */
function shorten(members: string[]): string[] {
  const lengthOf = (list: readonly string[]) => list.join(',').length;
  const isLong = (member: string) => member.length > LONG_MEMBER;
  // Without a long member, the index is -1, which is the last member.
  while (lengthOf(members) > MAX_LIST_LENGTH) members.splice(members.findLastIndex(isLong), 1);
  return members;
}

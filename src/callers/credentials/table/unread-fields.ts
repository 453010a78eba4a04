// Finds fields of a credentials row that Gatefold does not read, but that look like a restriction: `expires`,
// `revoked`, `method`, `expiresAt`. The restriction would be absent in silence, so the row is refused. All other
// unknown fields are allowed.
import { isNear, lettersOf } from '../../../base/near.ts';
import type { Fields } from '../../../base/values.ts';

type Meaning = 'time' | 'state' | 'right';

const FIELDS: readonly (readonly [field: string, meaning: Meaning])[] = [
  ...['expires_at', 'revoked_at'].map((field) => [field, 'time'] as const),
  ...['methods', 'groups', 'scopes', 'limit', 'handler'].map((field) => [field, 'right'] as const),
];

/** Other names that people write. The patterns match the lower-case letters and digits of a name (`lettersOf`). */
const OTHER_NAMES: readonly (readonly [pattern: RegExp, meaning: Meaning])[] = [
  [/^(?:is)?(?:expir(?:es?|y|ed|ation)(?:at|on|in|after|date|time|utc)?|exp|ttl|until|valid(?:until|to))$/, 'time'],
  [/^(?:not(?:valid)?after|lifetime|ends?(?:at|on|date|time))$/, 'time'],
  [/^(?:is)?(?:revoked?|revocation|deleted|blocked|locked|banned)(?:at|on|by|date|time)?$/, 'time'],
  [/^(?:is)?(?:disabled|inactive|deactivated|suspended)(?:at|on|by|date|time)?$/, 'time'],
  [/^(?:is)?(?:active|enabled|valid)$|^(?:state|status)$/, 'state'],
  [/^(?:http|allow(?:ed)?)?(?:methods?|verbs?)$|^(?:allow(?:ed)?)?(?:groups?|controllers?|scopes?)$/, 'right'],
  [/^(?:rate|ratelimits?|limits?|quota|throttle|handlers?|handlergroups?)$/, 'right'],
  [/^allowed|(?:allow|block|deny|white|black)list|^(?:ips?|cidrs?|notbefore|nbf|validfrom|validafter)$/, 'right'],
  [/^starts?at$/, 'right'],
];

/** The values of a state that mean that the row must not be used. */
const INACTIVE =
  /^(?:false|0|no|off|revoked|expired|disabled|inactive|blocked|suspended|deleted|locked|banned|deactivated)$/i;
const FALSE = /^(?:false|0|no|off)$/i;

/** A cache: the name of an unread field → what it looks like. A table has many rows, but few field names. */
export type Meanings = Map<string, Meaning | undefined>;

/** @returns why a row is refused, and what to do; undefined when no unread field looks like a restriction */
export function findUnreadRestriction(row: Fields, known: ReadonlySet<string>, meanings: Meanings): string | undefined {
  for (const [name, value] of Object.entries(row)) {
    if (known.has(name)) continue;
    if (!meanings.has(name)) meanings.set(name, meaningOf(lettersOf(name)));
    if (!restricts(meanings.get(name), value)) continue;
    const fields = FIELDS.map(([field]) => field).join(', ');
    return `its field ${JSON.stringify(name.slice(0, 100))} has no effect; these restrict it: ${fields}`;
  }
  return undefined;
}

function meaningOf(letters: string): Meaning | undefined {
  // With two edits, "props" would be near to "groups".
  const isTypo = (field: string) => isNear(letters, field, field.length > 6 ? 2 : 1);
  return (OTHER_NAMES.find(([pattern]) => pattern.test(letters)) ??
    FIELDS.find(([field]) => isTypo(lettersOf(field))))?.[1];
}

/** A value such as that of `revoked: false`, `expires: null` or `enabled: true` restricts nothing. */
function restricts(meaning: Meaning | undefined, value: unknown): boolean {
  if (meaning === undefined || value === null || value === '') return false;
  if (meaning === 'state') return INACTIVE.test(String(value));
  return meaning === 'right' || !FALSE.test(String(value));
}

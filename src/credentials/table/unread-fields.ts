// Finds fields of a credentials row that Gatefold does not read, but that look like a restriction: `expires`,
// `revoked`, `method`, `expiresAt`. The restriction would have no effect, so the row is refused. All other unknown
// fields are allowed.
import { isNear, lettersOf } from '../../base/near.ts';

/**
 * The fields that restrict a row, each with a pattern of other names that people write for the field. The pattern
 * matches the lower-case letters and digits of a name (`lettersOf`). `isTypo` finds typing errors.
 */
const RESTRICTING_FIELDS: readonly (readonly [field: string, alsoWritten: RegExp])[] = [
  [
    'expires_at',
    /^(?:expir(?:es?|y|ed|ation)(?:at|on|in|after|date|time|utc)?|exp|ttl|until|valid(?:until|to)|notafter|lifetime)$/,
  ],
  [
    'revoked_at',
    /^(?:revoked?|revocation|disabled|deactivated|deleted|blocked|suspended|locked|banned)(?:at|on|by|date)?$/,
  ],
  ['revoked_at', /^(?:active|enabled|inactive|state|status)$/],
  ['methods', /^(?:http|allowed|allow)?(?:methods?|verbs?)$/],
  ['groups', /^(?:(?:allowed|allow)?(?:groups?|controllers?)|handlergroups)$/],
  ['scopes', /^(?:allowed|allow)?scopes?$/],
  ['limit', /^(?:rate|ratelimits?|limits?|quota|throttle)$/],
  ['handler', /^(?:handlers?|handlergroup)$/],
  // Gatefold has no field for these restrictions, so the text is empty.
  ['', /^allowed|(?:allow|block|deny|white|black)list|^(?:ips?|cidrs?|notbefore|nbf|valid(?:from|after)|starts?at)$/],
];

/** The values of a field such as `status` that mean that the row must not be used. */
const INACTIVE =
  /^(?:false|0|no|off|revoked|expired|disabled|inactive|blocked|suspended|deleted|locked|banned|deactivated)$/i;
/** The values of a field such as `revoked` that mean that the row can be used. */
const FALSE = /^(?:false|0|no|off)$/i;

/** A cache: the name of an unread field → the result of `findMeaning`. A table has many rows, but few field names. */
export type Meanings = Map<string, string | undefined>;

/** @returns why a row is refused, and what to do; undefined when no unread field looks like a restriction */
export function findUnreadRestriction(
  row: Readonly<Record<string, unknown>>,
  readFields: ReadonlySet<string>,
  meanings: Meanings,
): string | undefined {
  for (const [name, value] of Object.entries(row)) {
    if (readFields.has(name)) continue;
    if (!meanings.has(name)) meanings.set(name, findMeaning(lettersOf(name)));
    const field = meanings.get(name);
    if (field === undefined || restrictsNothing(lettersOf(name), field, value)) continue;
    const cure = field === '' ? 'remove it' : `write "${field}"`;
    return `its field ${JSON.stringify(name.slice(0, 100))} has no effect: ${cure}, or use a name that does not look like a right`;
  }
  return undefined;
}

/** @returns the field that a name looks like; empty for a restriction without a field; undefined for other names */
function findMeaning(letters: string): string | undefined {
  return RESTRICTING_FIELDS.find(
    ([field, alsoWritten]) => alsoWritten.test(letters) || isTypo(letters, lettersOf(field)),
  )?.[0];
}

/**
 * Returns whether a name differs from a field by one letter, or by two for a field of more than six letters. If two
 * were allowed for short fields, "props" would count as a typing error for "groups".
 */
function isTypo(letters: string, field: string): boolean {
  return field !== '' && isNear(letters, field, field.length > 6 ? 2 : 1);
}

/** Returns whether the value restricts nothing, such as `revoked: false`, `expires: null` or `enabled: true`. */
function restrictsNothing(letters: string, field: string, value: unknown): boolean {
  if (value === null || value === '') return true;
  if (/^(?:active|enabled|state|status)$/.test(letters)) return !INACTIVE.test(String(value));
  return field.endsWith('_at') && FALSE.test(String(value));
}

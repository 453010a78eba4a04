// Fields of a row that nothing reads and that were meant to protect: `expires`, `revoked`, `method`, `expiresAt`. A row
// with one would have more rights than its author meant. Any other field is the author's own.
import { editDistance, lettersOf } from '../../base/near.ts';

/** Each field that takes rights away, and what people write for it, as letters. A slip of the pen needs no pattern. */
const PROTECTING: readonly (readonly [field: string, alsoWritten: RegExp])[] = [
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
  // Rights that no field has.
  ['', /^allowed|(?:allow|block|deny|white|black)list|^(?:ips?|cidrs?|notbefore|nbf|valid(?:from|after)|starts?at)$/],
];

/** A state is one of these, or the row is live. */
const STOPS =
  /^(?:false|0|no|off|revoked|expired|disabled|inactive|blocked|suspended|deleted|locked|banned|deactivated)$/i;
const NO = /^(?:false|0|no|off)$/i;

/** Keeps what each name means, once it was found out: a table has few names and many rows. */
export type Meanings = Map<string, string | undefined>;

/** @returns why the row is bad, with the cure; undefined: what it says of its rights is read */
export function unreadField(
  row: Readonly<Record<string, unknown>>,
  known: ReadonlySet<string>,
  meanings: Meanings,
): string | undefined {
  for (const [name, value] of Object.entries(row)) {
    if (known.has(name)) continue;
    if (!meanings.has(name)) meanings.set(name, meaningOf(lettersOf(name)));
    const field = meanings.get(name);
    if (field === undefined || saysNothing(lettersOf(name), field, value)) continue;
    const cure = field === '' ? 'take it out' : `write "${field}"`;
    return `its field ${JSON.stringify(name.slice(0, 100))} does nothing: ${cure}, or give it a name that looks like no right`;
  }
  return undefined;
}

function meaningOf(letters: string): string | undefined {
  return PROTECTING.find(([field, alsoWritten]) => alsoWritten.test(letters) || isSlip(letters, lettersOf(field)))?.[0];
}

/** Two letters from a short name are other words: "props" and "stores" are two from "groups" and "scopes". */
function isSlip(letters: string, field: string): boolean {
  return field !== '' && editDistance(letters, field) <= (field.length > 6 ? 2 : 1);
}

/** `revoked: false`, `expires: null`, `enabled: true`, `state: "live"` */
function saysNothing(letters: string, field: string, value: unknown): boolean {
  if (value === null || value === '') return true;
  if (/^(?:active|enabled|state|status)$/.test(letters)) return !STOPS.test(String(value));
  return field.endsWith('_at') && NO.test(String(value));
}

// Every text that a check sends to a client, such as `must be a number`. The text of an error comes after the name of a
// field, or of a part of the request such as `query`. No text contains a value that the client sent.

import { LIMITS } from '../types/limits.ts';

export const MESSAGES = {
  missing: 'is missing',
  mustBeLeftOut: 'must be left out',
  notBoolean: 'must be true or false',
  notString: 'must be a string',
  notNumber: 'must be a number',
  notInteger: 'must be a whole number',
  notList: 'must be a list',
  notObject: 'must be an object',
  notFile: 'must be a file',
  empty: 'must not be empty',
  duplicate: 'must not contain the same entry twice',
  tooDeep: `is nested deeper than ${LIMITS.depth}`,
  tooManyFields: `must have at most ${LIMITS.properties} fields`,
  tooLongForPattern: 'is too long for its pattern',
  tooManySteps: 'takes too many steps to be checked',
  /** Used when a validation library (such as zod) reports a problem without a message. */
  invalid: 'is not valid',
  mustBe: (description: string) => `must be ${description}`,
  mustMatch: (pattern: string) => `must match ${cut(pattern)}`,
  tooShort: (least: number) => `must have at least ${least} characters`,
  tooLong: (most: number) => `must have at most ${most} ${most === 1 ? 'character' : 'characters'}`,
  tooFew: (least: number) => `must have at least ${least} ${least === 1 ? 'entry' : 'entries'}`,
  tooMany: (most: number) => `must have at most ${most} ${most === 1 ? 'entry' : 'entries'}`,
  tooSmall: (minimum: number) => `must be at least ${minimum}`,
  tooLarge: (maximum: number) => `must be at most ${maximum}`,
  notMoreThan: (bound: number) => `must be more than ${bound}`,
  notLessThan: (bound: number) => `must be less than ${bound}`,
  notMultiple: (step: number) => `must be a multiple of ${step}`,
} as const;

/** Descriptions of strings with a `format`, by the name of the format. */
export const FORMAT_DESCRIPTIONS: Readonly<Record<string, string>> = {
  email: 'an email address',
  uuid: 'a UUID',
  date: 'a date like 2026-12-31',
  'date-time': 'a date and time like 2026-12-31T23:59:59Z',
  time: 'a time like 23:59:59Z',
  uri: 'a URI',
  ipv4: 'an IPv4 address',
  hostname: 'a host name',
};

/** Descriptions of values by their kind, as in `must be a string or null`. */
export const KIND_DESCRIPTIONS = {
  null: 'null',
  boolean: 'true or false',
  number: 'a number',
  integer: 'a whole number',
  string: 'a string',
  array: 'a list',
  object: 'an object',
  file: 'a file',
} as const;

/** Maximum number of alternatives (literals, or kinds of values) that a message lists. */
const MAX_ALTERNATIVES = 10;
/** Maximum characters of one literal or pattern that a message shows. */
const MAX_LITERAL_LENGTH = 100;

/** Lists the literals of an enumeration: `"a" or "b"`, `one of "a", "b", "c"`. */
export function listLiterals(literals: readonly unknown[]): string {
  const shown = literals.slice(0, MAX_ALTERNATIVES).map((literal) => cut(JSON.stringify(literal)));
  if (literals.length > MAX_ALTERNATIVES) return `one of ${shown.join(', ')}, … (${literals.length} in all)`;
  return shown.length <= 2 ? shown.join(' or ') : `one of ${shown.join(', ')}`;
}

/** Joins the alternatives of a union: `a string or null`. */
export function joinAlternatives(descriptions: readonly string[]): string {
  return descriptions.length > MAX_ALTERNATIVES
    ? `one of ${descriptions.length} kinds of value`
    : descriptions.join(' or ');
}

const cut = (text: string): string =>
  text.length > MAX_LITERAL_LENGTH ? `${text.slice(0, MAX_LITERAL_LENGTH)}…` : text;

// Every text that a check sends to a client, such as `must be a number`, with its code and params. The text comes after
// the name of a field, or of a part of the request such as `query`. No text contains a value that the client sent.
import type { Problem } from '../contract.ts';
import { LIMITS } from '../types/check-cost.ts';

/** A mistake of a value. docs/ERRORS.md has a table of the codes, and a test compares both. */
export type Fault = Pick<Problem, 'code' | 'message' | 'params'>;

function fault(code: string, message: string, params: Fault['params'] = {}): Fault {
  return Object.freeze({ code, message, params: Object.freeze(params) });
}

const wrongType = (type: keyof typeof KIND_DESCRIPTIONS): Fault =>
  fault('type', `must be ${KIND_DESCRIPTIONS[type]}`, { type });
const count = (number: number, word: string, words: string): string => `${number} ${number === 1 ? word : words}`;

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

export function joinAlternatives(descriptions: readonly string[]): string {
  return descriptions.length > MAX_ALTERNATIVES
    ? `one of ${descriptions.length} kinds of value`
    : descriptions.join(' or ');
}

const cut = (text: string): string =>
  text.length > MAX_LITERAL_LENGTH ? `${text.slice(0, MAX_LITERAL_LENGTH)}…` : text;

function shownLiterals(literals: readonly unknown[]): Fault['params'] {
  const allowedValues = Object.freeze(literals.slice(0, MAX_ALTERNATIVES));
  return literals.length > MAX_ALTERNATIVES ? { allowedValues, count: literals.length } : { allowedValues };
}

export const FAULTS = {
  missing: fault('required', 'is missing'),
  undeclared: fault('additionalProperties', 'is not declared'),
  mustBeLeftOut: fault('not', 'must be left out'),
  notBoolean: wrongType('boolean'),
  notString: wrongType('string'),
  notNumber: wrongType('number'),
  notInteger: wrongType('integer'),
  notList: wrongType('array'),
  notObject: wrongType('object'),
  notFile: wrongType('file'),
  empty: fault('minLength', 'must not be empty', { limit: 1 }),
  duplicate: fault('uniqueItems', 'must not contain the same entry twice'),
  tooDeep: fault('depth', `is nested deeper than ${LIMITS.depth}`, { limit: LIMITS.depth }),
  tooManyFields: fault('maxProperties', `must have at most ${LIMITS.properties} fields`, { limit: LIMITS.properties }),
  tooLongForPattern: fault('steps', 'is too long for its pattern'),
  tooManySteps: fault('steps', 'takes too many steps to be checked'),
  library: (message: unknown) => fault('library', typeof message === 'string' ? message : 'is not valid'),
  notFormat: (format: string) => fault('format', `must be ${FORMAT_DESCRIPTIONS[format]}`, { format }),
  notLiteral: (literals: readonly unknown[]) =>
    literals.length === 1
      ? fault('const', `must be ${listLiterals(literals)}`, { allowedValue: literals[0] })
      : fault('enum', `must be ${listLiterals(literals)}`, shownLiterals(literals)),
  notInUnion: (description: string, types: readonly string[], literals: readonly unknown[]) =>
    fault('anyOf', `must be ${description}`, {
      ...(types.length > 0 && { type: Object.freeze([...types]) }),
      ...(literals.length > 0 && shownLiterals(literals)),
    }),
  noMatch: (pattern: string) => fault('pattern', `must match ${cut(pattern)}`, { pattern }),
  tooShort: (limit: number) => fault('minLength', `must have at least ${limit} characters`, { limit }),
  tooLong: (limit: number) =>
    fault('maxLength', `must have at most ${count(limit, 'character', 'characters')}`, { limit }),
  tooFew: (limit: number) => fault('minItems', `must have at least ${count(limit, 'entry', 'entries')}`, { limit }),
  tooMany: (limit: number) => fault('maxItems', `must have at most ${count(limit, 'entry', 'entries')}`, { limit }),
  tooSmall: (limit: number) => fault('minimum', `must be at least ${limit}`, { limit }),
  tooLarge: (limit: number) => fault('maximum', `must be at most ${limit}`, { limit }),
  notMoreThan: (limit: number) => fault('exclusiveMinimum', `must be more than ${limit}`, { limit }),
  notLessThan: (limit: number) => fault('exclusiveMaximum', `must be less than ${limit}`, { limit }),
  notMultiple: (multipleOf: number) => fault('multipleOf', `must be a multiple of ${multipleOf}`, { multipleOf }),
} as const;

/** Returns the fault of a union for an object that is none of its objects. @param other the fault for other values */
export function noneOfObjects(other: Fault, count: number): Fault {
  return { ...other, message: `must be one of ${count} kinds of object` };
}

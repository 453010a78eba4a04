// The constraint tags of doc comments, named as in JSON Schema. A tag of another library is an error, and so is a tag
// whose name is nearly that of a constraint. All other tags are remarks, which are accepted. This file knows no types.

import type { Notes } from '../types/shape.ts';
import { readDoc, type Tag } from './doc-comment.ts';

/** The kind of value that a tag constrains. The tag has no effect on values of other kinds. */
export type Family = 'string' | 'number' | 'array';

interface TagRow {
  readonly for: Family;
  /**
   * The kind of value that the tag itself takes:
   * - `count`: a whole number, at least 0
   * - `number`: any finite number
   * - `text`: a text, which is used as written
   * - `flag`: no value
   */
  readonly value: 'count' | 'number' | 'text' | 'flag';
}

export const CONSTRAINTS: Readonly<Record<string, TagRow>> = Object.assign(Object.create(null), {
  minLength: { for: 'string', value: 'count' },
  maxLength: { for: 'string', value: 'count' },
  pattern: { for: 'string', value: 'text' },
  format: { for: 'string', value: 'text' },
  minimum: { for: 'number', value: 'number' },
  maximum: { for: 'number', value: 'number' },
  exclusiveMinimum: { for: 'number', value: 'number' },
  exclusiveMaximum: { for: 'number', value: 'number' },
  multipleOf: { for: 'number', value: 'number' },
  integer: { for: 'number', value: 'flag' },
  minItems: { for: 'array', value: 'count' },
  maxItems: { for: 'array', value: 'count' },
  uniqueItems: { for: 'array', value: 'flag' },
} satisfies Record<string, TagRow>);

const LIBRARY_SCHEMA = 'a schema of a library in `static operations`';
const INTEGER_TYPE = /^\{?\s*(?:u?int(?:eger|\d+)?|u?long|float|double)\b/i;

/**
 * Constraints of class-validator, tsoa, typia and JSON Schema that are not read, each with advice on what to write
 * instead.
 */
const FOREIGN_TAGS: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  min: '@minimum, @minLength or @minItems',
  max: '@maximum, @maxLength or @maxItems',
  minlen: '@minLength',
  maxlen: '@maxLength',
  length: '@minLength and @maxLength',
  range: '@minimum and @maximum',
  items: '@minItems and @maxItems',
  arrayminsize: '@minItems',
  arraymaxsize: '@maxItems',
  arraynotempty: '@minItems 1',
  arrayunique: '@uniqueItems',
  isnotempty: '@minLength 1',
  int: 'Int or @integer',
  isint: 'Int or @integer',
  islong: 'Int or @integer',
  isfloat: 'number',
  isdouble: 'number',
  isnumber: 'number',
  isstring: 'string',
  isboolean: 'boolean',
  isdate: 'Date or @format date',
  isdatetime: 'Date or @format date-time',
  isemail: 'Email or @format email',
  isuuid: 'Uuid or @format uuid',
  isurl: 'Uri or @format uri',
  isuri: 'Uri or @format uri',
  positive: '@exclusiveMinimum 0',
  ispositive: '@exclusiveMinimum 0',
  negative: '@exclusiveMaximum 0',
  isnegative: '@exclusiveMaximum 0',
  regex: '@pattern',
  matches: '@pattern',
  const: 'the literal as the type',
  equals: 'the literal as the type',
  isin: 'the literals as the type',
  isenum: 'the literals as the type',
  additionalproperties: 'a Record or an index signature',
  ...Object.fromEntries(
    `contains minContains maxContains minProperties maxProperties patternProperties propertyNames unevaluatedProperties
    unevaluatedItems additionalItems prefixItems dependentRequired dependentSchemas contentMediaType contentEncoding
    contentSchema minDate maxDate`
      .split(/\s+/)
      .map((word) => [word.toLowerCase(), LIBRARY_SCHEMA]),
  ),
} satisfies Record<string, string>);

/**
 * Returns the reason why a tag is refused: the tag looks like a constraint but is not read. Returns undefined for a
 * constraint and for a remark.
 */
export function findTagMistake(name: string, text: string): string | undefined {
  const bareName = name.replace(/^TJS-/i, '');
  if (bareName === name && CONSTRAINTS[name] !== undefined) return undefined;
  const lower = bareName.toLowerCase();
  if (!nearestByName.has(lower)) nearestByName.set(lower, findNearest(lower));
  const near = nearestByName.get(lower);
  const isRemark = lower === 'const' && /^(?:\{|$)/.test(text);
  const foreign = isRemark
    ? undefined
    : (FOREIGN_TAGS[lower] ?? (/^[Ii]s[A-Z]/.test(name) ? `a type, a tag or ${LIBRARY_SCHEMA}` : undefined));
  const isNumberType = /^(?:as)?type$/.test(lower) && INTEGER_TYPE.test(text);
  const cure = isNumberType ? 'Int or @integer' : (foreign ?? (near === undefined ? undefined : `@${near}`));
  if (cure === undefined) return undefined;
  return `@${name}${isNumberType ? ` ${text.split(/\s/, 1)}` : ''} is not read here: write ${cure}`;
}

/** Finds the constraint whose name differs by at most two letters. */
function findNearest(lower: string): string | undefined {
  const distances = Object.keys(CONSTRAINTS).map(
    (constraint) => [editDistance(lower, constraint), constraint] as const,
  );
  const [letters, near] = distances.reduce((least, pair) => (pair[0] < least[0] ? pair : least));
  return letters <= 2 ? near : undefined;
}

/** The cached results of findNearest(). A file repeats the same few tags, so a result is used often. */
const nearestByName = new Map<string, string | undefined>();

/** Returns the edit distance: how many letters are added, removed or changed. Upper and lower case are equal. */
function editDistance(a: string, name: string): number {
  const b = name.toLowerCase();
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(
        Math.min((row[j] as number) + (letter === b[j] ? 0 : 1), (row[j + 1] as number) + 1, (next[j] as number) + 1),
      );
    }
    row = next;
  }
  return row[b.length] as number;
}

/**
 * Whether a tag is a constraint, or is refused as one. A `@format` without a value is neither: it marks a file for
 * prettier.
 */
export const isConstraint = ([name, text]: Tag): boolean =>
  findTagMistake(name, text) !== undefined || (CONSTRAINTS[name] !== undefined && !(name === 'format' && text === ''));

/**
 * Returns the reason why a comment is refused at a place where constraints are not read. Returns undefined when the
 * comment has no constraint.
 * @param isScript whether the file is JavaScript, where `@type` is no constraint and the tags of a `@typedef` are read
 * elsewhere
 */
export function findUnreadConstraint(doc: string | undefined, isScript = false): string | undefined {
  if (doc?.includes('@') !== true) return undefined;
  const { tags } = readDoc(doc);
  if (isScript && tags.some(([name]) => name === 'typedef')) return undefined;
  const tag = tags.find((tag) => isConstraint(tag) && !(isScript && tag[0] === 'type'));
  return tag === undefined ? undefined : unreadConstraintMessage(tag);
}

/** Whether a comment applies to the next token even when another comment comes between. */
export function appliesAcrossComments(doc: string): boolean {
  const { tags } = readDoc(doc);
  if (tags.some(([name]) => /^(?:typedef|callback|import)$/.test(name))) return false;
  return (
    findUnreadConstraint(doc) !== undefined ||
    tags.some(([name]) => /^(?:overload|param|arg|argument|type|template)$/.test(name))
  );
}

/** Returns the error text for a constraint at a place where constraints are not read. */
export const unreadConstraintMessage = ([name, text]: Tag): string =>
  findTagMistake(name, text) ??
  `@${name} can have no effect here: write it in the comment before a property or a type alias`;

export interface Constraints {
  readonly keywords: Readonly<Record<string, unknown>>;
  readonly notes: Notes;
}

/** @throws Error with a message of one line, on a tag that is refused and on a tag with an invalid value */
export function readConstraints(doc: string | undefined): Constraints {
  const { text, tags } = readDoc(doc);
  const keywords: Record<string, unknown> = {};
  const notes: Record<string, unknown> = text === '' ? {} : { description: text };
  for (const [i, [tag, value]] of tags.entries()) {
    const row = CONSTRAINTS[tag];
    const mistake = findTagMistake(tag, value);
    if (mistake !== undefined) throw new Error(mistake);
    if (row !== undefined) {
      const keyword = readConstraintValue(tag, row, value, tags[i + 1]);
      if (tag in keywords && keywords[tag] !== keyword)
        throw new Error(`@${tag} is written twice with different values: write it once`);
      keywords[tag] = keyword;
    } else if (tag === 'default') notes.default = parseLooseValue(value.replace(/^'([^'"\\]*)'$/, '"$1"'));
    else if (tag === 'deprecated') notes.deprecated = true;
    else if (tag === 'title' || tag === 'description') notes[tag] = value;
    else if (tag === 'example') notes.examples = [...((notes.examples as unknown[]) ?? []), parseLooseValue(value)];
  }
  return { keywords, notes };
}

function readConstraintValue(tag: string, row: TagRow, text: string, next: Tag | undefined): unknown {
  if (text.includes('\n'))
    throw new Error(`@${tag} ${text.replace(/\s+/g, ' ')}: a tag is one line; write text above the tags`);
  if (row.value === 'flag') {
    if (text !== '' && text !== 'true') throw new Error(`@${tag} takes no value; write text above the tags`);
    return true;
  }
  if (text === '') throw new Error(`@${tag} needs a value`);
  if (tag === 'pattern') refuseMisreadPattern(text, next);
  if (row.value === 'text') return text;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`@${tag} ${text}: the value must be a number`);
  if (row.value === 'count' && (!Number.isInteger(value) || value < 0))
    throw new Error(`@${tag} ${text}: the value must be a whole number`);
  if (tag === 'multipleOf' && value <= 0) throw new Error('@multipleOf: the value must be more than 0');
  return value;
}

/**
 * Matches a pattern that has text behind its `$`. No value fits such a pattern. A `$` in a character class or behind a
 * backslash is a plain character.
 */
const TEXT_AFTER_DOLLAR = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[])*?\$(?![$)|]|\(\?|$)/s;
/** Matches a pattern that ends with a `$` which is no plain character. */
const ENDS_WITH_DOLLAR = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[])*\$$/s;

/**
 * Refuses slashes, quotes and text around the pattern. Read as part of the pattern, they would make it refuse every
 * value.
 */
function refuseMisreadPattern(text: string, next: Tag | undefined): void {
  const fail = (why: string): never => {
    throw new Error(`@pattern ${text}: ${why}`);
  };
  if (/^\/.*\/[dgimsuvy]*$/.test(text))
    fail('write the pattern without slashes and flags, and \\/ for a slash at both ends');
  if (/^(["'`]).*\1$/.test(text)) fail('write the pattern without quotes');
  if (TEXT_AFTER_DOLLAR.test(text))
    fail('nothing can follow the $; write text above the tags, and \\$ for a dollar sign');
  const isCut = next?.[2] === false;
  if (isCut && !ENDS_WITH_DOLLAR.test(text))
    fail(`@${next[0]} ends it; write \\x40 for an at sign, or the next tag on its own line`);
  if (/\s/.test(text) && !ENDS_WITH_DOLLAR.test(text))
    fail('write text above the tags, and \\x20 for a blank, or end the pattern with $');
}

/** Parses a text as JSON. A text that is not JSON stays a text, because defaults and examples are for readers only. */
function parseLooseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

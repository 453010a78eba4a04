// The tags of doc comments that constrain a value, such as `@minLength 1`. Their names are those of JSON Schema. Two
// kinds of tags are errors, because they look like constraints and would have no effect: constraints of other libraries
// (`@isInt`), and names with a typing mistake (`@minLenght`). All other tags are accepted as remarks.
import { attempt } from '../../base/failure.ts';
import { isNear } from '../../base/near.ts';
import type { Notes } from '../types/shape.ts';
import { readDoc, type Tag } from './doc-comment.ts';

export type ConstrainedKind = 'string' | 'number' | 'array';

interface TagRow {
  readonly constrains: ConstrainedKind;
  /** The form of the text after the tag. `count`: a whole number, at least 0. `flag`: no text, or `true`. */
  readonly value: 'count' | 'number' | 'text' | 'flag';
}

/** Key: the name of the tag. The object has no prototype, so `constructor` is no key. */
export const CONSTRAINTS: Readonly<Record<string, TagRow>> = Object.assign(Object.create(null), {
  minLength: { constrains: 'string', value: 'count' },
  maxLength: { constrains: 'string', value: 'count' },
  trim: { constrains: 'string', value: 'flag' },
  pattern: { constrains: 'string', value: 'text' },
  format: { constrains: 'string', value: 'text' },
  minimum: { constrains: 'number', value: 'number' },
  maximum: { constrains: 'number', value: 'number' },
  exclusiveMinimum: { constrains: 'number', value: 'number' },
  exclusiveMaximum: { constrains: 'number', value: 'number' },
  multipleOf: { constrains: 'number', value: 'number' },
  integer: { constrains: 'number', value: 'flag' },
  minItems: { constrains: 'array', value: 'count' },
  maxItems: { constrains: 'array', value: 'count' },
  uniqueItems: { constrains: 'array', value: 'flag' },
} satisfies Record<string, TagRow>);

/** Formats of OpenAPI that say how a value is stored or shown. They are notes for the document, and no check. */
export const NOTE_FORMATS: ReadonlySet<string> = new Set('password byte binary int32 int64 float double'.split(' '));

/** Matches the type in `@type int`, `@asType integer` or `@type {float}`, which are tags of other libraries. */
const NUMBER_TYPE = /^\{?\s*(?:u?int(?:eger|\d+)?|u?long|float|double)\b/i;

/** Constraints of class-validator, tsoa, typia and JSON Schema that are not read, in lower case. */
const FOREIGN_TAGS: ReadonlySet<string> = new Set(
  `min max minlen maxlen length range items arrayminsize arraymaxsize arraynotempty arrayunique isnotempty int isint
  islong isfloat isdouble isnumber isstring isboolean isdate isdatetime isemail isuuid isurl isuri positive ispositive
  negative isnegative regex matches const equals isin isenum additionalproperties contains mincontains maxcontains
  minproperties maxproperties patternproperties propertynames unevaluatedproperties unevaluateditems additionalitems
  prefixitems dependentrequired dependentschemas contentmediatype contentencoding contentschema mindate maxdate`.split(
    /\s+/,
  ),
);

const CURE = `the constraints are @${Object.keys(CONSTRAINTS).join(', @')}; for others, give a schema in static operations`;

/** @returns the error for a tag that only looks like a constraint; undefined for a constraint, and for a remark */
export function findTagMistake(name: string, text: string): string | undefined {
  // typescript-json-schema reads `@TJS-minLength` like `@minLength`.
  const bareName = name.replace(/^TJS-/i, '');
  if (bareName === name && CONSTRAINTS[name] !== undefined) return undefined;
  const lower = bareName.toLowerCase();
  // `@const` and `@const {string}` are JSDoc, and `@const 5` is the constraint of a library.
  const isJsdocConst = lower === 'const' && /^(?:\{|$)/.test(text);
  const isForeign = !isJsdocConst && (FOREIGN_TAGS.has(lower) || /^[Ii]s[A-Z]/.test(name));
  const isNumberType = /^(?:as)?type$/.test(lower) && NUMBER_TYPE.test(text);
  const isMisspelt = Object.keys(CONSTRAINTS).some((constraint) =>
    isNear(lower, constraint.toLowerCase(), constraint.length > 4 ? 2 : 1),
  );
  if (!isForeign && !isNumberType && !isMisspelt) return undefined;
  return `@${name}${isNumberType ? ` ${text.split(/\s/, 1)}` : ''} is not read here: ${CURE}`;
}

/** Whether a tag is a constraint or looks like one. A plain `@format` is neither: it marks a file for prettier. */
const isConstraint = ({ name, text }: Tag): boolean =>
  findTagMistake(name, text) !== undefined || (CONSTRAINTS[name] !== undefined && !(name === 'format' && text === ''));

/** Returns the error for a constraint in a comment at a place where constraints have no effect. */
export function findUnreadConstraint(doc: string | undefined, isScript = false): string | undefined {
  if (doc?.includes('@') !== true) return undefined;
  const { tags } = readDoc(doc);
  // In JavaScript, `@type` is no constraint.
  const tag = tags.find((tag) => isConstraint(tag) && !(isScript && tag.name === 'type'));
  if (tag === undefined) return undefined;
  if (isScript) return `@${tag.name} has no effect in JavaScript: give a schema in static operations`;
  const cure = 'write it in the comment before a property or a type alias';
  return findTagMistake(tag.name, tag.text) ?? `@${tag.name} can have no effect here: ${cure}`;
}

/** @throws Error with a message of one line, for a tag that is refused and for an invalid value */
export function readConstraints(doc: string | undefined) {
  const { text, tags } = readDoc(doc);
  const keywords: Record<string, unknown> = {};
  /** The text of the comment, and the tags that only the OpenAPI document shows, such as `@deprecated`. */
  const notes: Record<string, unknown> = text === '' ? {} : { description: text };
  for (const [i, { name: tag, text: value }] of tags.entries()) {
    const row = CONSTRAINTS[tag];
    const mistake = findTagMistake(tag, value);
    if (mistake !== undefined) throw new Error(mistake);
    if (tag === 'format' && NOTE_FORMATS.has(value)) notes.format = value;
    else if (row !== undefined) {
      const keywordValue = readConstraintValue(tag, row, value, tags[i + 1]);
      if (tag in keywords && keywords[tag] !== keywordValue)
        throw new Error(`@${tag} is written twice with different values: write it once`);
      keywords[tag] = keywordValue;
    } else if (tag === 'default') notes.default = parseLooseValue(value.replace(/^'([^'"\\]*)'$/, '"$1"'));
    else if (tag === 'deprecated') notes.deprecated = true;
    else if (tag === 'title' || tag === 'description') notes[tag] = value;
    else if (tag === 'example') notes.examples = [...((notes.examples as unknown[]) ?? []), parseLooseValue(value)];
  }
  return { keywords, notes: notes as Notes };
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

/** Matches a pattern that no value fits, because text follows its `$`. `\$` and the `$` of `[$]` are no such signs. */
const TEXT_AFTER_DOLLAR = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[])*?\$(?![$)|]|\(\?|$)/s;
/** Matches a pattern that ends with a `$`, except for a plain character `$`. */
const ENDS_WITH_DOLLAR = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[])*\$$/s;

/** Refuses a pattern with slashes, quotes or a remark around it, which would become parts of the pattern. */
function refuseMisreadPattern(text: string, next: Tag | undefined): void {
  const fail = (reason: string): never => {
    throw new Error(`@pattern ${text}: ${reason}`);
  };
  if (/^\/.*\/[dgimsuvy]*$/.test(text))
    fail('write the pattern without slashes and flags, and \\/ for a slash at both ends');
  if (/^(["'`]).*\1$/.test(text)) fail('write the pattern without quotes');
  if (TEXT_AFTER_DOLLAR.test(text))
    fail('nothing can follow the $; write text above the tags, and \\$ for a dollar sign');
  // The text of a tag ends before ` @`, where the next tag begins. So `@pattern ^\S+ @\S+$` is the pattern `^\S+`.
  const isCutByTag = next?.isFirstOnLine === false;
  if (isCutByTag && !ENDS_WITH_DOLLAR.test(text))
    fail(`@${next.name} ends it; write \\x40 for an at sign, or the next tag on its own line`);
  if (/\s/.test(text) && !ENDS_WITH_DOLLAR.test(text))
    fail('write text above the tags, and \\x20 for a blank, or end the pattern with $');
}

/** Parses a default or an example as JSON. Returns any other text unchanged, because no check uses the value. */
function parseLooseValue(text: string): unknown {
  return attempt(() => JSON.parse(text), text);
}

// Writes template literal types as regular expressions: `id-${number}` as `^id-(?:-?…)$`. A type in a template matches
// as in TypeScript:
// - A type before a text ends where that text first occurs.
// - A type directly before another type matches one character.
// - The last type extends to the closing text of the template.
import { checkPattern } from './pattern.ts';
import { type Fail, type Keywords, resolve, type Shape, unite } from './shape.ts';

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** Writes the pattern of a type that is no literal. @param end the text before the next type; undefined for the last */
type Placeholder = (end: string | undefined) => string;
/** A choice of texts, or a type that is no literal. */
type Piece = readonly string[] | Placeholder;
/** The pieces of a template, in order. With `${string | number}`, a template has two rows. */
type Row = readonly Piece[];

/** Maximum number of rows of a template, and of texts between two of its types. */
const MAX_COMBINATIONS = 100;
/** Key: the keywords of a template's shape. Value: the rows of the template, which an outer template copies. */
const rowsByKeywords = new WeakMap<Keywords, readonly Row[]>();

export function templateShape(texts: readonly string[], types: readonly Shape[], fail: Fail): Shape {
  if (types.length === 0) return { kind: 'const', value: texts[0] as string };
  let rows: readonly Row[] = [[[texts[0] as string]]];
  types.forEach((type, i) => {
    const typeRows = listRows(type, fail);
    if (rows.length * typeRows.length > MAX_COMBINATIONS)
      fail(`a template with more than ${MAX_COMBINATIONS} combinations of types is not understood`);
    rows = rows.flatMap((row) => typeRows.map((pieces) => [...row, ...pieces, [texts[i + 1] as string]]));
  });
  // A template of literals alone is the union of its texts.
  if (rows.length === 1 && rows[0]?.every((piece) => typeof piece !== 'function')) {
    const choices = rows[0] as readonly (readonly string[])[];
    if (countTexts(choices) <= MAX_COMBINATIONS)
      return unite(joinTexts(choices).map((value): Shape => ({ kind: 'const', value })));
  }
  const keywords = { pattern: `^${writeChoice(rows.map((row) => writePattern(row, fail)))}$` };
  const mistake = checkPattern(keywords.pattern);
  if (mistake !== undefined) fail(`the template has the pattern ${keywords.pattern}: ${mistake}`);
  rowsByKeywords.set(keywords, rows);
  return { kind: 'string', keywords };
}

/** Lists the rows of a type: one row for all its literals, and a row for each of its other parts. */
function listRows(type: Shape, fail: Fail): readonly Row[] {
  const shape = resolve(type);
  const parts = shape.kind === 'union' ? shape.parts.map(resolve) : [shape];
  const literals: string[] = [];
  const rows = parts.flatMap((part): readonly Row[] => {
    if (part.kind === 'union') return listRows(part, fail);
    if (part.kind === 'const') literals.push(String(part.value));
    else if (part.kind === 'boolean') literals.push('true', 'false');
    else if (part.kind === 'null' || part.kind === 'undefined') literals.push(part.kind);
    else if (part.kind === 'string')
      return (part.keywords && rowsByKeywords.get(part.keywords)) ?? [[stringPlaceholder(part.keywords, fail)]];
    else if (part.kind === 'number') return [[numberPlaceholder(part.keywords, fail)]];
    else return fail('this inside of a template is not understood');
    return [];
  });
  return literals.length === 0 ? rows : [[literals], ...rows];
}

function writePattern(row: Row, fail: Fail): string {
  const typeIndex = row.findIndex((piece) => typeof piece === 'function');
  if (typeIndex < 0) return writeTexts(row);
  const nextIndex = row.findIndex((piece, i) => i > typeIndex && typeof piece === 'function');
  const writeType = row[typeIndex] as Placeholder;
  const textsBefore = writeTexts(row.slice(0, typeIndex));
  if (nextIndex < 0) return textsBefore + writeType(undefined) + writeTexts(row.slice(typeIndex + 1));
  const textsBetween = row.slice(typeIndex + 1, nextIndex) as (readonly string[])[];
  if (countTexts(textsBetween) > MAX_COMBINATIONS)
    fail(`a template with more than ${MAX_COMBINATIONS} texts between two of its types is not understood`);
  const ends = joinTexts(textsBetween);
  return (
    textsBefore +
    writeChoice(ends.map((end) => writeType(end) + escapeRegExp(end))) +
    writePattern(row.slice(nextIndex), fail)
  );
}

const countTexts = (choices: readonly (readonly string[])[]): number =>
  choices.reduce((product, { length }) => product * length, 1);
/** Returns each combination of the choices, as one text. */
const joinTexts = (choices: readonly (readonly string[])[]): string[] =>
  choices.reduce<string[]>((texts, choice) => texts.flatMap((text) => choice.map((part) => text + part)), ['']);
const writeTexts = (row: Row): string =>
  row.map((choice) => writeChoice((choice as readonly string[]).map(escapeRegExp))).join('');
const writeChoice = (patterns: readonly string[]): string =>
  patterns.length === 1 ? (patterns[0] as string) : `(?:${patterns.join('|')})`;

function stringPlaceholder(keywords: Keywords | undefined, fail: Fail): Placeholder {
  if (keywords !== undefined) {
    // A pattern between `^` and `$`. A `$` after a backslash is a character of the text.
    const pattern = /^\^(.*[^\\])\$$/s.exec(String(keywords.pattern))?.[1];
    if (pattern === undefined || Object.keys(keywords).length > 1)
      return fail('a constrained string inside of a template is not understood');
    return () => `(?:${pattern})`;
  }
  return (end) => {
    if (end === undefined || end === '') return end === undefined ? '[\\s\\S]*' : '[\\s\\S]';
    return [...end].length === 1 ? `[^${escapeRegExp(end)}]*` : `(?:(?!${escapeRegExp(end)})[\\s\\S])*`;
  };
}

/**
 * In `${number}-5`, the text after the number could be a part of the number. So the number's pattern never matches the
 * first character of this text.
 */
function numberPlaceholder(keywords: Keywords | undefined, fail: Fail): Placeholder {
  const isInteger = keywords?.integer === true;
  if (Object.keys(keywords ?? {}).length > (isInteger ? 1 : 0))
    fail('a constrained number inside of a template is not understood');
  return (end) => {
    if (end === '') return '\\d';
    const stop = end !== undefined && /^[\d.eE+-]+$/.test(end) ? end.charAt(0) : ' ';
    const digit = /\d/.test(stop) ? `[${'0123456789'.replace(stop, '')}]` : '\\d';
    const mantissa = isInteger || stop === '.' ? `${digit}+` : `(?:${digit}+(?:\\.${digit}*)?|\\.${digit}+)`;
    // An exponent has at most two digits, because a number with a longer one may be Infinity.
    const exponent = isInteger ? '' : `(?:[${'eE'.replace(stop, '')}][${'+-'.replace(stop, '')}]?${digit}{1,2})?`;
    return (stop === '-' ? '' : '-?') + mantissa + exponent;
  };
}

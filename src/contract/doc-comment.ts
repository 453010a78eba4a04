// Doc comments: their text and their tags, and which tags constrain a value. Tags are named as in JSON Schema; one that is
// unknown, or that can have no effect, is an error of the file.
import type { Notes } from './shape.ts';

export interface DocComment {
  readonly text: string;
  /** In order: name without its `@`, and what stands behind it. */
  readonly tags: readonly (readonly [name: string, value: string])[];
}

const NO_DOC: DocComment = { text: '', tags: [] };

export function readDoc(doc: string | undefined): DocComment {
  if (doc === undefined) return NO_DOC;
  const lines = doc
    .slice(3, -2)
    .split(/\r\n|[\n\r]|\s+(?=@(?:param|arg|argument|returns?)\s*\{)/)
    .map((line) => line.replace(/^\s*\*? ?/, '').trimEnd());
  const text: string[] = [];
  const tags: [string, string][] = [];
  for (const line of lines) {
    const match = /^@([A-Za-z-]+)\s*(.*)$/.exec(line.trim());
    const last = tags.at(-1);
    if (match !== null) tags.push([match[1] as string, (match[2] as string).trim()]);
    else if (last === undefined) text.push(line);
    else if (line.trim() !== '') last[1] += `\n${line}`;
  }
  return { text: text.join('\n').trim(), tags };
}

/** The first sentence or paragraph, and the rest. */
export function summaryOf(text: string): { summary: string | undefined; description: string | undefined } {
  if (text === '') return { summary: undefined, description: undefined };
  const end = /\n\s*\n|(?<=[.!?])\s+(?=[^\s])/.exec(text);
  const summary = (end === null ? text : text.slice(0, end.index)).replace(/\s+/g, ' ').replace(/\.$/, '');
  const rest = end === null ? '' : text.slice(end.index).trim();
  return { summary, description: rest === '' ? undefined : rest };
}

/** What a keyword constrains: nothing of another type is touched by it. */
export type Family = 'string' | 'number' | 'array';

interface TagRow {
  readonly for: Family;
  /** What its value must be; `text` is taken as it stands, `flag` has none. */
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

/** Tags that say something to people or to tools, and nothing about a value. */
const REMARKS = new Set(
  `alpha author beta category copyright defaultValue event eventProperty example experimental file fileoverview group import
  inheritDoc inheritdoc internal ignore license link module name namespace override packageDocumentation param arg argument
  private privateRemarks prop property protected public readonly remarks return returns satisfies sealed see since
  summary template this throws exception todo type typeParam typedef version virtual desc description`.split(/\s+/),
);

export interface Constraints {
  readonly keywords: Readonly<Record<string, unknown>>;
  readonly notes: Notes;
}

/** @throws Error one line, on a tag that is unknown or has a value that it cannot have */
export function constraintsOf(doc: string | undefined): Constraints {
  const { text, tags } = readDoc(doc);
  const keywords: Record<string, unknown> = {};
  const notes: Record<string, unknown> = text === '' ? {} : { description: text };
  for (const [tag, value] of tags) {
    const row = CONSTRAINTS[tag];
    if (row !== undefined) keywords[tag] = constraintValue(tag, row, value);
    else if (tag === 'default') notes.default = jsonValue(tag, value);
    else if (tag === 'deprecated') notes.deprecated = true;
    else if (tag === 'title') notes.title = value;
    else if (tag === 'example') notes.examples = [...((notes.examples as unknown[]) ?? []), looseValue(value)];
    else if (!REMARKS.has(tag)) throw new Error(`@${tag} is not known`);
  }
  return { keywords, notes };
}

function constraintValue(tag: string, row: TagRow, text: string): unknown {
  if (row.value === 'text') {
    if (text === '') throw new Error(`@${tag} needs a value`);
    return text;
  }
  if (row.value === 'flag') {
    if (text !== '' && text !== 'true') throw new Error(`@${tag} takes no value`);
    return true;
  }
  const value = Number(text.trim());
  if (text.trim() === '' || !Number.isFinite(value)) throw new Error(`@${tag} ${text}: the value must be a number`);
  if (row.value === 'count' && (!Number.isInteger(value) || value < 0))
    throw new Error(`@${tag} ${text}: the value must be a whole number`);
  if (tag === 'multipleOf' && value <= 0) throw new Error('@multipleOf: the value must be more than 0');
  return value;
}

function jsonValue(tag: string, text: string): unknown {
  try {
    return JSON.parse(text.replace(/^'([^'"\\]*)'$/, '"$1"'));
  } catch {
    throw new Error(`@${tag} ${text}: the value must be JSON; a text needs its quotes`);
  }
}

/** An example is for people: JSON where it is some, text otherwise. */
function looseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

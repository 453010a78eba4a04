// Parses a JSDoc type, which is the text in the braces of a tag: `{Array.<?string>}`. The signs that only JSDoc has are
// translated first. Then the parser for TypeScript reads the text. An unsupported form becomes an `unsupported` node.
import { Cursor } from './cursor.ts';
import { findBracketEnd } from './doc-comment.ts';
import { parseType } from './parse-types.ts';
import { SourceError } from './source-error.ts';
import type { NameNode, TypeNode } from './syntax.ts';
import { Kind, type Token, tokenize } from './tokens.ts';

/** Splits `{T} rest` into type and rest. Without a closing brace, the type is the whole text, which is then refused. */
export function splitType(text: string): { type: string | undefined; rest: string } {
  const trimmed = text.trim();
  const end = findBracketEnd(trimmed, 0, '{}');
  if (end < 0) return trimmed.startsWith('{') ? { type: trimmed, rest: '' } : { type: undefined, rest: trimmed };
  return { type: trimmed.slice(1, end - 1).trim(), rest: trimmed.slice(end).trim() };
}

/** Returns `T` for `{T}`, and also for a plain `T`. */
export const stripBraces = (text: string): string => splitType(text).type ?? text;

/** @param text the type without its braces. @param at the offset for all nodes, usually that of the comment */
export function parseJsdocType(text: string, at: number): TypeNode {
  const unsupported: TypeNode = { kind: 'unsupported', form: `the type {${text}}`, at };
  try {
    // The `=` at the end marks an optional parameter.
    const tokens = tokenize(replaceJsdocSigns(text.replace(/=$/, '')));
    const c = new Cursor(tokens, { parseType, parseValue: () => undefined });
    const type = parseType(c);
    return c.isAtEnd ? translateNames(type, at) : unsupported;
  } catch (error) {
    if (error instanceof SourceError) return unsupported;
    throw error;
  }
}

/**
 * Translates the signs that only JSDoc has: `*` and a lone `?` become `any`, `?T` and `T?` become `T | null`, `!T`
 * becomes `T`, and `Array.<T>` becomes `Array<T>`.
 */
function replaceJsdocSigns(text: string): string {
  const { tokens } = tokenize(text);
  let translated = text;
  // From the last sign to the first, so that the offsets of the earlier tokens stay valid.
  for (let i = tokens.length - 2; i >= 0; i--) {
    const { kind, at } = tokens[i] as Token;
    const sign = kind === Kind.punctuation ? translateSign(tokens, i) : undefined;
    if (sign !== undefined) translated = translated.slice(0, at) + sign + translated.slice(at + 1);
  }
  return translated;
}

/** Returns undefined for a sign that means the same in JSDoc and in TypeScript. */
function translateSign(tokens: readonly Token[], i: number): string | undefined {
  const { text } = tokens[i] as Token;
  const nextText = (tokens[i + 1] as Token).text;
  if (text === '*') return 'any';
  if (text === '!' || (text === '.' && nextText === '<')) return '';
  const previous = tokens[i - 1];
  if (text !== '?') return undefined;
  const isBeforeType =
    previous === undefined || (previous.kind === Kind.punctuation && /^(?:[<(,|:[=]|=>)$/.test(previous.text));
  if (isBeforeType) return /^[>),\]}|&=]?$/.test(nextText) ? 'any' : 'null|';
  // `T?` is translated only at the end. In `A & B?`, the text `|null` would apply to the whole intersection.
  return nextText === '' && tokens.every((token) => token.text !== '&') ? '|null' : undefined;
}

/** Copies a node. Replaces names by their meaning in JSDoc (`String` is `string`), and all offsets by `at`. */
function translateNames<T>(node: T, at: number): T {
  if (Array.isArray(node)) return node.map((item) => translateNames(item, at)) as T;
  if (typeof node !== 'object' || node === null) return node;
  const translated = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, key === 'at' ? at : translateNames(value, at)]),
  ) as T;
  return isPlainName(translated) ? ((translateName(translated) ?? translated) as T) : translated;
}

/** Whether a node is a name without `import('…')`. */
const isPlainName = (node: unknown): node is NameNode =>
  (node as TypeNode).kind === 'name' && (node as NameNode).from === undefined;

/** Returns undefined for a name that means the same in JSDoc and in TypeScript. */
function translateName({ name, args, at }: NameNode): TypeNode | undefined {
  const [first] = args;
  const any: TypeNode = { kind: 'word', name: 'any', at };
  if (/^(?:String|Number|Boolean|Undefined|Void)$/.test(name)) return { kind: 'word', name: name.toLowerCase(), at };
  if (name === 'Null') return { kind: 'literal', value: null, at };
  if (name === 'Object' && first === undefined) return any;
  if (name === 'Object' && args.length === 2 && first?.kind === 'word' && /^(?:string|number)$/.test(first.name))
    return { kind: 'name', name: 'Record', args, at };
  return name === 'Array' && first === undefined ? { kind: 'array', element: any, at } : undefined;
}

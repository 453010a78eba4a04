// The types of plain JavaScript, out of its JSDoc comments: `@typedef`, `@import`, and of a function `@param` and `@returns`.
// What stands in braces is read by the same parser as TypeScript.
import { Cursor } from './cursor.ts';
import { readDoc } from './doc-comment.ts';
import { parseType } from './parse-types.ts';
import { SourceError } from './source-error.ts';
import type { Declaration, Import, Member, Param, TypeNode } from './syntax.ts';
import { tokenize } from './tokens.ts';

export interface Typedefs {
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  readonly imports: ReadonlyMap<string, Import>;
}

export function readTypedefs(source: string): Typedefs {
  const declarations = new Map<string, readonly Declaration[]>();
  const imports = new Map<string, Import>();
  if (!/@(?:typedef|import)\b/.test(source)) return { declarations, imports };
  for (const { 0: doc, index: at } of source.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
    const { tags } = readDoc(doc);
    for (const [i, [tag, value]] of tags.entries()) {
      if (tag === 'import') readImport(value, imports);
      if (tag !== 'typedef') continue;
      const { type, rest } = splitType(value);
      const name = /^[\w$]+/.exec(rest)?.[0];
      if (name === undefined) continue;
      const own = constraintsFrom(tags, i + 1);
      const properties = [...tags.entries()].filter(([j, [other]]) => j > i && isProperty(other));
      const isObject = type === undefined || /^[Oo]bject$/.test(type);
      const isListed = isObject && properties.length > 0;
      const listed = properties.map(([j, [, text]]) => ({ ...readParam(text, at), tags: constraintsFrom(tags, j + 1) }));
      const node = isListed ? nested(listed, '', at) : typeAt(type ?? 'Object', at);
      declarations.set(name, [aliasOf(name, node, `${readDoc(doc).text}${own}`, at)]);
    }
  }
  return { declarations, imports };
}

const isProperty = (tag: string): boolean => tag === 'property' || tag === 'prop';

/** The tags that constrain what the tag before them declares, a line each: up to the next one that declares. */
function constraintsFrom(tags: readonly (readonly [string, string])[], from: number): string {
  const end = tags.findIndex(([tag], i) => i >= from && (isProperty(tag) || tag === 'typedef'));
  const between = tags.slice(from, end < 0 ? undefined : end);
  return between.map(([tag, value]) => `\n@${tag} ${value}`).join('');
}

const commentOf = (text: string): string | undefined => (text.trim() === '' ? undefined : `/** ${text.replaceAll('*/', '')} */`);

function aliasOf(name: string, type: TypeNode, text: string, at: number): Declaration {
  const doc = commentOf(text);
  const none = { inside: '', params: [], parents: [], members: [], literal: undefined, value: undefined };
  return { ...none, kind: 'alias', name, type, className: '', doc, at };
}

function readImport(text: string, imports: Map<string, Import>): void {
  const match = /^(?:(\w+)\s*,?\s*)?(?:\{([^}]*)\}|\*\s+as\s+(\w+))?\s*from\s*(['"])(.*?)\4/.exec(text);
  if (match === null) return;
  const [, byDefault, names, whole, , from] = match as unknown as (string | undefined)[];
  if (byDefault !== undefined) imports.set(byDefault, { from: from as string, name: 'default' });
  if (whole !== undefined) imports.set(whole, { from: from as string, name: '*' });
  for (const one of names?.split(',') ?? []) {
    const [outer, local = outer] = one.trim().split(/\s+as\s+/);
    if (outer) imports.set(local as string, { from: from as string, name: outer });
  }
}

/** The types that the comment of a function gives to its parameters. @throws SourceError on one that names no parameter */
export function withDocTypes(params: readonly Param[], doc: string | undefined, at: number): readonly Param[] {
  const { tags } = readDoc(doc);
  const given = tags.filter(([tag]) => tag === 'param' || tag === 'arg' || tag === 'argument').map(([, text]) => readParam(text, at));
  const whole = given.filter(({ path }) => !path.includes('.'));
  const typed = tags.find(([tag, text]) => tag === 'overload' || (tag === 'type' && text.startsWith('{')));
  if (typed !== undefined) throw new SourceError(`@${typed[0]} of an operation is not read: write @param`, at);
  const made = params.map(withOwnType);
  if (whole.every(({ type }) => type === undefined)) return made;
  for (const [i, { path, type, optional }] of whole.entries()) {
    const named = params.findIndex(({ name }) => name === path);
    // A pattern has no name; its tag is found by its place.
    const index = named >= 0 ? named : params[i]?.name === '' ? i : -1;
    if (type === undefined) continue;
    if (index < 0) throw new SourceError(`@param ${path} is no parameter of the operation`, at);
    const inner = given.filter((one) => one.path.startsWith(`${path}.`));
    const isObject = type.kind === 'word' && type.name === 'any' && inner.length > 0;
    const of = isObject ? nested(inner, `${path}.`, at) : type;
    made[index] = { ...(params[index] as Param), type: of, optional };
  }
  return made;
}

/** `created(/** @type {T} *\/ data)` */
function withOwnType(param: Param): Param {
  const text = readDoc(param.doc).tags.find(([tag]) => tag === 'type')?.[1];
  const type = text === undefined ? undefined : splitType(text).type;
  return type === undefined ? param : { ...param, type: typeAt(type, 0) };
}

export function docResult(doc: string | undefined, at: number): TypeNode | undefined {
  const tag = readDoc(doc).tags.find(([name]) => name === 'returns' || name === 'return');
  const type = tag === undefined ? undefined : splitType(tag[1]).type;
  return type === undefined ? undefined : typeAt(type, at);
}

interface DocParam {
  readonly path: string;
  readonly type: TypeNode | undefined;
  readonly optional: boolean;
  readonly text: string;
  /** Those that constrain it. */
  readonly tags?: string;
}

/** `{T} name - text`, `{T} [name=1]`, `{T=} name`, `name {T}` */
function readParam(text: string, at: number): DocParam {
  const [, name, behind = ''] = /^([\w$.]+)\s+(\{[\s\S]*)$/.exec(text.trim()) ?? [];
  const split = splitType(name === undefined ? text : behind);
  const { type, rest } = name === undefined ? split : { ...split, rest: `${name} ${split.rest}` };
  const match = /^\[?\s*([\w$.]*)[^\]\s]*\]?\s*-?\s*([\s\S]*)$/.exec(rest);
  const optional = rest.startsWith('[') || type?.endsWith('=') === true;
  return {
    path: match?.[1] ?? '',
    type: type === undefined ? undefined : typeAt(type.replace(/=$/, ''), at),
    optional,
    text: match?.[2] ?? '',
  };
}

function nested(params: readonly DocParam[], prefix: string, at: number): TypeNode {
  const members = params
    .filter(({ path }) => !path.slice(prefix.length).includes('.'))
    .map((param): Member => {
      const inner = params.filter(({ path }) => path.startsWith(`${param.path}.`));
      const isObject = inner.length > 0 && param.type?.kind === 'word' && param.type.name === 'any';
      return memberOf(
        { ...param, path: param.path.slice(prefix.length), type: isObject ? nested(inner, `${param.path}.`, at) : param.type },
        at,
      );
    });
  return { kind: 'object', members, at };
}

function memberOf({ path, type, optional, text, tags = '' }: DocParam, at: number): Member {
  const doc = commentOf(text + tags);
  return {
    kind: 'property',
    name: path,
    modifiers: [],
    optional,
    doc,
    type: type ?? { kind: 'word', name: 'any', at },
    params: [],
    body: false,
    at,
  };
}

/** `{T} rest`; braces may nest. */
function splitType(text: string): { type: string | undefined; rest: string } {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{')) return { type: undefined, rest: trimmed };
  let depth = 0;
  for (let i = 0; i < trimmed.length; i++) {
    if (trimmed[i] === '{') depth++;
    else if (trimmed[i] === '}' && --depth === 0) return { type: trimmed.slice(1, i).trim(), rest: trimmed.slice(i + 1).trim() };
  }
  return { type: undefined, rest: trimmed };
}

/** What JSDoc writes in its own way: `*` and `Object` are anything, `?T` may be null. */
function typeAt(text: string, at: number): TypeNode {
  const plain = text.trim();
  if (plain === '*' || plain === '?' || /^[Oo]bject$/.test(plain)) return { kind: 'word', name: 'any', at };
  if (plain.startsWith('?')) return { kind: 'union', of: [typeAt(plain.slice(1), at), { kind: 'literal', value: null, at }], at };
  if (plain.startsWith('!')) return typeAt(plain.slice(1), at);
  try {
    const record = plain.replace(/\bObject(?=\.?<)/g, 'Record').replace(/\.(?=<)/g, '');
    const c = new Cursor(tokenize(record), { type: parseType, value: () => undefined });
    const type = parseType(c);
    return c.atEnd ? moved(type, at) : { kind: 'other', what: `the type {${plain}}`, at };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return { kind: 'other', what: `the type {${plain}}`, at };
  }
}

/** Places within a comment's type are those of the comment. */
function moved<T>(node: T, at: number): T {
  if (Array.isArray(node)) return node.map((one) => moved(one, at)) as T;
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, key === 'at' ? at : moved(value, at)])) as T;
}

// The statements of a file that declare something: imports, exports, types, classes, constants, functions. They are
// known by their first words; everything else is stepped over.
import { Cursor } from './cursor.ts';
import { classNameAt, declarationOf, parseBody } from './parse-declaration.ts';
import { parseFunction, parseTypeParams, skipDecorators, skipValue } from './parse-members.ts';
import { parseType } from './parse-types.ts';
import { valueAt } from './parse-values.ts';
import { SourceError } from './source-error.ts';
import type { Declaration, Import, Module } from './syntax.ts';
import { Kind, type Token, tokenize } from './tokens.ts';

/** @throws SourceError */
export function parseModule(source: string): Module {
  const tokens = tokenize(source);
  const c = new Cursor(tokens, { type: parseType, value: valueAt });
  const found: Found = { declarations: new Map(), imports: new Map(), exports: new Map(), stars: [] };
  parseStatements(c, found, tokens.list.length - 1);
  return { source, docs: tokens.docs, ...found };
}

interface Found {
  readonly declarations: Map<string, Declaration[]>;
  readonly imports: Map<string, Import>;
  readonly exports: Map<string, string | Import>;
  readonly stars: string[];
}

function parseStatements(c: Cursor, found: Found, end: number): void {
  while (c.i < end) {
    const before = c.i;
    const starts = c.i === 0 || c.token().fresh || c.is(';', -1) || c.is('}', -1) || c.is('{', -1);
    if (starts) skipDecorators(c);
    if (starts && c.is('import') && c.inside === '') importStatement(c, found);
    else if (starts && c.is('export')) exportStatement(c, found);
    else if (starts && c.isName()) declaration(c, found);
    if (c.i === before) c.skip();
  }
}

// Imports and exports

function importStatement(c: Cursor, { imports }: Found): void {
  c.i++;
  if (c.is('(') || c.is('.')) return;
  if (c.token().kind === Kind.string) {
    c.i++;
    return;
  }
  if (
    c.is('type') &&
    (c.is('{', 1) || c.is('*', 1) || (c.isName(1) && !c.is('from', 1)) || (c.is('from', 1) && c.is('from', 2)))
  )
    c.i++;
  const names: [local: string, outer: string][] = [];
  if (c.isName()) names.push([c.name(), 'default']);
  if (c.take('=')) {
    // `import Name = Space.Name` leads nowhere, and above all to no global of that name.
    for (const [local] of names) imports.set(local, { from: 'import =', name: '*' });
    return;
  }
  c.take(',');
  if (c.take('*')) {
    c.expect('as');
    names.push([c.name(), '*']);
  } else if (c.is('{')) for (const [outer, local] of specifiers(c)) names.push([local, outer]);
  c.expect('from');
  const from = c.string();
  for (const [local, outer] of names) imports.set(local, { from, name: outer });
}

/** `{ a, type b as c }` → [a, a], [b, c] */
function specifiers(c: Cursor): [string, string][] {
  const found: [string, string][] = [];
  const end = c.end('{');
  c.i++;
  while (c.i < end) {
    const isRenamedType = c.is('as', 1) && c.isName(2) && (c.is(',', 3) || c.is('}', 3));
    if (c.is('type') && !c.is(',', 1) && !c.is('}', 1) && !isRenamedType) c.i++;
    const first = c.next().value;
    found.push([first, c.take('as') ? c.next().value : first]);
    if (c.i < end) c.expect(',');
  }
  c.i = end + 1;
  return found;
}

function exportStatement(c: Cursor, found: Found): void {
  const from = c.i;
  c.i++;
  if (c.is('type') && (c.is('{', 1) || c.is('*', 1))) c.i++;
  if (c.take('*')) {
    const as = c.take('as') ? c.next().value : undefined;
    c.expect('from');
    const from = c.string();
    if (as === undefined) found.stars.push(from);
    else found.exports.set(as, { from, name: '*' });
  } else if (c.is('{')) {
    const names = specifiers(c);
    const from = c.take('from') ? c.string() : undefined;
    for (const [local, outer] of names) found.exports.set(outer, from === undefined ? local : { from, name: local });
  } else if (c.is('default')) exportDefault(c, found, from);
  else {
    skipDecorators(c);
    for (const name of declaration(c, found, from)) if (c.inside === '') found.exports.set(name, name);
  }
}

function exportDefault(c: Cursor, found: Found, from: number): void {
  c.i++;
  skipDecorators(c);
  if (c.is('abstract') && c.is('class', 1)) c.i++;
  if (
    c.is('class') ||
    (c.is('interface') && c.isName(1)) ||
    c.is('function') ||
    (c.is('async') && c.is('function', 1))
  ) {
    found.exports.set('default', declaration(c, found, from)[0] ?? 'default');
    return;
  }
  const { at } = c.token();
  const { doc } = c.list[from] as Token;
  const literal = literalAt(c);
  const value = valueAt(c, c.list.length - 1);
  const isName = value?.kind === 'reference' && !value.name.includes('.');
  found.exports.set(
    'default',
    isName ? value.name : add(found, declarationOf(c, 'const', 'default', { literal, value, doc, at })),
  );
}

// Declarations

function add(found: Found, declaration: Declaration): string {
  const key = declaration.inside + declaration.name;
  const before = found.declarations.get(key);
  if (before === undefined) found.declarations.set(key, [declaration]);
  else before.push(declaration);
  return declaration.name;
}

/**
 * @param first where its statement begins @returns the names that it declares; none when it is no declaration of ours
 */
function declaration(c: Cursor, found: Found, first = c.i): readonly string[] {
  const docAt = c.list[first]?.doc === undefined ? c.i : first;
  const doc = c.list[docAt]?.doc;
  const from = c.i;
  while ((c.is('declare') || c.is('abstract')) && c.isName(1) && !c.token(1).fresh) c.i++;
  const read = READERS[c.token().text];
  const names = c.isName() && read !== undefined ? read(c, found, doc, c.token().at, docAt) : undefined;
  if (names === undefined) c.i = from;
  return typeof names === 'string' ? [names] : (names ?? []);
}

type Reader = (
  c: Cursor,
  found: Found,
  doc: string | undefined,
  at: number,
  docAt: number,
) => string | readonly string[] | undefined;

const READERS: { readonly [word: string]: Reader | undefined } = Object.assign(Object.create(null), {
  interface: (c, found, doc, at) => {
    if (!c.isName(1) || c.token(1).fresh) return undefined;
    c.i++;
    return add(found, parseBody(c, 'interface', c.name(), { doc, at }));
  },
  type: (c, found, _doc, at, docAt) => {
    if (!c.isName(1) || c.token(1).fresh || !(c.is('=', 2) || c.is('<', 2))) return undefined;
    c.i++;
    const name = c.name();
    const params = parseTypeParams(c);
    c.expect('=');
    const type = parseType(c);
    const doc = c.takeDoc(docAt);
    return add(found, declarationOf(c, 'alias', name, { params, type: c.sound(type, docAt, c.behind), doc, at }));
  },
  class: (c, found, doc, at) => {
    if (!c.isName(1) && !c.is('{', 1)) return undefined;
    c.i++;
    return add(found, parseBody(c, 'class', classNameAt(c) ?? 'default', { doc, at }));
  },
  namespace,
  module: namespace,
  enum: (c, found, doc, at) => enumeration(c, found, doc, at, 1),
  const: (c, found, doc, at) => (c.is('enum', 1) ? enumeration(c, found, doc, at, 2) : constant(c, found, doc, at)),
  let: constant,
  var: constant,
  function: functionDeclaration,
  async: (c, found, doc, at) => {
    if (!c.is('function', 1) || c.token(1).fresh) return undefined;
    c.i++;
    return functionDeclaration(c, found, doc, at);
  },
} satisfies Record<string, Reader>);

function namespace(c: Cursor, found: Found): string | undefined {
  const { kind, value, at } = c.token(1);
  if (kind === Kind.string && value.startsWith('.') && c.is('{', 2))
    throw new SourceError('what is added to the types of another file is not read', at);
  if (!c.isName(1) || c.token(1).fresh) return undefined;
  c.i++;
  const name = c.dotted(c.name());
  const outer = c.inside;
  const end = c.end('{');
  c.inside += `${name}.`;
  c.i++;
  parseStatements(c, found, end);
  c.inside = outer;
  c.i = end + 1;
  return name;
}

function enumeration(c: Cursor, found: Found, doc: string | undefined, at: number, words: number): string | undefined {
  if (!c.isName(words) || !c.is('{', words + 1)) return undefined;
  c.i += words;
  const name = c.name();
  const end = c.end('{') + 1;
  const literal = [c.token().at, (c.list[end] as { at: number }).at] as const;
  c.i = end;
  return add(found, declarationOf(c, 'enum', name, { literal, doc, at }));
}

function constant(c: Cursor, found: Found, doc: string | undefined, at: number): readonly string[] | undefined {
  if (!c.isName(1) && !c.is('{', 1) && !c.is('[', 1)) return undefined;
  const isVariable = !c.is('const');
  const names: string[] = [];
  do {
    c.i++;
    if (c.isName()) names.push(oneConstant(c, found, { isVariable, doc, at }));
    else names.push(...pattern(c, found));
  } while (c.is(','));
  return names;
}

function oneConstant(c: Cursor, found: Found, rest: Partial<Declaration>): string {
  const name = c.name();
  const type = c.take(':') ? parseType(c) : undefined;
  const isGiven = c.take('=');
  const literal = isGiven ? literalAt(c) : undefined;
  const value = isGiven ? valueAt(c, c.list.length - 1) : undefined;
  if (isGiven && value === undefined) skipValue(c, c.list.length - 1, ',', true);
  return add(found, declarationOf(c, 'const', name, { type, literal, value, ...rest }));
}

/** `{ a, b: [c] } = …`: every name in it is declared, and what it holds is not followed. */
function pattern(c: Cursor, found: Found): string[] {
  const end = c.partner[c.i] as number;
  const names = c.list.slice(c.i, end).filter(({ kind }) => kind === Kind.name);
  c.i = end + 1;
  if (c.take('=')) skipValue(c, c.list.length - 1, ',', true);
  return names.map(({ value, at }) => add(found, declarationOf(c, 'const', value, { isVariable: true, at })));
}

/**
 * The place of the literal that begins here, with its `as const`; empty when it has another type, or is part of more.
 */
function literalAt(c: Cursor): [number, number] {
  const { at } = c.token();
  const partner = c.partner[c.i] as number;
  const isConst = (at: number) => c.list[at]?.text === 'as' && c.list[at + 1]?.text === 'const';
  const last = partner >= 0 ? partner : c.is('-') ? c.i + 1 : c.i;
  const end = c.list[isConst(last + 1) ? last + 3 : last + 1] ?? c.token();
  // A type that it must satisfy may narrow what is in it.
  const isWhole =
    end.text === 'satisfies' ? isConst(last + 1) || partner < 0 : /^[;,)}]$/.test(end.text) || end.kind === Kind.end;
  const isNext =
    end.fresh &&
    end.kind !== Kind.punctuation &&
    end.kind !== Kind.template &&
    !/^(?:in|instanceof|as)$/.test(end.text);
  return [at, isWhole || isNext || end.text === '@' ? end.at : at];
}

function functionDeclaration(c: Cursor, found: Found, doc: string | undefined, at: number): string | undefined {
  c.i++;
  c.take('*');
  const name = c.isName() ? c.name() : 'default';
  if (!c.is('(') && !c.is('<')) return undefined;
  const value = parseFunction(c);
  if (c.is('{')) c.skip();
  return add(found, declarationOf(c, 'function', name, { value, doc, at }));
}

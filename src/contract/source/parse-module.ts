// Parses the statements of a file that declare something: imports, exports, types, classes, constants, functions. Each
// of these begins with a word such as `import`. The parser steps over all other statements.
import { Cursor } from './cursor.ts';
import { createDeclaration, type DocAndPlace, type Fields, parseParentsAndMembers } from './parse-declaration.ts';
import { parseFunction, parseTypeParams, skipDecorators, skipValue } from './parse-members.ts';
import { parseType } from './parse-types.ts';
import { parseValue } from './parse-values.ts';
import { SourceError } from './source-error.ts';
import type { Declaration, Import, Module } from './syntax.ts';
import { Kind, type Token, tokenize } from './tokens.ts';

export function parseModule(source: string): Module {
  const c = createCursor(source);
  const content: ModuleContent = { declarations: new Map(), imports: new Map(), exports: new Map(), starExports: [] };
  parseStatements(c, content, c.tokens.length - 1);
  return { source, ...content };
}

export const createCursor = (source: string): Cursor => new Cursor(tokenize(source), { parseType, parseValue });

interface ModuleContent {
  readonly declarations: Map<string, Declaration[]>;
  readonly imports: Map<string, Import>;
  readonly exports: Map<string, string | Import>;
  readonly starExports: string[];
}

function parseStatements(c: Cursor, content: ModuleContent, end: number): void {
  while (c.index < end) {
    const start = c.index;
    // The first token of a line may begin a statement. The parsers below leave any other token alone.
    const isStatementStart = c.index === 0 || c.token().startsLine || c.is(';', -1) || c.is('}', -1) || c.is('{', -1);
    if (isStatementStart) skipDecorators(c);
    if (isStatementStart && c.is('import')) parseImport(c, content);
    else if (isStatementStart && c.is('export')) parseExport(c, content);
    else if (isStatementStart && c.isName()) parseDeclaration(c, content);
    if (c.index === start) c.skipGroup();
  }
}

// Imports and exports

function parseImport(c: Cursor, { imports }: ModuleContent): void {
  c.index++;
  // `import(…)` and `import.meta` are expressions, and `import 'x'` imports no name.
  if (c.is('(') || c.is('.') || c.token().kind === Kind.string) return;
  // `import type T from`: here `type` is a modifier. In `import type from 'x'`, it is the imported name.
  if (
    c.is('type') &&
    (c.is('{', 1) || c.is('*', 1) || (c.isName(1) && !c.is('from', 1)) || (c.is('from', 1) && c.is('from', 2)))
  )
    c.index++;
  const names: [local: string, exported: string][] = [];
  if (c.isName()) names.push([c.expectName(), 'default']);
  if (c.accept('=')) {
    // `import Name = Space.Name` is not followed. Without this entry, `Name` would be taken for a global name.
    for (const [local] of names) imports.set(local, { from: 'import =', name: '*' });
    return;
  }
  c.accept(',');
  if (c.accept('*')) {
    c.expect('as');
    names.push([c.expectName(), '*']);
  } else if (c.is('{')) for (const [exported, local] of parseSpecifiers(c)) names.push([local, exported]);
  c.expect('from');
  const from = c.expectString();
  for (const [local, exported] of names) imports.set(local, { from, name: exported });
}

/** Parses `{ a, type b as c }` as `[a, a], [b, c]`: each name before and after `as`. */
function parseSpecifiers(c: Cursor): [string, string][] {
  const names: [string, string][] = [];
  const end = c.closingIndex('{');
  c.index++;
  while (c.index < end) {
    // `{ type as b }` imports the name `type`, and `{ type A as b }` imports the type `A`.
    const isNameType = c.is('as', 1) && c.isName(2) && (c.is(',', 3) || c.is('}', 3));
    if (c.is('type') && !c.is(',', 1) && !c.is('}', 1) && !isNameType) c.index++;
    const first = c.next().value;
    names.push([first, c.accept('as') ? c.next().value : first]);
    if (c.index < end) c.expect(',');
  }
  c.index = end + 1;
  return names;
}

function parseExport(c: Cursor, content: ModuleContent): void {
  const start = c.index;
  c.index++;
  if (c.is('type') && (c.is('{', 1) || c.is('*', 1))) c.index++;
  if (c.accept('*')) {
    const exported = c.accept('as') ? c.next().value : undefined;
    c.expect('from');
    const from = c.expectString();
    if (exported === undefined) content.starExports.push(from);
    else content.exports.set(exported, { from, name: '*' });
  } else if (c.is('{')) {
    const names = parseSpecifiers(c);
    const from = c.accept('from') ? c.expectString() : undefined;
    for (const [local, exported] of names)
      content.exports.set(exported, from === undefined ? local : { from, name: local });
  } else if (c.is('default')) parseDefaultExport(c, content, start);
  else {
    skipDecorators(c);
    for (const name of parseDeclaration(c, content, start)) content.exports.set(name, name);
  }
}

/** A value after `default` becomes a constant of the name `default`. */
function parseDefaultExport(c: Cursor, content: ModuleContent, statementStart: number): void {
  c.index++;
  skipDecorators(c);
  if (c.is('abstract') && c.is('class', 1)) c.index++;
  const isFunction = c.is('function') || (c.is('async') && c.is('function', 1));
  if (isFunction || c.is('class') || (c.is('interface') && c.isName(1))) {
    content.exports.set('default', parseDeclaration(c, content, statementStart)[0] ?? 'default');
    return;
  }
  const { at } = c.token();
  const { doc } = c.tokens[statementStart] as Token;
  const literalRange = findLiteralRange(c);
  const value = parseValue(c, c.tokens.length - 1);
  content.exports.set('default', declare(content, 'const', 'default', { literalRange, value, doc, at }));
}

// Declarations

function addDeclaration({ declarations }: ModuleContent, declaration: Declaration): string {
  const { name } = declaration;
  const sameName = declarations.get(name);
  if (sameName === undefined) declarations.set(name, [declaration]);
  else sameName.push(declaration);
  return name;
}

function declare(content: ModuleContent, kind: Declaration['kind'], name: string, fields: Fields): string {
  return addDeclaration(content, createDeclaration(kind, name, fields));
}

/** @returns the declared names; an empty list for a statement that declares nothing */
function parseDeclaration(c: Cursor, content: ModuleContent, statementStart = c.index): readonly string[] {
  const docIndex = c.tokens[statementStart]?.doc === undefined ? c.index : statementStart;
  const start = c.index;
  while ((c.is('declare') || c.is('abstract')) && c.isName(1) && !c.token(1).startsLine) c.index++;
  const parse = PARSERS[c.token().text];
  const docAndPlace = { doc: c.tokens[docIndex]?.doc, at: c.token().at };
  const names = c.isName() && parse !== undefined ? parse(c, content, docAndPlace, docIndex) : undefined;
  if (names === undefined) c.index = start;
  return typeof names === 'string' ? [names] : (names ?? []);
}

/** @param docIndex of the token with the statement's comment. @returns undefined for a statement such as `type = 5` */
type DeclarationParser = (c: Cursor, content: ModuleContent, docAndPlace: DocAndPlace, docIndex: number) => Names;
type Names = string | readonly string[] | undefined;

const PARSERS: { readonly [word: string]: DeclarationParser | undefined } = Object.assign(Object.create(null), {
  interface: (c, content, docAndPlace) => {
    if (!c.isName(1) || c.token(1).startsLine) return undefined;
    c.index++;
    return addDeclaration(content, parseParentsAndMembers(c, 'interface', c.expectName(), docAndPlace));
  },
  type: (c, content, { at }, docIndex) => {
    if (!c.isName(1) || c.token(1).startsLine || !(c.is('=', 2) || c.is('<', 2))) return undefined;
    c.index++;
    const name = c.expectName();
    const typeParams = parseTypeParams(c);
    c.expect('=');
    const writtenType = parseType(c);
    const doc = c.readDocAt(docIndex);
    const type = c.refuseStrayTags(writtenType, docIndex, c.declarationEnd);
    return declare(content, 'alias', name, { typeParams, type, doc, at });
  },
  class: (c, content, docAndPlace) => {
    if (!c.isName(1) && !c.is('{', 1)) return undefined;
    c.index++;
    const hasName = c.isName() && !c.is('extends') && !c.is('implements');
    return addDeclaration(
      content,
      parseParentsAndMembers(c, 'class', hasName ? c.expectName() : 'default', docAndPlace),
    );
  },
  module: refuseAugmentation,
  enum: (c, content, docAndPlace) => parseEnum(c, content, docAndPlace, 1),
  const: (c, content, docAndPlace) =>
    c.is('enum', 1) ? parseEnum(c, content, docAndPlace, 2) : parseConstants(c, content, docAndPlace),
  let: parseConstants,
  var: parseConstants,
  function: parseFunctionDeclaration,
  async: (c, content, docAndPlace) => {
    if (!c.is('function', 1) || c.token(1).startsLine) return undefined;
    c.index++;
    return parseFunctionDeclaration(c, content, docAndPlace);
  },
} satisfies Record<string, DeclarationParser>);

/** Refuses `declare module './other.ts' { … }`. The types of a namespace are not read, so it is stepped over. */
function refuseAugmentation(c: Cursor): undefined {
  const { kind, value, at } = c.token(1);
  if (kind === Kind.string && value.startsWith('.') && c.is('{', 2))
    throw new SourceError('declarations that add to another file are not read', at);
}

/** @param wordCount number of words before the name: one for `enum`, two for `const enum` */
function parseEnum(c: Cursor, content: ModuleContent, docAndPlace: DocAndPlace, wordCount: number): string | undefined {
  if (!c.isName(wordCount) || !c.is('{', wordCount + 1)) return undefined;
  c.index += wordCount;
  const name = c.expectName();
  const end = c.closingIndex('{') + 1;
  const literalRange = [c.token().at, (c.tokens[end] as Token).at] as const;
  c.index = end;
  return declare(content, 'enum', name, { literalRange, ...docAndPlace });
}

function parseConstants(c: Cursor, content: ModuleContent, docAndPlace: DocAndPlace): Names {
  if (!c.isName(1) && !c.is('{', 1) && !c.is('[', 1)) return undefined;
  const isValueUncertain = !c.is('const');
  const names: string[] = [];
  do {
    c.index++;
    if (c.isName()) names.push(parseConstant(c, content, { isValueUncertain, ...docAndPlace }));
    else names.push(...parseDestructuring(c, content));
  } while (c.is(','));
  return names;
}

function parseConstant(c: Cursor, content: ModuleContent, fields: Fields): string {
  const name = c.expectName();
  const type = c.accept(':') ? parseType(c) : undefined;
  const hasValue = c.accept('=');
  const literalRange = hasValue ? findLiteralRange(c) : undefined;
  const value = hasValue ? parseValue(c, c.tokens.length - 1) : undefined;
  if (hasValue && value === undefined) skipValue(c, c.tokens.length - 1, ',', true);
  return declare(content, 'const', name, { type, literalRange, value, ...fields });
}

/** Declares each name in `{ a, b: [c] } = …`. The values of these names count as unknown. */
function parseDestructuring(c: Cursor, content: ModuleContent): string[] {
  const names = c.skipPattern();
  if (c.accept('=')) skipValue(c, c.tokens.length - 1, ',', true);
  return names.map(({ value, at }) => declare(content, 'const', value, { isValueUncertain: true, doc: undefined, at }));
}

/**
 * Returns the offset of the literal at the cursor, and that of the token after the literal and its `as const`. Both
 * offsets are equal for another expression, such as `'a' + b` or `'a' as T`. The cursor does not move.
 */
function findLiteralRange(c: Cursor): [number, number] {
  const { at } = c.token();
  const partner = c.partner[c.index] as number;
  const lastIndex = partner >= 0 ? partner : c.is('-') ? c.index + 1 : c.index;
  const isAsConst = c.tokens[lastIndex + 1]?.text === 'as' && c.tokens[lastIndex + 2]?.text === 'const';
  const next = c.tokens[isAsConst ? lastIndex + 3 : lastIndex + 1] ?? c.token();
  // Before `satisfies`, which can narrow the types of elements, an object or a list is accepted only with `as const`.
  const endsHere =
    next.text === 'satisfies' ? isAsConst || partner < 0 : /^[;,)}]$/.test(next.text) || next.kind === Kind.end;
  const endsWithLine =
    next.startsLine &&
    next.kind !== Kind.punctuation &&
    next.kind !== Kind.template &&
    !/^(?:in|instanceof|as)$/.test(next.text);
  return [at, endsHere || endsWithLine || next.text === '@' ? next.at : at];
}

function parseFunctionDeclaration(c: Cursor, content: ModuleContent, docAndPlace: DocAndPlace): string | undefined {
  c.index++;
  c.accept('*');
  const name = c.isName() ? c.expectName() : 'default';
  if (!c.is('(') && !c.is('<')) return undefined;
  const value = parseFunction(c);
  if (c.is('{')) c.skipGroup();
  return declare(content, 'function', name, { value, ...docAndPlace });
}

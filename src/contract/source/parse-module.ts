// The statements of a file that declare something: imports, exports, types, classes, constants, functions. They are
// known by their first words; everything else is stepped over.
import { Cursor } from './cursor.ts';
import { createDeclaration, parseBody, parseClassName } from './parse-declaration.ts';
import { parseFunction, parseTypeParams, skipDecorators, skipValue } from './parse-members.ts';
import { parseType } from './parse-types.ts';
import { parseValue } from './parse-values.ts';
import { SourceError } from './source-error.ts';
import type { Declaration, Import, Module } from './syntax.ts';
import { Kind, type Token, tokenize } from './tokens.ts';

/** @throws SourceError */
export function parseModule(source: string): Module {
  const tokens = tokenize(source);
  const c = new Cursor(tokens, { parseType, parseValue });
  const content: ModuleContent = { declarations: new Map(), imports: new Map(), exports: new Map(), starExports: [] };
  parseStatements(c, content, tokens.list.length - 1);
  return { source, docOffsets: tokens.docOffsets, ...content };
}

interface ModuleContent {
  readonly declarations: Map<string, Declaration[]>;
  readonly imports: Map<string, Import>;
  readonly exports: Map<string, string | Import>;
  readonly starExports: string[];
}

function parseStatements(c: Cursor, content: ModuleContent, end: number): void {
  while (c.i < end) {
    const before = c.i;
    const starts = c.i === 0 || c.token().startsLine || c.is(';', -1) || c.is('}', -1) || c.is('{', -1);
    if (starts) skipDecorators(c);
    if (starts && c.is('import') && c.namespace === '') parseImport(c, content);
    else if (starts && c.is('export')) parseExport(c, content);
    else if (starts && c.isName()) parseDeclaration(c, content);
    if (c.i === before) c.skip();
  }
}

// Imports and exports

function parseImport(c: Cursor, { imports }: ModuleContent): void {
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
  if (c.isName()) names.push([c.expectName(), 'default']);
  if (c.accept('=')) {
    // `import Name = Space.Name` leads nowhere, and above all to no global of that name.
    for (const [local] of names) imports.set(local, { from: 'import =', name: '*' });
    return;
  }
  c.accept(',');
  if (c.accept('*')) {
    c.expect('as');
    names.push([c.expectName(), '*']);
  } else if (c.is('{')) for (const [outer, local] of parseSpecifiers(c)) names.push([local, outer]);
  c.expect('from');
  const from = c.expectString();
  for (const [local, outer] of names) imports.set(local, { from, name: outer });
}

/** `{ a, type b as c }` → [a, a], [b, c] */
function parseSpecifiers(c: Cursor): [string, string][] {
  const names: [string, string][] = [];
  const end = c.closingIndex('{');
  c.i++;
  while (c.i < end) {
    const isRenamedType = c.is('as', 1) && c.isName(2) && (c.is(',', 3) || c.is('}', 3));
    if (c.is('type') && !c.is(',', 1) && !c.is('}', 1) && !isRenamedType) c.i++;
    const first = c.next().value;
    names.push([first, c.accept('as') ? c.next().value : first]);
    if (c.i < end) c.expect(',');
  }
  c.i = end + 1;
  return names;
}

function parseExport(c: Cursor, content: ModuleContent): void {
  const from = c.i;
  c.i++;
  if (c.is('type') && (c.is('{', 1) || c.is('*', 1))) c.i++;
  if (c.accept('*')) {
    const as = c.accept('as') ? c.next().value : undefined;
    c.expect('from');
    const from = c.expectString();
    if (as === undefined) content.starExports.push(from);
    else content.exports.set(as, { from, name: '*' });
  } else if (c.is('{')) {
    const names = parseSpecifiers(c);
    const from = c.accept('from') ? c.expectString() : undefined;
    for (const [local, outer] of names) content.exports.set(outer, from === undefined ? local : { from, name: local });
  } else if (c.is('default')) parseDefaultExport(c, content, from);
  else {
    skipDecorators(c);
    for (const name of parseDeclaration(c, content, from)) if (c.namespace === '') content.exports.set(name, name);
  }
}

function parseDefaultExport(c: Cursor, content: ModuleContent, from: number): void {
  c.i++;
  skipDecorators(c);
  if (c.is('abstract') && c.is('class', 1)) c.i++;
  if (
    c.is('class') ||
    (c.is('interface') && c.isName(1)) ||
    c.is('function') ||
    (c.is('async') && c.is('function', 1))
  ) {
    content.exports.set('default', parseDeclaration(c, content, from)[0] ?? 'default');
    return;
  }
  const { at } = c.token();
  const { doc } = c.list[from] as Token;
  const literalRange = findLiteralRange(c);
  const value = parseValue(c, c.list.length - 1);
  const isName = value?.kind === 'reference' && !value.name.includes('.');
  content.exports.set(
    'default',
    isName
      ? value.name
      : addDeclaration(content, createDeclaration(c, 'const', 'default', { literalRange, value, doc, at })),
  );
}

// Declarations

function addDeclaration(content: ModuleContent, declaration: Declaration): string {
  const key = declaration.namespace + declaration.name;
  const sameName = content.declarations.get(key);
  if (sameName === undefined) content.declarations.set(key, [declaration]);
  else sameName.push(declaration);
  return declaration.name;
}

/**
 * @param statementStart where its statement begins @returns the names that it declares; none when it is no declaration of ours
 */
function parseDeclaration(c: Cursor, content: ModuleContent, statementStart = c.i): readonly string[] {
  const docIndex = c.list[statementStart]?.doc === undefined ? c.i : statementStart;
  const doc = c.list[docIndex]?.doc;
  const from = c.i;
  while ((c.is('declare') || c.is('abstract')) && c.isName(1) && !c.token(1).startsLine) c.i++;
  const parse = DECLARATION_PARSERS[c.token().text];
  const names = c.isName() && parse !== undefined ? parse(c, content, doc, c.token().at, docIndex) : undefined;
  if (names === undefined) c.i = from;
  return typeof names === 'string' ? [names] : (names ?? []);
}

type DeclarationParser = (
  c: Cursor,
  content: ModuleContent,
  doc: string | undefined,
  at: number,
  docIndex: number,
) => string | readonly string[] | undefined;

const DECLARATION_PARSERS: { readonly [word: string]: DeclarationParser | undefined } = Object.assign(
  Object.create(null),
  {
    interface: (c, content, doc, at) => {
      if (!c.isName(1) || c.token(1).startsLine) return undefined;
      c.i++;
      return addDeclaration(content, parseBody(c, 'interface', c.expectName(), { doc, at }));
    },
    type: (c, content, _doc, at, docIndex) => {
      if (!c.isName(1) || c.token(1).startsLine || !(c.is('=', 2) || c.is('<', 2))) return undefined;
      c.i++;
      const name = c.expectName();
      const typeParams = parseTypeParams(c);
      c.expect('=');
      const type = parseType(c);
      const doc = c.readDocAt(docIndex);
      return addDeclaration(
        content,
        createDeclaration(c, 'alias', name, {
          typeParams,
          type: c.refuseStrayTags(type, docIndex, c.declarationEnd),
          doc,
          at,
        }),
      );
    },
    class: (c, content, doc, at) => {
      if (!c.isName(1) && !c.is('{', 1)) return undefined;
      c.i++;
      return addDeclaration(content, parseBody(c, 'class', parseClassName(c) ?? 'default', { doc, at }));
    },
    namespace: parseNamespace,
    module: parseNamespace,
    enum: (c, content, doc, at) => parseEnum(c, content, doc, at, 1),
    const: (c, content, doc, at) =>
      c.is('enum', 1) ? parseEnum(c, content, doc, at, 2) : parseConstants(c, content, doc, at),
    let: parseConstants,
    var: parseConstants,
    function: parseFunctionDeclaration,
    async: (c, content, doc, at) => {
      if (!c.is('function', 1) || c.token(1).startsLine) return undefined;
      c.i++;
      return parseFunctionDeclaration(c, content, doc, at);
    },
  } satisfies Record<string, DeclarationParser>,
);

function parseNamespace(c: Cursor, content: ModuleContent): string | undefined {
  const { kind, value, at } = c.token(1);
  if (kind === Kind.string && value.startsWith('.') && c.is('{', 2))
    throw new SourceError('what is added to the types of another file is not read', at);
  if (!c.isName(1) || c.token(1).startsLine) return undefined;
  c.i++;
  const name = c.parseDottedName(c.expectName());
  const outer = c.namespace;
  const end = c.closingIndex('{');
  c.namespace += `${name}.`;
  c.i++;
  parseStatements(c, content, end);
  c.namespace = outer;
  c.i = end + 1;
  return name;
}

function parseEnum(
  c: Cursor,
  content: ModuleContent,
  doc: string | undefined,
  at: number,
  words: number,
): string | undefined {
  if (!c.isName(words) || !c.is('{', words + 1)) return undefined;
  c.i += words;
  const name = c.expectName();
  const end = c.closingIndex('{') + 1;
  const literalRange = [c.token().at, (c.list[end] as { at: number }).at] as const;
  c.i = end;
  return addDeclaration(content, createDeclaration(c, 'enum', name, { literalRange, doc, at }));
}

function parseConstants(
  c: Cursor,
  content: ModuleContent,
  doc: string | undefined,
  at: number,
): readonly string[] | undefined {
  if (!c.isName(1) && !c.is('{', 1) && !c.is('[', 1)) return undefined;
  const isVariable = !c.is('const');
  const names: string[] = [];
  do {
    c.i++;
    if (c.isName()) names.push(parseConstant(c, content, { isVariable, doc, at }));
    else names.push(...parseDestructuring(c, content));
  } while (c.is(','));
  return names;
}

function parseConstant(c: Cursor, content: ModuleContent, fields: Partial<Declaration>): string {
  const name = c.expectName();
  const type = c.accept(':') ? parseType(c) : undefined;
  const hasValue = c.accept('=');
  const literalRange = hasValue ? findLiteralRange(c) : undefined;
  const value = hasValue ? parseValue(c, c.list.length - 1) : undefined;
  if (hasValue && value === undefined) skipValue(c, c.list.length - 1, ',', true);
  return addDeclaration(content, createDeclaration(c, 'const', name, { type, literalRange, value, ...fields }));
}

/** `{ a, b: [c] } = …`: every name in it is declared, and what it holds is not followed. */
function parseDestructuring(c: Cursor, content: ModuleContent): string[] {
  const end = c.partner[c.i] as number;
  const names = c.list.slice(c.i, end).filter(({ kind }) => kind === Kind.name);
  c.i = end + 1;
  if (c.accept('=')) skipValue(c, c.list.length - 1, ',', true);
  return names.map(({ value, at }) =>
    addDeclaration(content, createDeclaration(c, 'const', value, { isVariable: true, at })),
  );
}

/**
 * The place of the literal that begins here, with its `as const`; empty when it has another type, or is part of more.
 */
function findLiteralRange(c: Cursor): [number, number] {
  const { at } = c.token();
  const partner = c.partner[c.i] as number;
  const isConst = (at: number) => c.list[at]?.text === 'as' && c.list[at + 1]?.text === 'const';
  const last = partner >= 0 ? partner : c.is('-') ? c.i + 1 : c.i;
  const end = c.list[isConst(last + 1) ? last + 3 : last + 1] ?? c.token();
  // A type that it must satisfy may narrow what is in it.
  const isWhole =
    end.text === 'satisfies' ? isConst(last + 1) || partner < 0 : /^[;,)}]$/.test(end.text) || end.kind === Kind.end;
  const isNext =
    end.startsLine &&
    end.kind !== Kind.punctuation &&
    end.kind !== Kind.template &&
    !/^(?:in|instanceof|as)$/.test(end.text);
  return [at, isWhole || isNext || end.text === '@' ? end.at : at];
}

function parseFunctionDeclaration(
  c: Cursor,
  content: ModuleContent,
  doc: string | undefined,
  at: number,
): string | undefined {
  c.i++;
  c.accept('*');
  const name = c.isName() ? c.expectName() : 'default';
  if (!c.is('(') && !c.is('<')) return undefined;
  const value = parseFunction(c);
  if (c.is('{')) c.skip();
  return addDeclaration(content, createDeclaration(c, 'function', name, { value, doc, at }));
}

// Looks up the names of types and values across own files (files outside `node_modules`), and reads the literals of
// constants and enums. Types are followed through re-exports, and values are not.
import { isBuiltin } from 'node:module';
import { findUnreadConstraint } from '../source/constraint-tags.ts';
import { isJavaScript } from '../source/files.ts';
import { readKey } from '../source/parse-members.ts';
import type { Declaration, Import, Member, Module, TypeNode } from '../source/syntax.ts';
import { Kind, type Token, tokenize } from '../source/tokens.ts';
import { propsOf, recordOf, requiredProp, type Shape, unite } from './shape.ts';

/** The purpose for which an import is followed. A value (a class, an object, a function or a constant) also runs. */
export type ImportUse = 'type' | 'value';

/**
 * Finds and parses an own file. @throws Unsupported when the file of a value may be another one at run time than the
 * one that is read: for `./x.js`, when both `x.ts` and `x.js` exist
 */
export type Loader = (
  importer: string,
  specifier: string,
  use: ImportUse,
) => { path: string; module: Module } | 'package' | undefined;

/** Where names are looked up: a file, and the type parameters with their shapes. */
export interface Scope {
  readonly path: string;
  readonly module: Module;
  readonly load: Loader;
  readonly typeParams: ReadonlyMap<string, Shape>;
  /** The type of the alias that is read. */
  readonly body?: TypeNode | undefined;
  /** The parameters of the method. In its signature, `typeof user` means the parameter `user`, if there is one. */
  readonly params?: ReadonlySet<string> | undefined;
}

/** The meaning of a type's name; undefined when no own file declares or exports the name. */
export type FoundType =
  | { readonly declarations: readonly Declaration[]; readonly scope: Scope }
  | { readonly gatefoldName: string }
  | { readonly enumValue: string | number }
  | { readonly missingFile: string }
  /** A name that is imported from a package, whose types are not read. `exportedName` is its name there. */
  | { readonly packageName: string; readonly exportedName: string; readonly isInstalled: boolean }
  | undefined;

export const NO_TYPE_PARAMS: Scope['typeParams'] = new Map();
/** The exports that one look-up has visited, as path and name. None is visited twice: re-exports can be circular. */
type ExportSet = Set<string>;

/** @param name `Order`, `Enum.Member` or `imported.Order` */
export function findType(name: string, scope: Scope, seen: ExportSet = new Set()): FoundType {
  const declarations = findDeclarations(name, scope, isType);
  if (declarations.length > 0) return { declarations, scope: outerScope(scope) };
  // `export default Order`, after `interface Order`, exports the type, too.
  const named = scope.module.declarations.get(name)?.[0]?.value;
  if (name === 'default' && named?.kind === 'reference') return findType(named.name, scope, seen);
  const [head, ...keys] = name.split('.') as [string, ...string[]];
  const owners = findDeclarations(head, scope, isType);
  if (owners[0]?.kind === 'enum') {
    const value = readEnumValues(owners, scope.module)?.get(keys.join('.'));
    if (value !== undefined) return { enumValue: value };
  }
  const imported = scope.module.imports.get(head);
  return imported && findImportedType(withKeys(imported, keys), scope, seen);
}

/** Returns the scope of the file itself, in which its declarations are read. */
const outerScope = ({ path, module, load }: Scope): Scope => ({ path, module, load, typeParams: NO_TYPE_PARAMS });

export const withParam = (scope: Scope, name: string, shape: Shape): Scope => {
  return { ...scope, typeParams: new Map(scope.typeParams).set(name, shape) };
};

const findDeclarations = (name: string, { module }: Scope, isWanted: typeof isType): readonly Declaration[] =>
  (module.declarations.get(name) ?? []).filter(({ kind }) => isWanted(kind));
const isType = (kind: Declaration['kind']): boolean => kind !== 'const' && kind !== 'function';
const isValue = (kind: Declaration['kind']): boolean => kind !== 'interface' && kind !== 'alias';

/**
 * Adds the keys of a dotted name to its import. For `a.b`, the import `{ x as a }` gives the name `x.b`, and `* as a`
 * gives `b`. For `a` alone, `* as a` gives `*`, which means all exports of the file.
 */
function withKeys({ from, name }: Import, keys: readonly string[]): Import {
  return { from, name: (name === '*' ? keys : [name, ...keys]).join('.') || '*' };
}

function findImportedType({ from, name }: Import, { path, load }: Scope, seen: ExportSet): FoundType {
  if (from === 'gatefold') return { gatefoldName: name };
  const loaded = load(path, from, 'type');
  if (loaded === undefined && from.startsWith('.')) return { missingFile: from };
  return loaded === undefined || loaded === 'package'
    ? { packageName: from, exportedName: name, isInstalled: loaded !== undefined }
    : findExportedType(name, { ...loaded, load, typeParams: NO_TYPE_PARAMS }, seen);
}

function findExportedType(name: string, scope: Scope, seen: ExportSet): FoundType {
  if (!addExport(name, scope, seen)) return undefined;
  const [head, ...keys] = name.split('.') as [string, ...string[]];
  const target = scope.module.exports.get(head);
  if (typeof target === 'string') return findType([target, ...keys].join('.'), scope, seen);
  if (target !== undefined) return findImportedType(withKeys(target, keys), scope, seen);
  const types = starExportsOf(head, scope).map((from) => findImportedType({ from, name }, scope, seen));
  // Only an own file certainly exports the name. The exports of `gatefold` and of a package are not read here.
  const declared = types.find((type) => typeof type === 'object' && ('declarations' in type || 'enumValue' in type));
  return declared ?? types.find((type) => typeof type === 'object' && 'gatefoldName' in type) ?? types.find(Boolean);
}

/** Returns the specifiers of the `export * from '…'` that may export a name. These never export a `default`. */
const starExportsOf = (name: string, { module }: Scope) => (name === 'default' ? [] : module.starExports);

/** Returns false when `seen` already has the export. */
function addExport(name: string, { path }: Scope, seen: ExportSet): boolean {
  const { size } = seen;
  return seen.add(`${path} ${name}`).size > size;
}

export type FoundValue = { readonly declaration: Declaration; readonly scope: Scope } | 'package' | undefined;

/**
 * Finds a value that the file declares, or imports by name from the file that declares it; else undefined.
 *
 * @param use the type of a value is that of its declarations. Built JavaScript has lost the `as const`
 */
export function findValue(name: string, scope: Scope, use: ImportUse = 'value'): FoundValue {
  const [declaration] = findDeclarations(name, scope, isValue);
  if (declaration !== undefined) return { declaration, scope: outerScope(scope) };
  const imported = scope.module.imports.get(name);
  if (imported === undefined) return undefined;
  const running = scope.load(scope.path, imported.from, 'value');
  const isBuilt = use === 'type' && typeof running === 'object' && isJavaScript(running.path);
  const loaded = isBuilt ? scope.load(scope.path, imported.from, 'type') : running;
  if (loaded === undefined || loaded === 'package') return loaded;
  const local = loaded.module.exports.get(imported.name);
  const target: Scope = { ...loaded, load: scope.load, typeParams: NO_TYPE_PARAMS };
  const [exported] = typeof local === 'string' ? findDeclarations(local, target, isValue) : [];
  return exported && { declaration: exported, scope: target };
}

export const isMarkedHidden = ({ modifiers }: Member): boolean =>
  modifiers.some((word) => word === 'private' || word === 'protected');

/** Returns '' for a symbol and for a member without a name, and undefined for a key that code computes: `[name()]`. */
export function readMemberKey({ name, computed }: Member, scope: Scope): string | undefined {
  if (computed === undefined) return name;
  const [head] = computed.split('.') as [string];
  const target = findValue(head, scope);
  if (target === undefined || target === 'package') {
    // `Symbol.asyncDispose` and `inspect.custom` (from `node:util`) are symbols. Any other key may be a string, such as
    // the name of an operation, so it counts as computed.
    const from = scope.module.imports.get(head)?.from;
    return (from === undefined ? head === 'Symbol' : isBuiltin(from)) ? '' : undefined;
  }
  const { module } = target.scope;
  const { type, literalRange } = target.declaration;
  // The range of `Symbol('x')` is empty, because the value is no literal, but it begins at `Symbol`.
  const isSymbolValue = literalRange !== undefined && /^Symbol\b/.test(module.source.slice(literalRange[0]));
  const isSymbolType = type?.kind === 'unsupported' && type.form === 'a unique symbol';
  return (isSymbolValue || isSymbolType) && computed === head ? '' : undefined;
}

/** Returns the shape of a nested field: for the keys `a` and `b`, that of `b` in `{ a: { b: 1 } }`. */
export function shapeAt(shape: Shape | undefined, keys: readonly string[]): Shape | undefined {
  return keys.reduce((owner, key) => propsOf(owner)?.get(key)?.shape, shape);
}

export function readEnum(declarations: readonly Declaration[], module: Module): Shape | undefined {
  const values = readEnumValues(declarations, module);
  return values && unite(Array.from(values.values(), (value): Shape => ({ kind: 'const', value })));
}

function readEnumValues(enums: readonly Declaration[], { source }: Module): Map<string, string | number> | undefined {
  const values = new Map<string, string | number>();
  for (const { kind, literalRange } of enums) {
    if (kind !== 'enum' || literalRange === undefined) return undefined;
    const { tokens } = tokenize(source.slice(...literalRange));
    if (hasConstraint(tokens)) return undefined;
    let nextValue: number | undefined = 0;
    // The first token is the opening brace. The last two are the closing brace and the end of the text.
    for (let i = 1; i < tokens.length - 2; i++) {
      const key = (tokens[i] as Token).value;
      let value: string | number | undefined = nextValue;
      if (tokens[i + 1]?.text === '=') {
        const initializer = readScalar(tokens, i + 2);
        if (initializer === undefined) return undefined;
        value = initializer.value;
        i = initializer.end - 1;
      }
      if (value === undefined || !/^[,}]$/.test(tokens[++i]?.text ?? '')) return undefined;
      values.set(key, value);
      nextValue = typeof value === 'number' ? value + 1 : undefined;
    }
  }
  return values;
}

/** Reads a string, or a number with its sign. `end` is the index of the token after it. */
function readScalar(tokens: readonly Token[], start: number): { value: string | number; end: number } | undefined {
  const i = tokens[start]?.text === '-' ? start + 1 : start;
  const { kind, text, value } = tokens[i] as Token;
  if (kind === Kind.number && !text.endsWith('n')) {
    const number = Number(text.replaceAll('_', ''));
    return { value: i > start ? -number : number, end: i + 1 };
  }
  return i === start && (kind === Kind.string || text === '`') ? { value, end: i + 1 } : undefined;
}

/** Whether a comment in a value has a constraint (`@minimum`). Nothing checks such a constraint. */
const hasConstraint = (tokens: readonly Token[]): boolean =>
  tokens.some(({ doc }) => findUnreadConstraint(doc) !== undefined);

/**
 * Returns the type of a constant, or undefined when its value is not made of literals. As in TypeScript, the literal
 * `'a'` has the type `'a'` with `as const`, and in `const x = 'a'`. Elsewhere, its type is `string`. The type of an
 * enum is the record of its members.
 */
export function readConstant(declaration: Declaration, module: Module): Shape | undefined {
  if (declaration.kind === 'enum') {
    const declarations = module.declarations.get(declaration.name) ?? [];
    const values = readEnumValues(declarations, module);
    return values && recordOf(Array.from(values, ([key, value]) => [key, requiredProp({ kind: 'const', value })]));
  }
  if (declaration.literalRange === undefined) return undefined;
  // Nothing but `as const` can come after the literal: for `'a' + b`, the parser gives an empty range.
  const { tokens, partner: closingIndexes } = tokenize(module.source.slice(...declaration.literalRange));
  if (hasConstraint(tokens)) return undefined;
  const lastIndex = Math.max(closingIndexes[0] as number, 0);
  const isAsConst = tokens[lastIndex + 1]?.text === 'as' && tokens[lastIndex + 2]?.text === 'const';
  let i = 0;
  return readValue();

  /** Reads the value whose first token has the index `i`, and moves `i` to the token after the value. */
  function readValue(): Shape | undefined {
    const { text } = tokens[i] as Token;
    if (text === '[' || text === '{') return readStructure(text === '{');
    const isWholeValue = i === 0;
    const isBoolean = text === 'true' || text === 'false';
    const scalar = isBoolean ? { value: text === 'true', end: i + 1 } : readScalar(tokens, i);
    if (scalar === undefined) return undefined;
    const { value, end } = scalar;
    i = end;
    const keepsLiteral = isAsConst || (isWholeValue && declaration.isValueUncertain !== true);
    return keepsLiteral ? { kind: 'const', value } : { kind: typeof value as 'string' | 'number' | 'boolean' };
  }

  function readStructure(isObject: boolean): Shape | undefined {
    const end = closingIndexes[i] as number;
    const entries: [key: Token, shape: Shape][] = [];
    for (i++; i < end; ) {
      const keyToken = tokens[i] as Token;
      if (isObject && tokens[i + 1]?.text !== ':') return undefined;
      if (isObject) i += 2;
      const shape = readValue();
      if (shape === undefined || (i < end && tokens[i++]?.text !== ',')) return undefined;
      entries.push([keyToken, shape]);
    }
    i = end + 1;
    if (isObject)
      return recordOf(
        entries.map(([token, shape]) => [
          readKey(token),
          { ...requiredProp(shape), isNumberKey: token.kind === Kind.number },
        ]),
      );
    const items = entries.map(([, shape]) => shape);
    return isAsConst
      ? { kind: 'tuple', items: items.map((shape) => ({ shape, isOptional: false })), rest: undefined }
      : { kind: 'array', element: unite(items) };
  }
}

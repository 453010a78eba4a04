// Looks up the names of types and values across own files (files outside `node_modules`), and reads the literals of
// constants and enums. Types are followed through re-exports, and values are not.
import { isBuiltin } from 'node:module';
import { findUnreadConstraint } from '../source/constraint-tags.ts';
import type { Cursor } from '../source/cursor.ts';
import { isJavaScript } from '../source/files.ts';
import { createCursor } from '../source/parse-module.ts';
import type { Declaration, Import, Member, Module, TypeNode } from '../source/syntax.ts';
import { type Prop, propsOf, recordOf, requiredProp, type Shape, unite } from './shape.ts';

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
  | UnreadType
  | PackageType
  | undefined;

/** A name that is imported from an own file that is not read. A made type has a cure. */
export interface UnreadType {
  readonly unread: string;
  readonly cure?: string;
}

/** A name that is imported from a package, whose types are not read. `exportedName` is its name there. */
export interface PackageType {
  readonly packageName: string;
  readonly exportedName: string;
  readonly isInstalled: boolean;
}

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
  if (loaded === undefined && from.startsWith('.')) return { unread: `${from}, where no .ts or .js file is found` };
  if (loaded === undefined || loaded === 'package')
    return { packageName: from, exportedName: name, isInstalled: loaded !== undefined };
  // The place of a made type says whether the type is stale. An import does not have this place.
  if (/contracts\.gen\.ts$/.test(loaded.path) && loaded.module.source.includes('/*gatefold {'))
    return { unread: `${from}, which Gatefold alone reads`, cure: 'write the type that it was made for' };
  return findExportedType(name, { ...loaded, load, typeParams: NO_TYPE_PARAMS }, seen);
}

function findExportedType(name: string, scope: Scope, seen: ExportSet): FoundType {
  const id = `${scope.path} ${name}`;
  if (seen.has(id)) return undefined;
  seen.add(id);
  const [head, ...keys] = name.split('.') as [string, ...string[]];
  const target = scope.module.exports.get(head);
  if (typeof target === 'string') return findType([target, ...keys].join('.'), scope, seen);
  if (target !== undefined) return findImportedType(withKeys(target, keys), scope, seen);
  // `export * from '…'` never exports a `default`.
  const specifiers = head === 'default' ? [] : scope.module.starExports;
  const types = specifiers.map((from) => findImportedType({ from, name }, scope, seen));
  // Only an own file certainly exports the name. The exports of `gatefold` and of a package are not read here.
  const declared = types.find((type) => typeof type === 'object' && ('declarations' in type || 'enumValue' in type));
  return declared ?? types.find((type) => typeof type === 'object' && 'gatefoldName' in type) ?? types.find(Boolean);
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
    const c = createCursor(source.slice(...literalRange));
    if (hasConstraint(c)) return undefined;
    let nextValue: number | undefined = 0;
    for (c.index = 1; !c.is('}'); c.accept(',')) {
      const key = c.next().value;
      const value: Literal | undefined = c.accept('=') ? literalOf(parseLiteral(c)) : nextValue;
      const isComplete = c.is(',') || c.is('}');
      if (!isComplete || (typeof value !== 'string' && typeof value !== 'number')) return undefined;
      values.set(key, value);
      nextValue = typeof value === 'number' ? value + 1 : undefined;
    }
  }
  return values;
}

/** Whether a comment in a value has a constraint (`@minimum`). Nothing checks such a constraint. */
const hasConstraint = ({ tokens }: Cursor): boolean =>
  tokens.some(({ doc }) => findUnreadConstraint(doc) !== undefined);

/** Parses a literal as a type: `['a', { b: 1 }]` has the same form as its type with `as const`. */
const parseLiteral = (c: Cursor): TypeNode | undefined => c.attempt(() => c.parseType());

type Literal = string | number | boolean;

function literalOf(node: TypeNode | undefined): Literal | undefined {
  if (node?.kind === 'template' && node.types.length === 0) return node.texts[0];
  return node?.kind === 'literal' ? (node.value ?? undefined) : undefined;
}

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
  const c = createCursor(module.source.slice(...declaration.literalRange));
  const node = hasConstraint(c) ? undefined : parseLiteral(c);
  const isAsConst = c.accept('as') && c.accept('const');
  if (node === undefined || !c.isAtEnd) return undefined;
  return literalShape(node, isAsConst || (literalOf(node) !== undefined && declaration.isValueUncertain !== true));
}

/** @param keepsLiterals whether the type of `'a'` is `'a'`, and not `string` */
function literalShape(node: TypeNode, keepsLiterals: boolean): Shape | undefined {
  const value = literalOf(node);
  if (value !== undefined)
    return keepsLiterals ? { kind: 'const', value } : { kind: typeof value as 'string' | 'number' | 'boolean' };
  if (node.kind === 'tuple') {
    const items = node.items.map(({ type, isRest }) => (isRest ? undefined : literalShape(type, keepsLiterals)));
    if (!items.every((shape) => shape !== undefined)) return undefined;
    return keepsLiterals
      ? { kind: 'tuple', items: items.map((shape) => ({ shape, isOptional: false })), rest: undefined }
      : { kind: 'array', element: unite(items) };
  }
  if (node.kind !== 'object') return undefined;
  const props = new Map<string, Prop>();
  for (const { kind, name, computed, isNumberKey, type } of node.members) {
    const shape = kind === 'property' && computed === undefined && type ? literalShape(type, keepsLiterals) : undefined;
    if (shape === undefined) return undefined;
    props.set(name, { ...requiredProp(shape), isNumberKey });
  }
  return recordOf(props);
}

// Looks up names across own files (files outside `node_modules`): the names of types, and the constants in `typeof X`
// and in computed keys. A file declares a name, imports it, or re-exports it from another file.
import { findUnreadConstraint } from '../source/constraint-tags.ts';
import type { Declaration, Import, Member, Module } from '../source/syntax.ts';
import { Kind, type Token, tokenize } from '../source/tokens.ts';
import { recordOf, requiredProp, resolve, type Shape, unite } from './shape.ts';

/**
 * @returns the own file that a specifier means, `package` for a package and for a module of Node or Gatefold, undefined
 * when no source file is found
 */
export type Loader = (from: string, specifier: string) => { path: string; module: Module } | 'package' | undefined;

/** The place in which names are looked up: a file, a namespace within it, and the type parameters with their shapes. */
export interface Scope {
  readonly path: string;
  readonly module: Module;
  readonly load: Loader;
  readonly typeParams: ReadonlyMap<string, Shape>;
  /** The namespace around the place, with a dot behind it: `Shop.`. */
  readonly namespace?: string;
}

/** The meaning of a type's name; undefined when no file declares the name. */
export type FoundType =
  | { readonly declarations: readonly Declaration[]; readonly scope: Scope }
  | { readonly gatefoldName: string }
  | { readonly enumValue: string | number }
  | { readonly missingFile: string }
  | 'package'
  | undefined;

export const NO_TYPE_PARAMS: Scope['typeParams'] = new Map();
/** The exports that one look-up has visited, each as path and name. Files can re-export from each other in a circle. */
type Seen = Set<string>;

export function findType({ name, from }: { name: string; from?: string }, scope: Scope): FoundType {
  const seen: Seen = new Set();
  return from === undefined ? findLocalType(name, scope, seen) : findImportedType({ from, name }, scope, seen);
}

/** Finds a type by the name that a file uses: a declaration, an import, or a member of `import * as`. */
function findLocalType(name: string, scope: Scope, seen: Seen): FoundType {
  const declarations = findNearest(name, scope, isType);
  const [first] = declarations;
  if (first !== undefined)
    return { declarations, scope: { ...scope, typeParams: NO_TYPE_PARAMS, namespace: first.namespace } };
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const owners = findNearest(head, scope, isType);
  if (owners[0]?.kind === 'enum') {
    const value = readEnumValues(owners, scope.module)?.get(rest.join('.'));
    if (value !== undefined) return { enumValue: value };
  }
  const imported = scope.module.imports.get(head);
  return imported && findImportedType(withKeys(imported, rest), scope, seen);
}

/** Adds the keys behind an imported name: `b` in `a.b`. After `import * as a`, the imported name is the first key. */
function withKeys({ from, name }: Import, keys: readonly string[]): Import {
  return { from, name: (name === '*' ? keys : [name, ...keys]).join('.') || '*' };
}

/** Finds the declarations of a name in the scope's namespace, or else in the nearest namespace around it. */
function findNearest(
  name: string,
  { module, namespace = '' }: Pick<Scope, 'module' | 'namespace'>,
  isWanted: (kind: Declaration['kind']) => boolean,
): readonly Declaration[] {
  const declarations = module.declarations.get(namespace + name)?.filter(({ kind }) => isWanted(kind)) ?? [];
  return declarations.length > 0 || namespace === ''
    ? declarations
    : findNearest(name, { module, namespace: outerNamespace(namespace) }, isWanted);
}

const isType = (kind: Declaration['kind']): boolean => kind !== 'const' && kind !== 'function';
const isValue = (kind: Declaration['kind']): boolean => kind !== 'interface' && kind !== 'alias';
const outerNamespace = (inside: string): string => inside.slice(0, inside.lastIndexOf('.', inside.length - 2) + 1);

function findImportedType({ from, name }: Import, { path, load }: Scope, seen: Seen): FoundType {
  if (from === 'gatefold') return { gatefoldName: name };
  const loaded = load(path, from);
  if (loaded === undefined && from.startsWith('.')) return { missingFile: from };
  return loaded === undefined || loaded === 'package'
    ? 'package'
    : findExportedType(name, { ...loaded, load, typeParams: NO_TYPE_PARAMS }, seen);
}

function findExportedType(name: string, scope: Scope, seen: Seen): FoundType {
  if (!markSeen(name, scope, seen)) return undefined;
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const target = scope.module.exports.get(head);
  if (typeof target === 'string') return findLocalType([target, ...rest].join('.'), scope, seen);
  if (target !== undefined) return findImportedType(withKeys(target, rest), scope, seen);
  const starExports = scope.module.starExports.map((from) => findImportedType({ from, name }, scope, seen));
  const candidates = starExports.filter(
    (type) => type !== undefined && type !== 'package' && !('missingFile' in type),
  ) as Exclude<FoundType, string>[];
  // An own file certainly exports the name. For `export * from 'gatefold'` this is not known, so it comes last.
  return candidates.find((type) => type !== undefined && !('gatefoldName' in type)) ?? candidates[0];
}

/** Adds an export to those seen. Returns false when it is already there. */
function markSeen(name: string, { path }: Scope, seen: Seen): boolean {
  const { size } = seen;
  return seen.add(`${path} ${name}`).size > size;
}

/** A constant, an object, a class or a function, or all exports of a file (`import * as name`). */
export interface FoundValue {
  /** The declaration; undefined for all exports of a file. */
  readonly declaration: Declaration | undefined;
  readonly scope: Scope;
  /** The parts of a dotted name behind the declaration's name: `b` and `c` in `a.b.c`. */
  readonly keys: readonly string[];
}

/** Finds a value in any own file. The result is `package` when the name leads to a package. */
export function findValue(name: string, scope: Scope, seen: Seen = new Set()): FoundValue | 'package' | undefined {
  const [head, ...keys] = name.split('.') as [string, ...string[]];
  const [declaration] = findNearest(head, scope, isValue);
  if (declaration !== undefined)
    return { declaration, scope: { ...scope, typeParams: NO_TYPE_PARAMS, namespace: declaration.namespace }, keys };
  const imported = scope.module.imports.get(head);
  return imported && findImportedValue(withKeys(imported, keys), scope, seen);
}

function findImportedValue({ from, name }: Import, { path, load }: Scope, seen: Seen): ReturnType<typeof findValue> {
  const loaded = load(path, from);
  if (loaded === undefined || loaded === 'package') return loaded;
  const scope: Scope = { ...loaded, load, typeParams: NO_TYPE_PARAMS };
  return name === '*' ? { declaration: undefined, scope, keys: [] } : findExport(name, scope, seen);
}

/** Finds the value that a file exports under a name. */
export function findExport(name: string, scope: Scope, seen: Seen = new Set()): ReturnType<typeof findValue> {
  if (!markSeen(name, scope, seen)) return undefined;
  const [head, ...keys] = name.split('.') as [string, ...string[]];
  const target = scope.module.exports.get(head);
  if (typeof target === 'string') return findValue([target, ...keys].join('.'), scope, seen);
  if (target !== undefined) return findImportedValue(withKeys(target, keys), scope, seen);
  const starExports = scope.module.starExports.map((from) => findImportedValue({ from, name }, scope, seen));
  return starExports.find((value) => value !== undefined && value !== 'package') ?? starExports.find(Boolean);
}

// Values

export const isMarkedHidden = ({ modifiers }: Member): boolean =>
  modifiers.some((word) => word === 'private' || word === 'protected');

/** Returns a member's key: empty for a symbol and for a member without a name, undefined when code computes it. */
export function readMemberKey({ name, computed }: Member, scope: Scope): string | undefined {
  return computed === undefined ? name : readComputedKey(computed, scope);
}

/** Returns the text of the constant in `[KEY]` or `[KEYS.first]`, or an empty text for a symbol. */
function readComputedKey(name: string, scope: Scope): string | undefined {
  if (name === '') return undefined;
  const [head] = name.split('.') as [string];
  const isDeclared = scope.module.declarations.has(head);
  const imported = scope.module.imports.get(head);
  // A key from JavaScript or from a package is taken for a symbol: `Symbol.asyncDispose`, `inspect.custom`.
  if (!isDeclared && (imported === undefined || scope.load(scope.path, imported.from) === 'package')) return '';
  const target = findValue(name, scope);
  if (target === undefined || target === 'package' || target.declaration === undefined) return undefined;
  const { declaration, scope: ownScope, keys } = target;
  const { type, literalRange } = declaration;
  if (type?.kind === 'unsupported' && type.form === 'a unique symbol') return '';
  if (
    literalRange !== undefined &&
    /^Symbol\b/.test(ownScope.module.source.slice(literalRange[0], literalRange[0] + 7)) &&
    keys.length === 0
  )
    return '';
  const shape = pickConstant(readConstant(declaration, ownScope.module), keys);
  return shape?.kind === 'const' ? String(shape.value) : undefined;
}

/** Returns the part of a constant that the keys lead to: `['first']` leads to 'a' in `{ first: 'a' }`. */
export function pickConstant(shape: Shape | undefined, keys: readonly string[]): Shape | undefined {
  return keys.reduce<Shape | undefined>((owner, key) => {
    const record = owner === undefined ? undefined : resolve(owner);
    return record?.kind === 'record' ? record.props.get(key)?.shape : undefined;
  }, shape);
}

/** Returns the union of an enum's values, or undefined when code computes one of them. */
export function readEnum(declarations: readonly Declaration[], module: Module): Shape | undefined {
  const values = readEnumValues(declarations, module);
  return values && unite(Array.from(values.values(), (value): Shape => ({ kind: 'const', value })));
}

function readEnumValues(
  declarations: readonly Declaration[],
  { source }: Module,
): Map<string, string | number> | undefined {
  const values = new Map<string, string | number>();
  for (const { literalRange } of declarations) {
    const { tokens } = tokenize(source.slice(literalRange?.[0], literalRange?.[1]));
    if (hasConstraint(tokens)) return undefined;
    let nextValue: number | undefined = 0;
    for (let i = 1; i < tokens.length - 2; i++) {
      const key = (tokens[i] as Token).value;
      let value: string | number | undefined = nextValue;
      if (tokens[i + 1]?.text === '=') {
        const initializer = readTextOrNumber(tokens, i + 2);
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

/** Reads a string, or a number with its sign. Returns the value and the index behind it; undefined for other tokens. */
function readTextOrNumber(tokens: readonly Token[], from: number): { value: string | number; end: number } | undefined {
  const i = tokens[from]?.text === '-' ? from + 1 : from;
  const { kind, text, value } = tokens[i] as Token;
  if (kind === Kind.number && !text.endsWith('n')) {
    const number = Number(text.replaceAll('_', ''));
    return { value: i > from ? -number : number, end: i + 1 };
  }
  return i === from && (kind === Kind.string || text === '`') ? { value, end: i + 1 } : undefined;
}

/** Whether a comment among the tokens of a value has a constraint, which would have no effect. */
const hasConstraint = (tokens: readonly Token[]): boolean =>
  tokens.some(({ doc }) => findUnreadConstraint(doc) !== undefined);

/**
 * Returns the type of a constant, or undefined when its value is not made of literals. As in TypeScript, the type of
 * `'a'` is `'a'` with `as const`, and for a `const` whose whole value is `'a'`. In all other cases it is `string`.
 */
export function readConstant(declaration: Declaration, module: Module): Shape | undefined {
  if (declaration.kind === 'enum') {
    const declarations = module.declarations.get(declaration.namespace + declaration.name) ?? [];
    const values = readEnumValues(declarations, module);
    return values && recordOf(Array.from(values, ([key, value]) => [key, requiredProp({ kind: 'const', value })]));
  }
  if (declaration.literalRange === undefined) return undefined;
  const { tokens, partner } = tokenize(module.source.slice(...declaration.literalRange));
  if (hasConstraint(tokens)) return undefined;
  const closingIndex = Math.max(partner[0] as number, 0);
  const isAsConst = tokens[closingIndex + 1]?.text === 'as' && tokens[closingIndex + 2]?.text === 'const';
  let i = 0;
  return readLiteral(true);

  function readLiteral(isWholeValue: boolean): Shape | undefined {
    const { text } = tokens[i] as Token;
    if (text === '[' || text === '{') return readStructure(text === '{');
    const isBoolean = text === 'true' || text === 'false';
    const { value, end } = isBoolean
      ? { value: text === 'true', end: i + 1 }
      : (readTextOrNumber(tokens, i) ?? { end: i });
    i = end;
    if (value === undefined) return undefined;
    const keepsValue = isAsConst || (isWholeValue && closingIndex === 0 && declaration.isValueUncertain !== true);
    return keepsValue ? { kind: 'const', value } : { kind: typeof value as 'string' | 'number' | 'boolean' };
  }

  function readStructure(isObject: boolean): Shape | undefined {
    const end = partner[i] as number;
    const entries: [key: string, shape: Shape][] = [];
    for (i++; i < end; ) {
      const key = (tokens[i] as Token).value;
      if (isObject && tokens[i + 1]?.text !== ':') return undefined;
      if (isObject) i += 2;
      const shape = readLiteral(false);
      if (shape === undefined || (i < end && tokens[i++]?.text !== ',')) return undefined;
      entries.push([key, shape]);
    }
    i = end + 1;
    if (isObject) return recordOf(entries.map(([key, shape]) => [key, requiredProp(shape)]));
    const items = entries.map(([, shape]) => shape);
    return isAsConst
      ? { kind: 'tuple', items: items.map((shape) => ({ shape, isOptional: false })), rest: undefined }
      : { kind: 'array', element: unite(items) };
  }
}

// Names across files: what a file declares, imports and re-exports, and the constants whose type is asked for by
// `typeof`.
import { idleIn } from '../source/constraint-tags.ts';
import type { Declaration, Import, Member, Module } from '../source/syntax.ts';
import { Kind, type Token, tokenize } from '../source/tokens.ts';
import type { Loader } from './evaluate.ts';
import { NO_NOTES, open, type Prop, type Shape, unite } from './shape.ts';

/** Where names are looked up: a file, the namespace within it, and the type parameters in force. */
export interface Scope {
  readonly path: string;
  readonly module: Module;
  readonly params: ReadonlyMap<string, Shape>;
  /** With its dot. */
  readonly inside?: string;
}

export type FoundType =
  | { readonly declarations: readonly Declaration[]; readonly scope: Scope }
  /** A name that `gatefold` exports. */
  | { readonly own: string }
  /** A member of an enum. */
  | { readonly value: string | number }
  | { readonly missing: string }
  | 'package'
  | undefined;

const NO_PARAMS: ReadonlyMap<string, Shape> = new Map();
/** Re-exports may go in circles. */
const MOST_STEPS = 50;

export function findType({ name, from }: { name: string; from?: string }, scope: Scope, load: Loader): FoundType {
  return from === undefined ? lookUp(name, scope, load, 0) : importedFrom({ from, name }, scope, load, 0);
}

/** A name as a file sees it: declared there, imported, or exported by what was imported as a whole. */
function lookUp(name: string, scope: Scope, load: Loader, steps: number): FoundType {
  const declarations = nearest(name, scope, isType);
  const [first] = declarations;
  if (first !== undefined) return { declarations, scope: { ...scope, params: NO_PARAMS, inside: first.inside } };
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const here = nearest(head, scope, isType);
  if (here[0]?.kind === 'enum') {
    const value = enumValues(here, scope.module)?.get(rest.join('.'));
    if (value !== undefined) return { value };
  }
  const from = scope.module.imports.get(head);
  if (from === undefined) return undefined;
  return importedFrom(
    { ...from, name: (from.name === '*' ? rest : [from.name, ...rest]).join('.') || '*' },
    scope,
    load,
    steps + 1,
  );
}

/**
 * What is declared under a name in the namespace there, or in the nearest one around it that has such a declaration.
 */
function nearest(
  name: string,
  { module, inside = '' }: Scope,
  isWanted: (kind: Declaration['kind']) => boolean,
): readonly Declaration[] {
  const wanted = module.declarations.get(inside + name)?.filter(({ kind }) => isWanted(kind)) ?? [];
  return wanted.length > 0 || inside === ''
    ? wanted
    : nearest(name, { module, inside: outerOf(inside) } as Scope, isWanted);
}

const isType = (kind: Declaration['kind']): boolean => kind !== 'const' && kind !== 'function';
const isValue = (kind: Declaration['kind']): boolean => kind !== 'interface' && kind !== 'alias';
const outerOf = (inside: string): string => inside.slice(0, inside.lastIndexOf('.', inside.length - 2) + 1);

function importedFrom({ from, name }: Import, scope: Scope, load: Loader, steps: number): FoundType {
  if (from === 'gatefold') return { own: name };
  const loaded = steps > MOST_STEPS ? undefined : load(scope.path, from);
  if (loaded === undefined && from.startsWith('.')) return { missing: from };
  return loaded === undefined || loaded === 'package'
    ? 'package'
    : exported(name, { ...loaded, params: NO_PARAMS }, load, steps + 1);
}

function exported(name: string, scope: Scope, load: Loader, steps: number): FoundType {
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const found = scope.module.exports.get(head);
  if (typeof found === 'string') return lookUp([found, ...rest].join('.'), scope, load, steps);
  if (found !== undefined) {
    const behind = found.name === '*' ? rest : [found.name, ...rest];
    return importedFrom({ from: found.from, name: behind.join('.') }, scope, load, steps);
  }
  const behindStars = scope.module.stars.map((star) => importedFrom({ from: star, name }, scope, load, steps));
  const known = behindStars.filter((one) => one !== undefined && one !== 'package' && !('missing' in one)) as Exclude<
    FoundType,
    string
  >[];
  // `gatefold` may export the name; an own file does.
  return known.find((one) => one !== undefined && !('own' in one)) ?? known[0];
}

export interface FoundValue {
  readonly declaration: Declaration;
  readonly scope: Scope;
  /** What of a dotted name is left. */
  readonly rest: readonly string[];
}

/** A constant, an object, a class or a function by its name, in whatever file it stands. */
export function findValue(name: string, scope: Scope, load: Loader, steps = 0): FoundValue | undefined {
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const [declaration] = nearest(head, scope, isValue);
  if (declaration !== undefined)
    return { declaration, scope: { ...scope, params: NO_PARAMS, inside: declaration.inside }, rest };
  const from = scope.module.imports.get(head);
  if (from === undefined || steps > MOST_STEPS) return undefined;
  if (from.name !== '*') return findExported({ ...from, name: [from.name, ...rest].join('.') }, scope, load, steps + 1);
  return rest.length === 0 ? undefined : findExported({ ...from, name: rest.join('.') }, scope, load, steps + 1);
}

export function findExported({ from, name }: Import, scope: Scope, load: Loader, steps = 0): FoundValue | undefined {
  const loaded = steps > MOST_STEPS ? undefined : load(scope.path, from);
  return loaded === undefined || loaded === 'package'
    ? undefined
    : findExport(name, { ...loaded, params: NO_PARAMS }, load, steps + 1);
}

/** What a file exports under a name. */
export function findExport(name: string, scope: Scope, load: Loader, steps = 0): FoundValue | undefined {
  const [head, ...rest] = name.split('.') as [string, ...string[]];
  const found = scope.module.exports.get(head);
  if (typeof found === 'string') return findValue([found, ...rest].join('.'), scope, load, steps);
  if (found !== undefined)
    return findExported({ from: found.from, name: [found.name, ...rest].join('.') }, scope, load, steps + 1);
  for (const star of scope.module.stars) {
    const behind = findExported({ from: star, name }, scope, load, steps + 1);
    if (behind !== undefined) return behind;
  }
  return undefined;
}

// Values

/** The name of a member; empty: a symbol, or none. Undefined: computed by code that is not read. */
export function keyOf({ name, computed }: Member, scope: Scope, load: Loader): string | undefined {
  return computed === undefined ? name : keyOfComputed(computed, scope, load);
}

/** `[KEY]`, `[KEYS.first]`: the text of that constant. */
function keyOfComputed(name: string, scope: Scope, load: Loader): string | undefined {
  if (name === '') return undefined;
  const [head] = name.split('.') as [string];
  const isDeclared = scope.module.declarations.has(head);
  const from = scope.module.imports.get(head);
  // The keys of JavaScript and of packages are symbols: `Symbol.asyncDispose`, `inspect.custom`.
  if (!isDeclared && (from === undefined || load(scope.path, from.from) === 'package')) return '';
  const found = findValue(name, scope, load);
  if (found === undefined) return undefined;
  const { declaration, scope: home, rest } = found;
  const { type, literal } = declaration;
  if (type?.kind === 'other' && type.what === 'a unique symbol') return '';
  if (
    literal !== undefined &&
    /^Symbol\b/.test(home.module.source.slice(literal[0], literal[0] + 7)) &&
    rest.length === 0
  )
    return '';
  const shape = constantAt(readConstant(declaration, home.module), rest);
  return shape?.kind === 'const' ? String(shape.value) : undefined;
}

/** A part of a constant: `['first']` of `{ first: 'a' }`. */
export function constantAt(shape: Shape | undefined, keys: readonly string[]): Shape | undefined {
  return keys.reduce<Shape | undefined>((owner, key) => {
    const record = owner === undefined ? undefined : open(owner);
    return record?.kind === 'record' ? record.props.get(key)?.of : undefined;
  }, shape);
}

/** Undefined when a member is worked out by code. */
export function enumShape(declarations: readonly Declaration[], module: Module): Shape | undefined {
  const values = enumValues(declarations, module);
  return values === undefined
    ? undefined
    : unite([...values.values()].map((value): Shape => ({ kind: 'const', value })));
}

function enumValues(
  declarations: readonly Declaration[],
  { source }: Module,
): Map<string, string | number> | undefined {
  const values = new Map<string, string | number>();
  for (const { literal } of declarations) {
    const { list } = tokenize(source.slice(literal?.[0], literal?.[1]));
    if (isConstrained(list)) return undefined;
    let next: number | undefined = 0;
    for (let i = 1; i < list.length - 2; i++) {
      const key = (list[i] as Token).value;
      let of: string | number | undefined = next;
      if (list[i + 1]?.text === '=') {
        const given = textOrNumberAt(list, i + 2);
        if (given === undefined) return undefined;
        of = given.value;
        i = given.end - 1;
      }
      if (of === undefined || !/^[,}]$/.test(list[++i]?.text ?? '')) return undefined;
      values.set(key, of);
      next = typeof of === 'number' ? of + 1 : undefined;
    }
  }
  return values;
}

/** A text, or a number with its sign, and the index behind it; undefined for any other token. */
function textOrNumberAt(list: readonly Token[], from: number): { value: string | number; end: number } | undefined {
  const i = list[from]?.text === '-' ? from + 1 : from;
  const { kind, text, value } = list[i] as Token;
  if (kind === Kind.number && !text.endsWith('n')) {
    const number = Number(text.replaceAll('_', ''));
    return { value: i > from ? -number : number, end: i + 1 };
  }
  return i === from && (kind === Kind.string || text === '`') ? { value, end: i + 1 } : undefined;
}

/** Nothing reads a constraint within a value. */
const isConstrained = (list: readonly Token[]): boolean => list.some(({ doc }) => idleIn(doc) !== undefined);

/** The type of a literal: exact under `as const`, widened otherwise; undefined when it is more than literals. */
export function readConstant(declaration: Declaration, module: Module): Shape | undefined {
  if (declaration.kind === 'enum') {
    const all = module.declarations.get(declaration.inside + declaration.name) ?? [];
    const values = enumValues(all, module);
    const props = Array.from(values ?? [], ([key, value]) => [key, prop({ kind: 'const', value })] as const);
    return values === undefined ? undefined : { kind: 'record', props: new Map(props), index: undefined };
  }
  if (declaration.literal === undefined) return undefined;
  const { list, partner } = tokenize(module.source.slice(...declaration.literal));
  if (isConstrained(list)) return undefined;
  const closing = Math.max(partner[0] as number, 0);
  const exact = list[closing + 1]?.text === 'as' && list[closing + 2]?.text === 'const';
  let i = 0;
  return literal(true);

  function literal(isWhole: boolean): Shape | undefined {
    const { text } = list[i] as Token;
    if (text === '[' || text === '{') return structure(text === '{');
    const isTruth = text === 'true' || text === 'false';
    const { value, end } = isTruth ? { value: text === 'true', end: i + 1 } : (textOrNumberAt(list, i) ?? { end: i });
    i = end;
    if (value === undefined) return undefined;
    const keep = exact || (isWhole && closing === 0 && declaration.isVariable !== true);
    return keep ? { kind: 'const', value } : { kind: typeof value as 'string' | 'number' | 'boolean' };
  }

  function structure(isObject: boolean): Shape | undefined {
    const end = partner[i] as number;
    const entries: [key: string, of: Shape][] = [];
    for (i++; i < end; ) {
      const key = (list[i] as Token).value;
      if (isObject && list[i + 1]?.text !== ':') return undefined;
      if (isObject) i += 2;
      const of = literal(false);
      if (of === undefined || (i < end && list[i++]?.text !== ',')) return undefined;
      entries.push([key, of]);
    }
    i = end + 1;
    if (isObject)
      return { kind: 'record', props: new Map(entries.map(([key, of]) => [key, prop(of)])), index: undefined };
    const items = entries.map(([, of]) => of);
    return exact
      ? { kind: 'tuple', items: items.map((of) => ({ of, optional: false })), rest: undefined }
      : { kind: 'array', of: unite(items) };
  }
}

const prop = (of: Shape): Prop => ({ of, optional: false, notes: NO_NOTES });

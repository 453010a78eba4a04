// From a name or an expression to the class, object or function that it leads to, across the own files of a service.
// What has no source of its own ends at `package`; what is made by code is undefined, and its reader refuses the file.

import type { Declaration, FunctionNode, Import, Member, TypeNode, ValueNode } from '../source/syntax.ts';
import type { Loader } from './evaluate.ts';
import { keyOf, type Scope } from './look-up.ts';

export type FollowedValue =
  | { readonly kind: 'class'; readonly declaration: Declaration; readonly scope: Scope; readonly made?: Made }
  | {
      readonly kind: 'object';
      readonly members: readonly Member[];
      readonly scope: Scope;
      readonly doc: string | undefined;
    }
  /** All that a file exports: `import * as name`. */
  | { readonly kind: 'module'; readonly scope: Scope }
  | FollowedFunction;

/** `new X<Args>(…)`: the type arguments, and where they are looked up. */
export interface Made {
  readonly args: readonly TypeNode[];
  readonly scope: Scope;
}

export interface FollowedFunction {
  readonly kind: 'function';
  readonly node: Pick<FunctionNode, 'params' | 'result' | 'typeParams'>;
  readonly scope: Scope;
  readonly doc: string | undefined;
  readonly at: number;
  /** The function has several signatures, and types in one of them. */
  readonly isOverloaded: boolean;
}

/** `package`: out of a package, or of JavaScript itself. Undefined: made by code that is not followed. */
export type Followed = FollowedValue | 'package' | undefined;

export interface Follower {
  /** What the file of the scope exports under that name. */
  exported(name: string, scope: Scope): Followed;
  /** A name as the file of the scope sees it; it may be dotted. */
  named(name: string, scope: Scope): Followed;
  /** The function that an object or a module has under that name. */
  functionOf(owner: FollowedValue, name: string): FollowedFunction | undefined;
}

/** Names may lead to one another in circles. */
const MOST_STEPS = 100;

export function createFollower(load: Loader): Follower {
  let steps = 0;

  /** A fresh count for each question. */
  const counted =
    <Args extends unknown[], Result>(work: (...args: Args) => Result) =>
    (...args: Args): Result => {
      steps = 0;
      return work(...args);
    };

  function exported(name: string, scope: Scope): Followed {
    if (++steps > MOST_STEPS) return undefined;
    const found = scope.module.exports.get(name);
    if (typeof found === 'string') return named(found, scope);
    if (found !== undefined) return imported(found, scope);
    const behindStars = scope.module.stars.map((from) => imported({ from, name }, scope));
    return (
      behindStars.find((one) => one !== undefined && one !== 'package') ?? behindStars.find((one) => one === 'package')
    );
  }

  function imported({ from, name }: Import, scope: Scope): Followed {
    const loaded = load(scope.path, from);
    if (loaded === undefined || loaded === 'package') return loaded;
    const home: Scope = { ...loaded, params: new Map() };
    return name === '*' ? { kind: 'module', scope: home } : exported(name, home);
  }

  function named(name: string, scope: Scope): Followed {
    if (++steps > MOST_STEPS) return undefined;
    const [head, ...keys] = name.split('.') as [string, ...string[]];
    const declaration = scope.module.declarations
      .get(head)
      ?.find(({ kind }) => kind !== 'interface' && kind !== 'alias');
    const from = scope.module.imports.get(head);
    const first =
      declaration !== undefined
        ? declared(declaration, scope)
        : from !== undefined
          ? imported(from, scope)
          : globalOf(head);
    return keys.reduce<Followed>(
      (owner, key) => (owner === undefined || owner === 'package' ? owner : memberOf(owner, key)),
      first,
    );
  }

  function declared(declaration: Declaration, scope: Scope): Followed {
    const { kind, value, isVariable, name, doc, at } = declaration;
    const home: Scope = { ...scope, params: new Map(), inside: declaration.inside };
    if (kind === 'class') return { kind, declaration, scope: home };
    if (value === undefined || isVariable === true) return undefined;
    if (kind !== 'function') return followValue(value, home, { name, doc, at });
    const all = scope.module.declarations.get(declaration.inside + name) ?? [];
    const signatures = all.flatMap((one) => (one.value?.kind === 'function' ? [one.value] : []));
    const isOverloaded = signatures.length > 1 && signatures.some(isAnnotated);
    return { kind, node: value as FunctionNode, scope: home, doc, at, isOverloaded };
  }

  function followValue(
    node: ValueNode,
    scope: Scope,
    { name, doc, at }: Pick<Declaration, 'name' | 'doc' | 'at'>,
  ): Followed {
    if (++steps > MOST_STEPS) return undefined;
    switch (node.kind) {
      case 'function':
        return { kind: 'function', node, scope, doc: joined(doc, node.doc), at, isOverloaded: false };
      case 'object':
        return { kind: 'object', members: node.members, scope, doc };
      case 'class': {
        // JavaScript names a class without a name by the constant that it is given to.
        const className = node.declaration.className || name;
        return {
          kind: 'class',
          declaration: { ...node.declaration, className, doc: node.declaration.doc ?? doc },
          scope,
        };
      }
      case 'reference':
        return named(node.name, scope);
      case 'new': {
        const maker = followValue(node.maker, scope, { name: '', doc, at });
        if (maker === 'package' || maker?.kind !== 'class') return maker === 'package' ? maker : undefined;
        return { ...maker, made: { args: node.args, scope } };
      }
    }
  }

  function memberOf(owner: FollowedValue, name: string): Followed {
    if (owner.kind === 'module') return exported(name, owner.scope);
    if (owner.kind !== 'object') return undefined;
    const member = membersByName(owner.members, owner.scope, load).get(name)?.at(-1);
    if (member?.kind === 'property') {
      const { value, doc, at } = member;
      const led = value && followValue(value, owner.scope, { name: '', doc, at });
      const isNamed = value?.kind === 'reference' && led !== undefined && led !== 'package' && led.kind === 'function';
      return isNamed ? { ...led, doc: joined(led.doc, doc) } : led;
    }
    return member === undefined ? undefined : methodOf([member], owner.scope);
  }

  function functionOf(owner: FollowedValue, name: string): FollowedFunction | undefined {
    const member = memberOf(owner, name);
    return member !== undefined && member !== 'package' && member.kind === 'function' ? member : undefined;
  }

  return { exported: counted(exported), named: counted(named), functionOf: counted(functionOf) };
}

/** `extends Map` */
const globalOf = (name: string): Followed => (Object.hasOwn(globalThis, name) ? 'package' : undefined);

/** Both comments count, that of the name and that of its value. */
function joined(doc: string | undefined, inner: string | undefined): string | undefined {
  return doc === undefined || inner === undefined || doc === inner ? (doc ?? inner) : doc + inner;
}

/** The signatures of one method; undefined where the member is none. */
export function methodOf(signatures: readonly Member[], scope: Scope): FollowedFunction | undefined {
  const [first] = signatures;
  if (first === undefined || signatures.some(({ kind }) => kind !== 'method')) return undefined;
  const { params, type: result, typeParams = [], at } = first;
  const doc = signatures.find((one) => one.doc !== undefined)?.doc;
  const isOverloaded = signatures.length > 1 && signatures.some(isAnnotated);
  return { kind: 'function', node: { params, result, typeParams }, scope, doc, at, isOverloaded };
}

const isAnnotated = ({ params }: Pick<FunctionNode, 'params'>): boolean =>
  params.some(({ type }) => type !== undefined);

const indexes = new WeakMap<readonly Member[], ReadonlyMap<string, readonly Member[]>>();

/**
 * Members by name, in their order; statics and fields that are only declared are left out. A spread, or a name computed
 * by code, may replace what stands before it, so nothing before it counts.
 */
export function membersByName(
  members: readonly Member[],
  scope: Scope,
  load: Loader,
): ReadonlyMap<string, readonly Member[]> {
  const known = indexes.get(members);
  if (known !== undefined) return known;
  const byName = new Map<string, Member[]>();
  for (const member of members) {
    if (member.modifiers.includes('static') || member.modifiers.includes('declare')) continue;
    const key = member.kind === 'spread' ? undefined : keyOf(member, scope, load);
    if (key === undefined) byName.clear();
    else byName.set(key, [...(byName.get(key) ?? []), member]);
  }
  indexes.set(members, byName);
  return byName;
}

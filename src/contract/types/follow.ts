// Follows a name or an expression to the class, object or function that it means, across the own files of a service
// (files outside `node_modules`).
import { joinDocs } from '../source/doc-comment.ts';
import type { Declaration, FunctionNode, Member, TypeNode, ValueNode } from '../source/syntax.ts';
import { type FoundValue, findExportedValue, findValue, readMemberKey, type Scope } from './look-up.ts';

export type FollowedValue =
  | {
      readonly kind: 'class';
      readonly declaration: Declaration;
      readonly scope: Scope;
      readonly instantiation?: Instantiation;
    }
  | {
      readonly kind: 'object';
      readonly members: readonly Member[];
      readonly scope: Scope;
      readonly doc: string | undefined;
      readonly hasOuterType: boolean;
    }
  /** All exports of a file: `import * as name`. */
  | { readonly kind: 'module'; readonly scope: Scope }
  | FollowedFunction;

/** The type arguments of `new X<Args>(…)`, or of `extends X<Args>`, and the scope in which they are evaluated. */
export interface Instantiation {
  readonly args: readonly TypeNode[];
  readonly scope: Scope;
}

export interface FollowedFunction {
  readonly kind: 'function';
  readonly node: Pick<FunctionNode, 'params' | 'result' | 'typeParams'>;
  readonly scope: Scope;
  readonly doc: string | undefined;
  readonly at: number;
  /** Whether TypeScript infers the types of parameters from a type outside of the function: `… satisfies T`. */
  readonly hasOuterType: boolean;
  /** Whether the function has several signatures, and at least one of them has a type for a parameter. */
  readonly isOverloaded: boolean;
}

/** `package` for a value from a package or from JavaScript itself; undefined for a value that code computes. */
export type Followed = FollowedValue | 'package' | undefined;

export function followExport(name: string, scope: Scope): Followed {
  return followTarget(findExportedValue(name, scope));
}

/** @param name a name in the scope's file, with dots or without */
export function followName(name: string, scope: Scope): Followed {
  const [head] = name.split('.') as [string];
  // A global name, such as the `Map` of `extends Map`, comes from JavaScript itself and has no source.
  const isGlobal = !scope.module.imports.has(head) && Object.hasOwn(globalThis, head);
  return followTarget(findValue(name, scope) ?? (isGlobal ? 'package' : undefined));
}

function followTarget(target: FoundValue): Followed {
  if (target === undefined || target === 'package') return target;
  const { declaration, scope, keys } = target;
  return keys.reduce<Followed>(
    (owner, key) => (owner === undefined || owner === 'package' ? owner : followMember(owner, key)),
    declaration === undefined ? { kind: 'module', scope } : followDeclaration(declaration, scope),
  );
}

function followDeclaration(declaration: Declaration, scope: Scope): Followed {
  const { kind, value, isValueUncertain, name, doc, at } = declaration;
  if (kind === 'class') return { kind, declaration, scope };
  if (value === undefined || isValueUncertain === true) return undefined;
  if (kind !== 'function') return followValue(value, scope, declaration, canInferParams(declaration.type));
  const overloads = scope.module.declarations.get(declaration.namespace + name) ?? [];
  const signatures = overloads.flatMap((declaration) =>
    declaration.value?.kind === 'function' ? [declaration.value] : [],
  );
  const isOverloaded = areOverloads(signatures);
  return { kind, node: value as FunctionNode, scope, doc, at, hasOuterType: false, isOverloaded };
}

/** Whether a type can give types to the parameters of the functions in a value. Plain words such as `any` do not. */
const canInferParams = (type: TypeNode | undefined): boolean => type !== undefined && type.kind !== 'word';

function followValue(
  node: ValueNode,
  scope: Scope,
  { name, doc, at }: Pick<Declaration, 'name' | 'doc' | 'at'>,
  isInTypedValue: boolean,
): Followed {
  const hasOuterType = isInTypedValue || ('hasOuterType' in node && node.hasOuterType === true);
  switch (node.kind) {
    case 'function':
      return { kind: 'function', node, scope, doc: joinDocs(doc, node.doc), at, hasOuterType, isOverloaded: false };
    case 'object':
      return { kind: 'object', members: node.members, scope, doc, hasOuterType };
    case 'class': {
      // JavaScript gives an anonymous class the name of its constant.
      const className = node.declaration.className || name;
      const declaration = { ...node.declaration, className, doc: node.declaration.doc ?? doc };
      return { kind: 'class', declaration, scope };
    }
    case 'reference':
      return followName(node.name, scope);
    case 'new': {
      const callee = followValue(node.callee, scope, { name: '', doc, at }, false);
      if (callee === 'package') return callee;
      return callee?.kind === 'class' ? { ...callee, instantiation: { args: node.typeArgs, scope } } : undefined;
    }
  }
}

function followMember(owner: FollowedValue, name: string): Followed {
  if (owner.kind === 'module') return followExport(name, owner.scope);
  if (owner.kind !== 'object') return undefined;
  const member = indexMembers(owner.members, owner.scope).get(name)?.at(-1);
  if (member?.kind === 'property') {
    const { value, doc, at } = member;
    const followed = value && followValue(value, owner.scope, { name: '', doc, at }, owner.hasOuterType);
    // In `{ created: createUser }`, both the property and the function can have a comment. The tags of both are read.
    const isFunction = typeof followed === 'object' && followed.kind === 'function';
    return value?.kind === 'reference' && isFunction ? { ...followed, doc: joinDocs(followed.doc, doc) } : followed;
  }
  return member === undefined ? undefined : readMethod([member], owner.scope, owner.hasOuterType);
}

/** Returns undefined when the object or the file has another value under the name. */
export function followFunction(owner: FollowedValue, name: string): FollowedFunction | undefined {
  const member = followMember(owner, name);
  return typeof member === 'object' && member.kind === 'function' ? member : undefined;
}

/** @param signatures the members of one name: several for an overloaded method. @returns undefined for a field */
export function readMethod(
  signatures: readonly Member[],
  scope: Scope,
  hasOuterType = false,
): FollowedFunction | undefined {
  const [first] = signatures;
  if (first === undefined || signatures.some(({ kind }) => kind !== 'method')) return undefined;
  const { params, type: result, typeParams = [], at } = first;
  const doc = signatures.find((signature) => signature.doc !== undefined)?.doc;
  const node = { params, result, typeParams };
  return { kind: 'function', node, scope, doc, at, hasOuterType, isOverloaded: areOverloads(signatures) };
}

const areOverloads = (signatures: readonly Pick<FunctionNode, 'params'>[]): boolean =>
  signatures.length > 1 && signatures.some(({ params }) => params.some(({ type }) => type !== undefined));

/**
 * The results of `indexMembers`. The scope is no part of the key, because a list of members has always one scope. The
 * contract of 1,000 operations is read in 80 ms. Without these results, the read takes 230 ms.
 */
const indexes = new WeakMap<readonly Member[], ReadonlyMap<string, readonly Member[]>>();

/**
 * Lists the members by name, in source order, without static members and `declare` fields. A spread (`...others`) or a
 * computed name can replace any member before it, so the members before it are left out.
 */
export function indexMembers(members: readonly Member[], scope: Scope): ReadonlyMap<string, readonly Member[]> {
  const cached = indexes.get(members);
  if (cached !== undefined) return cached;
  const byName = new Map<string, Member[]>();
  for (const member of members) {
    if (member.modifiers.includes('static') || member.modifiers.includes('declare')) continue;
    const key = member.kind === 'spread' ? undefined : readMemberKey(member, scope);
    if (key === undefined) byName.clear();
    else byName.set(key, [...(byName.get(key) ?? []), member]);
  }
  indexes.set(members, byName);
  return byName;
}

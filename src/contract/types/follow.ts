// Follows a name to the class, object or function that it means: one that the file declares, or imports by name from
// the own file (a file outside `node_modules`) that declares it.
import { joinDocs } from '../source/doc-comment.ts';
import type { DocAndPlace } from '../source/parse-declaration.ts';
import type { Declaration, FunctionNode, Member, TypeNode, ValueNode } from '../source/syntax.ts';
import type { Level } from './class-levels.ts';
import { findValue, isMarkedHidden, readMemberKey, type Scope } from './look-up.ts';

export type Followed =
  | { readonly kind: 'class'; readonly declaration: Declaration; readonly scope: Scope }
  | ({ readonly kind: 'object' } & Omit<Level, 'className'>)
  | FollowedFunction
  /** A value from a package or from JavaScript itself. */
  | 'package'
  /** A value that code computes, or another form that is not read. */
  | undefined;

export interface FollowedFunction {
  readonly kind: 'function';
  readonly node: Pick<FunctionNode, 'params' | 'result' | 'typeParams'>;
  readonly scope: Scope;
  readonly doc: string | undefined;
  readonly at: number;
  /** Whether parameters without an annotation have their types from outside of the function (`Level`). */
  readonly hasOuterType: boolean;
  /** Whether the function has several signatures, and at least one of them has a type for a parameter. */
  readonly isOverloaded: boolean;
}

export function followName(name: string, scope: Scope): Followed {
  const [head] = name.split('.') as [string];
  // A global name, such as the `Map` of `extends Map`, comes from JavaScript itself and has no source.
  const isGlobal = !scope.module.imports.has(head) && Object.hasOwn(globalThis, head);
  const target = findValue(head, scope) ?? (isGlobal ? 'package' : undefined);
  if (target === undefined || target === 'package') return target;
  return head === name ? followDeclaration(target.declaration, target.scope) : undefined;
}

function followDeclaration(declaration: Declaration, scope: Scope): Followed {
  const { kind, value, isValueUncertain, name, doc, at } = declaration;
  if (kind === 'class') return { kind, declaration, scope };
  if (value === undefined || isValueUncertain === true) return undefined;
  if (kind !== 'function') return followValue(value, scope, declaration, canInferParams(declaration.type));
  const overloads = scope.module.declarations.get(name) ?? [];
  const signatures = overloads.flatMap(({ value }) => (value?.kind === 'function' ? [value] : []));
  const isOverloaded = areOverloads(signatures);
  return { kind, node: value as FunctionNode, scope, doc, at, hasOuterType: false, isOverloaded };
}

/** Whether a type can give types to the parameters of the functions in a value. Plain words such as `any` do not. */
const canInferParams = (type: TypeNode | undefined): boolean => type !== undefined && type.kind !== 'word';

function followValue(node: ValueNode, scope: Scope, { doc, at }: DocAndPlace, isInTypedValue: boolean): Followed {
  if (node.kind === 'reference') return followName(node.name, scope);
  const hasOuterType = isInTypedValue || node.hasOuterType === true;
  return node.kind === 'object'
    ? { kind: 'object', members: node.members, scope, doc, hasOuterType }
    : { kind: 'function', node, scope, doc: joinDocs(doc, node.doc), at, hasOuterType, isOverloaded: false };
}

/**
 * @returns whether the source marks the member `private` or `protected`, and the function of the member; no `method`
 *   when the member is no function, or when code computes the function; undefined when the source has no member of this
 *   name, or when the name is not read
 */
export function findMember({ className, members, scope, hasOuterType }: Level, name: string) {
  const sameName = indexMembers(members, scope).get(name);
  const last = sameName?.at(-1);
  if (sameName === undefined || last === undefined) return undefined;
  // Several members of one name overload a method of a class. In an object, the last one counts.
  const signatures = className === undefined ? [last] : sameName;
  const method = last.value ? followProperty(last, scope, hasOuterType) : readMethod(signatures, scope, hasOuterType);
  return { isHidden: sameName.some(isMarkedHidden), method };
}

/** @returns undefined when the property has another value than a function */
function followProperty(property: Member, scope: Scope, hasOuterType: boolean): FollowedFunction | undefined {
  const { value, doc } = property;
  const followed = value && followValue(value, scope, property, hasOuterType);
  if (typeof followed !== 'object' || followed.kind !== 'function') return undefined;
  // In `{ created: createUser }`, both the property and the function can have a comment. The tags of both are read.
  return value?.kind === 'reference' ? { ...followed, doc: joinDocs(followed.doc, doc) } : followed;
}

/** @param signatures the members of one name: several for an overloaded method. @returns undefined for a field */
function readMethod(signatures: readonly Member[], scope: Scope, hasOuterType: boolean): FollowedFunction | undefined {
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

/** Lists the members by name. Members before a spread or a computed name, which can replace them, are left out. */
function indexMembers(members: readonly Member[], scope: Scope): ReadonlyMap<string, readonly Member[]> {
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

// Finds the class or object that a controller file exports, and its ancestors, in all own files (files outside
// `node_modules`). Each of these classes and objects is a level: level 0 is the exported one, level 1 its parent.

import { Unsupported } from '../source/source-error.ts';
import type { Declaration, Member, TypeNode } from '../source/syntax.ts';
import type { Evaluator } from './evaluate.ts';
import {
  type Followed,
  type FollowedFunction,
  type FollowedValue,
  followExport,
  followFunction,
  followName,
  type Instantiation,
  indexMembers,
  readMethod,
} from './follow.ts';
import { readMemberKey, type Scope } from './look-up.ts';
import { failingShape, type Shape } from './shape.ts';

export interface Level {
  /** The `constructor.name` at run time. The field is undefined for an object. */
  readonly className: string | undefined;
  readonly members: readonly Member[];
  /** The scope of the level's types, in which its type parameters have their shapes. */
  readonly scope: Scope;
  readonly doc: string | undefined;
  /** The class, object or module itself. */
  readonly value: FollowedValue;
}

export interface Levels {
  /** The levels, from level 0 on. The list is empty when code computes the export. */
  readonly levels: readonly Level[];
  /** Whether the ancestor after the last level comes from a package, whose source is not read. */
  readonly hasPackageAncestor: boolean;
}

/** @param exportName `default`, or the name of the controller's class */
export function findLevels(exportName: string, scope: Scope, evaluator: Evaluator): Levels {
  const levels: Level[] = [];
  const seen = new Set<Declaration>();
  let value: Followed = followExport(exportName, scope);
  let args: readonly (() => Shape)[] = [];
  while (value !== undefined && value !== 'package' && value.kind === 'class' && !seen.has(value.declaration)) {
    const { declaration, instantiation } = value;
    seen.add(declaration);
    if (instantiation !== undefined) args = readTypeArgs(declaration, instantiation, evaluator);
    const levelScope: Scope = {
      ...value.scope,
      namespace: declaration.namespace,
      typeParams: bindTypeArgs(evaluator, declaration, value.scope, args),
    };
    levels.push({
      className: declaration.className,
      members: declaration.members,
      scope: levelScope,
      doc: declaration.doc,
      value,
    });
    const [parent] = declaration.parents as [TypeNode?];
    if (parent === undefined) return { levels, hasPackageAncestor: false };
    args = parent.kind === 'name' ? parent.args.map((arg) => () => evaluator.evaluate(arg, levelScope)) : [];
    value = parent.kind === 'name' ? followName(parent.name, levelScope) : undefined;
  }
  if (levels.length > 0) return { levels, hasPackageAncestor: value === 'package' };
  if (value === undefined || value === 'package' || value.kind === 'function')
    return { levels, hasPackageAncestor: value === 'package' };
  const members = value.kind === 'object' ? value.members : [];
  const doc = value.kind === 'object' ? value.doc : undefined;
  return { levels: [{ className: undefined, members, scope: value.scope, doc, value }], hasPackageAncestor: false };
}

/**
 * Reads the type arguments of `new X<Args>(…)`. TypeScript infers missing type arguments from values, which are not
 * read here. A missing argument is an error when it is needed, because its constraint or default can be the wrong type.
 */
function readTypeArgs(
  { typeParams, name }: Declaration,
  { args, scope }: Instantiation,
  evaluator: Evaluator,
): (() => Shape)[] {
  if (args.length > 0) return args.map((arg) => () => evaluator.evaluate(arg, scope));
  return typeParams.map((param) => () => {
    throw new Unsupported(`the type argument ${param.name} is inferred`, '', 0, `write new ${name}<…>(…)`);
  });
}

/** Gives type parameters their shapes. An unsupported argument is an error only for an operation that uses it. */
function bindTypeArgs(
  evaluator: Evaluator,
  declaration: Declaration,
  ownScope: Scope,
  args: readonly (() => Shape)[],
): Scope['typeParams'] {
  const shapes = args.map((arg) => {
    try {
      return arg();
    } catch (error) {
      if (error instanceof Unsupported) return failingShape(error);
      throw error;
    }
  });
  return evaluator.bind(declaration.typeParams, shapes, ownScope);
}

export interface FoundMember {
  /** Whether the source marks the member `private` or `protected`. */
  readonly isHidden: boolean;
  /** The member's function. The field is undefined when the member does not lead to a function that can be followed. */
  readonly method: FollowedFunction | undefined;
}

/**
 * Finds a member of a level by name. Returns undefined when the level has no such member, or when the member of an
 * object is computed by code that is not read.
 */
export function findMember({ value, members, scope }: Level, name: string): FoundMember | undefined {
  if (value.kind !== 'class') {
    const method = followFunction(value, name);
    return method && { isHidden: false, method };
  }
  const sameName = indexMembers(members, scope).get(name);
  return sameName && { isHidden: sameName.some(isMarkedHidden), method: readMethod(sameName, scope) };
}

/** Whether a spread or a computed name can add a member whose name is not read. */
export function hasUnreadName({ members, scope }: Level): boolean {
  return members.some((member) => member.kind === 'spread' || readMemberKey(member, scope) === undefined);
}

export const isMarkedHidden = ({ modifiers }: Member): boolean =>
  modifiers.some((word) => word === 'private' || word === 'protected');

// Finds the class or object that a controller file exports, and the ancestors of the class, in all own files (files
// outside `node_modules`). Each of them is a level: level 0 is the exported one, and level 1 is its parent.

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
import { isMarkedHidden, readMemberKey, type Scope } from './look-up.ts';
import { failingShape, type Shape } from './shape.ts';

export interface Level {
  /** The `constructor.name` at run time; undefined for an object. */
  readonly className: string | undefined;
  readonly members: readonly Member[];
  /** The scope of the level's types. For `extends Base<User>`, the parameter `T` of `Base<T>` is `User` there. */
  readonly scope: Scope;
  readonly doc: string | undefined;
  /** The class or the object. It can also be all exports of a file (`export * as default`). */
  readonly value: FollowedValue;
}

export interface Levels {
  /** The levels, from level 0 on. The list is empty when the export is a function, or is not found in an own file. */
  readonly levels: readonly Level[];
  /** Whether the parent of the last level comes from a package, or from JavaScript itself. */
  readonly hasPackageAncestor: boolean;
}

/** @param exportName `default`, or the name of the controller's class */
export function findLevels(exportName: string, scope: Scope, evaluator: Evaluator): Levels {
  const levels: Level[] = [];
  const seen = new Set<Declaration>();
  let value: Followed = followExport(exportName, scope);
  let parentArgs: Instantiation = { args: [], scope };
  while (value !== undefined && value !== 'package' && value.kind === 'class' && !seen.has(value.declaration)) {
    const { declaration, instantiation } = value;
    seen.add(declaration);
    const args =
      instantiation === undefined
        ? evaluateTypeArgs(parentArgs, evaluator)
        : evaluateNewTypeArgs(declaration, instantiation, evaluator);
    const typeParams = evaluator.bind(declaration.typeParams, args, value.scope);
    const levelScope: Scope = { ...value.scope, namespace: declaration.namespace, typeParams };
    const { className, members, doc } = declaration;
    levels.push({ className, members, scope: levelScope, doc, value });
    const [parent] = declaration.parents as [TypeNode?];
    if (parent === undefined) return { levels, hasPackageAncestor: false };
    parentArgs = { args: parent.kind === 'name' ? parent.args : [], scope: levelScope };
    value = parent.kind === 'name' ? followName(parent.name, levelScope) : undefined;
  }
  if (levels.length > 0 || value === undefined || value === 'package' || value.kind === 'function')
    return { levels, hasPackageAncestor: value === 'package' };
  const { members, doc } = value.kind === 'object' ? value : { members: [], doc: undefined };
  return { levels: [{ className: undefined, members, scope: value.scope, doc, value }], hasPackageAncestor: false };
}

/** Evaluates type arguments. An unsupported argument is an error only for an operation that uses the argument. */
function evaluateTypeArgs({ args, scope }: Instantiation, evaluator: Evaluator): Shape[] {
  return args.map((arg) => {
    try {
      return evaluator.evaluate(arg, scope);
    } catch (error) {
      if (error instanceof Unsupported) return failingShape(error);
      throw error;
    }
  });
}

/**
 * Evaluates the type arguments of `new X<Args>(…)`. TypeScript infers missing arguments from values, which are not read
 * here, and which can differ from a default. So an operation that needs a missing argument is refused.
 */
function evaluateNewTypeArgs({ typeParams, name }: Declaration, call: Instantiation, evaluator: Evaluator): Shape[] {
  if (call.args.length > 0) return evaluateTypeArgs(call, evaluator);
  const cure = `write new ${name}<…>(…)`;
  return typeParams.map((param) =>
    failingShape(new Unsupported(`the type argument ${param.name} is inferred`, '', 0, cure)),
  );
}

export interface FoundMember {
  /** Whether the source marks the member `private` or `protected`. */
  readonly isHidden: boolean;
  /** The function of the member; undefined when the member is no function, or when code computes the function. */
  readonly method: FollowedFunction | undefined;
}

/** Returns undefined when the source has no member of this name, or when the name is not read. */
export function findMember({ value, members, scope }: Level, name: string): FoundMember | undefined {
  if (value.kind !== 'class') {
    const method = followFunction(value, name);
    return method && { isHidden: false, method };
  }
  const sameName = indexMembers(members, scope).get(name);
  return sameName && { isHidden: sameName.some(isMarkedHidden), method: readMethod(sameName, scope) };
}

/** Whether a level has a member whose name is not read, such as `...others` or `[name()]() {}`. */
export function hasUnreadName({ members, scope }: Level): boolean {
  return members.some((member) => member.kind === 'spread' || readMemberKey(member, scope) === undefined);
}

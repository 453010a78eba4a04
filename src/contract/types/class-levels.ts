// The class or object that a controller file exports, with its ancestors, as the source has them, in whatever own file
// each is.

import { Unsupported } from '../source/source-error.ts';
import type { Declaration, Member, TypeNode } from '../source/syntax.ts';
import type { Evaluator } from './evaluate.ts';
import {
  createFollower,
  type Followed,
  type FollowedFunction,
  type FollowedValue,
  type Instantiation,
  indexMembers,
  readMethod,
} from './follow.ts';
import { readMemberKey, type Scope } from './look-up.ts';
import { failingShape, type Shape } from './shape.ts';

export interface Level {
  /** The `constructor.name` of run time; undefined for an object. */
  readonly className: string | undefined;
  readonly members: readonly Member[];
  /** Where its types are looked up, its own type parameters filled in. */
  readonly scope: Scope;
  readonly doc: string | undefined;
  /** The class, object or module itself. */
  readonly value: FollowedValue;
}

export interface Levels {
  /** Nearest first. Empty: the export is made by code that is not followed. */
  readonly list: readonly Level[];
  /** The ancestors end with a class out of a package, which has no source. */
  readonly isPackageBelow: boolean;
}

/** @param exportName `default`, or the name of the controller's class */
export function findLevels(exportName: string, scope: Scope, evaluator: Evaluator): Levels {
  const follower = createFollower(evaluator.load);
  const list: Level[] = [];
  const seen = new Set<Declaration>();
  let value: Followed = follower.followExport(exportName, scope);
  let args: readonly (() => ReturnType<Evaluator['evaluate']>)[] = [];
  while (value !== undefined && value !== 'package' && value.kind === 'class' && !seen.has(value.declaration)) {
    const { declaration, instantiation } = value;
    seen.add(declaration);
    if (instantiation !== undefined) args = readTypeArgs(declaration, instantiation, evaluator);
    const levelScope: Scope = {
      ...value.scope,
      namespace: declaration.namespace,
      typeParams: bindTypeArgs(evaluator, declaration, value.scope, args),
    };
    list.push({
      className: declaration.className,
      members: declaration.members,
      scope: levelScope,
      doc: declaration.doc,
      value,
    });
    const [parent] = declaration.parents as [TypeNode?];
    if (parent === undefined) return { list, isPackageBelow: false };
    args = parent.kind === 'name' ? parent.args.map((arg) => () => evaluator.evaluate(arg, levelScope)) : [];
    value = parent.kind === 'name' ? follower.followName(parent.name, levelScope) : undefined;
  }
  if (list.length > 0) return { list, isPackageBelow: value === 'package' };
  if (value === undefined || value === 'package' || value.kind === 'function')
    return { list, isPackageBelow: value === 'package' };
  const members = value.kind === 'object' ? value.members : [];
  const doc = value.kind === 'object' ? value.doc : undefined;
  return { list: [{ className: undefined, members, scope: value.scope, doc, value }], isPackageBelow: false };
}

/**
 * Those that TypeScript infers from values are not seen here, and a constraint or a default would stand in their place.
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

/** Type arguments that are not understood are an error only for the operation that uses them. */
function bindTypeArgs(
  evaluator: Evaluator,
  declaration: Declaration,
  home: Scope,
  args: readonly (() => ReturnType<Evaluator['evaluate']>)[],
): Scope['typeParams'] {
  const shapes = args.map((arg) => {
    try {
      return arg();
    } catch (error) {
      if (error instanceof Unsupported) return failingShape(error);
      throw error;
    }
  });
  return evaluator.bind(declaration.typeParams, shapes, home);
}

/** What a level has under a name. Undefined: nothing, or something that is not followed. */
export interface FoundMember {
  /** The source marks it `private` or `protected`. */
  readonly isHidden: boolean;
  /** Undefined for a member that is no function, or leads to none that is followed. */
  readonly method: FollowedFunction | undefined;
}

export function findMember(
  { value, members, scope }: Level,
  name: string,
  evaluator: Evaluator,
): FoundMember | undefined {
  if (value.kind !== 'class') {
    const method = createFollower(evaluator.load).followFunction(value, name);
    return method && { isHidden: false, method };
  }
  const sameName = indexMembers(members, scope, evaluator.load).get(name);
  return sameName && { isHidden: sameName.some(isMarkedHidden), method: readMethod(sameName, scope) };
}

/** Whether some member of the class may have any name. */
export function hasUnreadName({ members, scope }: Level, evaluator: Evaluator): boolean {
  return members.some(
    (member) => member.kind === 'spread' || readMemberKey(member, scope, evaluator.load) === undefined,
  );
}

export const isMarkedHidden = ({ modifiers }: Member): boolean =>
  modifiers.some((word) => word === 'private' || word === 'protected');

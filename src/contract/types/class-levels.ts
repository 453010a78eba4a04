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
  type Made,
  membersByName,
  methodOf,
} from './follow.ts';
import { keyOf, type Scope } from './look-up.ts';
import { poison, type Shape } from './shape.ts';

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
  let value: Followed = follower.exported(exportName, scope);
  let args: readonly (() => ReturnType<Evaluator['evaluate']>)[] = [];
  while (value !== undefined && value !== 'package' && value.kind === 'class' && !seen.has(value.declaration)) {
    const { declaration, made } = value;
    seen.add(declaration);
    if (made !== undefined) args = argsOf(declaration, made, evaluator);
    const level: Scope = {
      ...value.scope,
      inside: declaration.inside,
      params: bindSafely(evaluator, declaration, value.scope, args),
    };
    list.push({
      className: declaration.className,
      members: declaration.members,
      scope: level,
      doc: declaration.doc,
      value,
    });
    const [parent] = declaration.parents as [TypeNode?];
    if (parent === undefined) return { list, isPackageBelow: false };
    args = parent.kind === 'name' ? parent.args.map((arg) => () => evaluator.evaluate(arg, level)) : [];
    value = parent.kind === 'name' ? follower.named(parent.name, level) : undefined;
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
function argsOf({ params, name }: Declaration, { args, scope }: Made, evaluator: Evaluator): (() => Shape)[] {
  if (args.length > 0) return args.map((arg) => () => evaluator.evaluate(arg, scope));
  return params.map((param) => () => {
    throw new Unsupported(`the type argument ${param.name} is inferred`, '', 0, `write new ${name}<…>(…)`);
  });
}

/** Type arguments that are not understood are an error only for the operation that uses them. */
function bindSafely(
  evaluator: Evaluator,
  declaration: Declaration,
  home: Scope,
  args: readonly (() => ReturnType<Evaluator['evaluate']>)[],
): Scope['params'] {
  const given = args.map((arg) => {
    try {
      return arg();
    } catch (error) {
      if (error instanceof Unsupported) return poison(error);
      throw error;
    }
  });
  return evaluator.bind(declaration.params, given, home);
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
    const method = createFollower(evaluator.load).functionOf(value, name);
    return method && { isHidden: false, method };
  }
  const named = membersByName(members, scope, evaluator.load).get(name);
  return named && { isHidden: named.some(isMarked), method: methodOf(named, scope) };
}

/** Whether some member of the class may have any name. */
export function hasUnreadName({ members, scope }: Level, evaluator: Evaluator): boolean {
  return members.some((member) => member.kind === 'spread' || keyOf(member, scope, evaluator.load) === undefined);
}

export const isMarked = ({ modifiers }: Member): boolean =>
  modifiers.some((word) => word === 'private' || word === 'protected');

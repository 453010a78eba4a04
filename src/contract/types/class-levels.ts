// Finds the class or object that a controller file exports, and the ancestors of the class. Each of them is a level:
// level 0 is the exported one, and level 1 is its parent.
import { isJavaScript } from '../source/files.ts';
import { readOr } from '../source/source-error.ts';
import type { Declaration, Member, TypeNode } from '../source/syntax.ts';
import type { Evaluator } from './evaluate.ts';
import { type Followed, followName } from './follow.ts';
import { readMemberKey, type Scope } from './look-up.ts';
import { failingShape, type Shape } from './shape.ts';

export interface Level {
  /** The `constructor.name` at run time; undefined for an object. */
  readonly className: string | undefined;
  readonly members: readonly Member[];
  /** The scope of the level's types. For `extends Base<User>`, the parameter `T` of `Base<T>` is `User` there. */
  readonly scope: Scope;
  readonly doc: string | undefined;
  /**
   * Whether parameters without an annotation have types that are not read: TypeScript infers them from the type of the
   * object (`{ … } satisfies T`), or the class has them from what it extends or implements.
   */
  readonly hasOuterType: boolean;
}

/**
 * @returns the levels, from level 0 on: none when the export is not read; and whether the parent of the last level
 *   comes from a package, or from JavaScript itself
 */
export function findLevels(exportName: string, scope: Scope, evaluator: Evaluator) {
  const levels: Level[] = [];
  const seen = new Set<Declaration>();
  const exported = scope.module.exports.get(exportName);
  // A value that is exported from another file (`export … from`) is not followed.
  let value: Followed = typeof exported === 'string' ? followName(exported, scope) : undefined;
  let typeArgs: readonly Shape[] = [];
  while (typeof value === 'object' && value.kind === 'class' && !seen.has(value.declaration)) {
    const { declaration } = value;
    seen.add(declaration);
    const typeParams = evaluator.bind(declaration.typeParams, typeArgs, value.scope);
    const levelScope: Scope = { ...value.scope, typeParams };
    const { name: className, members, doc } = declaration;
    const hasOuterType = declaration.isDerived === true && !isJavaScript(levelScope.path);
    levels.push({ className, members, scope: levelScope, doc, hasOuterType });
    const [parent] = declaration.parents as [TypeNode?];
    if (parent === undefined) return { levels, hasPackageAncestor: false };
    const { name, args } = parent.kind === 'name' ? parent : { name: undefined, args: [] };
    // An unsupported type argument is an error only for an operation that uses it.
    typeArgs = args.map((arg) => readOr(() => evaluator.evaluate(arg, levelScope), failingShape));
    value = name === undefined ? undefined : followName(name, levelScope);
  }
  if (levels.length === 0 && typeof value === 'object' && value.kind === 'object')
    levels.push({ ...value, className: undefined });
  return { levels, hasPackageAncestor: value === 'package' };
}

/** Whether a level has a member whose name is not read, such as `...others` or `[name()]() {}`. */
export function hasUnreadName({ members, scope }: Level): boolean {
  return members.some((member) => member.kind === 'spread' || readMemberKey(member, scope) === undefined);
}

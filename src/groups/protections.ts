// Finds what protects the operations of a controller: the settings in `static operations`, and the guards `_before`,
// `_around` and `_after`, which run before, around and after each operation. A file does not load when one of these
// members has a wrong form, or when the name of another member is nearly one of theirs. Otherwise a protection would be
// lost silently. operation-settings.ts reads the settings.
import { LoadRefusal } from '../base/load-refusal.ts';
import { isNear, lettersOf } from '../base/near.ts';
import { isClass, isPlainFunction, isPlainObject } from '../base/values.ts';
import type { Exported, Guards } from './exported.ts';
import { isValidSetting } from './operation-settings.ts';

interface Member {
  /** The kind of the object that holds the member. `prototype` is a prototype of the controller. */
  readonly holderKind: 'static' | 'field' | 'prototype' | 'object' | 'export';
  readonly holder: object;
  readonly key: string | symbol;
  /** The key as a text; for a symbol, its description. */
  readonly name: string;
  readonly isAccessor: boolean;
  /** The value of the property, or undefined for an accessor. */
  readonly value: unknown;
}

/** @throws LoadRefusal that names a wrong form and its cure, or the error that a static accessor throws */
export function findProtections(exported: Exported, operations: ReadonlySet<string>) {
  const { controller, isInstance } = exported;
  const classes = classesOf(exported);
  /**
   * The property `operations` of the class and of each parent class, nearest first; undefined where a class has none.
   * For a controller that is an object, the list has only its own property.
   */
  const declared = (isInstance ? classes : [controller]).map((holder) =>
    Object.getOwnPropertyDescriptor(holder, 'operations'),
  );
  const members = membersOf(exported, classes);
  // An export whose value is also a member of the controller is checked only as a member.
  const exportMembers = membersIn('export', exported.moduleExports).filter(
    ({ name, value }) => !members.some((member) => member.name === name && member.value === value),
  );
  const settingsCure = (text: string) => `write ${isInstance ? 'static operations =' : 'operations:'} { ${text} }`;
  const problemOf = (member: Member): string | undefined => {
    const { holderKind, name } = member;
    // An operation that the settings name is meant as an operation, even if its name is like that of a guard.
    const isMeantAsOperation =
      operations.has(name) && declared.some((property) => Object.hasOwn(Object(property?.value), name));
    if (name === 'operations' && !(isMeantAsOperation && holderKind === 'prototype'))
      return problemOfSettings(member, isInstance, settingsCure('…'));
    const guardProblem = isMeantAsOperation ? undefined : problemOfGuard(member);
    return guardProblem ?? problemOfOther(member, operations, declared, settingsCure);
  };
  for (const member of [...members, ...exportMembers]) {
    const problem = problemOf(member);
    const prefix = member.holderKind === 'static' ? 'static ' : '';
    if (problem !== undefined) throw new LoadRefusal('INVALID_GUARD', `${prefix}${String(member.key)} ${problem}`);
  }
  for (const holder of classes) checkPrivateNames(Function.prototype.toString.call(holder), settingsCure('…'));
  const guardsOf = (guard: GuardName): unknown[] => {
    const [nearest, ...others] = members.filter(({ name }) => name === guard);
    if (isInstance && nearest?.holderKind === 'field' && others.length > 0)
      throw new LoadRefusal('INVALID_GUARD', `${guard} is a field and a method: keep one of them`);
    return nearest === undefined ? [] : [nearest.value, ...others.map(({ value }) => value)];
  };
  const chainOf = (guard: GuardName): unknown[] => {
    const guards = guardsOf(guard);
    if (guards.length > 1 && guards.some((method) => callsParent(method, guard)))
      throw new LoadRefusal('INVALID_GUARD', `${guard} calls super.${guard}, which runs by itself: leave the call out`);
    return guards.reverse();
  };
  const guards = { before: chainOf('_before'), around: chainOf('_around'), after: guardsOf('_after')[0] } as Guards;
  const hasGuard = members.some(({ name }) => Object.hasOwn(GUARDS, name));
  return { declared, guards: hasGuard ? guards : undefined };
}

/** Whether the text of a method, without its comments, names the method of the parent. */
function callsParent(method: unknown, guard: GuardName): boolean {
  const text = Function.prototype.toString.call(method).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  return new RegExp(`\\bsuper\\s*\\??\\.\\s*${guard}\\b`).test(text);
}

function problemOfSettings(member: Member, isInstance: boolean, cure: string): string | undefined {
  const { holderKind, key, isAccessor, value } = member;
  if (typeof key === 'symbol') return `says nothing: ${cure}`;
  if (holderKind === 'export') return `is exported beside the group: ${cure}`;
  if (holderKind === 'field') return `is a field of the instance: ${cure}`;
  if (holderKind !== 'object' && !isInstance) return `is inherited by the object: ${cure}`;
  if (isAccessor) return `is an accessor: ${cure}`;
  if (typeof value === 'function')
    return `is a method: ${cure}; an operation of a class may have the name where its settings name it`;
  return holderKind === 'prototype' ? `is a value on the prototype: ${cure}` : undefined;
}

function problemOfGuard({ holderKind, key, name, isAccessor, value }: Member): string | undefined {
  const guard = guardMeantBy(name);
  if (guard === undefined) return undefined;
  if (key !== guard) {
    const isCallable = [value].flat().some((item) => typeof item === 'function');
    return isCallable
      ? `is no guard: rename it to ${guard}; where it is an operation, name it in static operations`
      : undefined;
  }
  if (holderKind === 'export') return `is exported beside the group: ${methodCure(guard)}`;
  if (holderKind === 'static') return `is no guard: ${methodCure(guard)}`;
  if (isAccessor) return `is an accessor: ${methodCure(guard)}`;
  if (typeof value !== 'function' || isClass(value)) return 'is a guard of the group, so it must be a method';
  // A generator cannot be a guard, because its call returns an iterator and does not run the body.
  return isPlainFunction(value) ? undefined : `is a generator: ${methodCure(guard)}`;
}

const GUARDS = { _before: 'data, params', _around: 'next, data, params', _after: 'result, params' } as const;
type GuardName = keyof typeof GUARDS;

function methodCure(guard: GuardName): string {
  return `write it as a method, ${guard}(${GUARDS[guard]}) { … }`;
}

/**
 * Refuses a setting outside of `operations`, and settings in a property with another name: one that is nearly
 * `operations`, or any name where the settings protect an operation.
 */
function problemOfOther(
  { holderKind, holder, key, name, isAccessor, value }: Member,
  operations: ReadonlySet<string>,
  declared: readonly (PropertyDescriptor | undefined)[],
  settingsCure: (text: string) => string,
): string | undefined {
  const isSetting = isProtection(name);
  const isNearName = isNear(lettersOf(name), 'operations', 2);
  // A static accessor is called to read its value. Any other accessor is not called, because it runs on the instance
  // and could have effects.
  const isRead = isAccessor && holderKind === 'static' && (isSetting || isNearName);
  const content: unknown = isRead ? Reflect.get(holder, key) : value;
  const cure = (entry: string) => `says nothing: ${settingsCure(`${entry}: { ${name}: … }`)}, or rename it`;
  if (isSetting && isValidSetting(name, content)) return cure(`'*'`);
  const entry = ['*', ...operations].find((operation) => {
    if (isNearName) return Object.keys(Object(content)).includes(operation);
    // The author may export settings for other files, or build `operations` from them.
    if (holderKind === 'export' || !isPlainObject(content)) return false;
    const own: unknown = Object.getOwnPropertyDescriptor(content, operation)?.value;
    const used = declared.map((property) => Object(property?.value)[operation]);
    if (used.some((settings) => own === (isSetting ? Object(settings)[name] : settings))) return false;
    return isSetting ? isValidSetting(name, own) : protects(own);
  });
  if (entry === undefined) return undefined;
  return isSetting ? cure(JSON.stringify(entry)) : 'says nothing: rename it to operations';
}

const isProtection = (name: string): name is 'access' | 'limit' => name === 'access' || name === 'limit';

const protects = (settings: unknown): boolean =>
  isPlainObject(settings) && (isValidSetting('access', settings.access) || isValidSetting('limit', settings.limit));

/** Matches other names that people give to guards, in lower case and without `_`, `-` and `$`. */
const GUARD_NAME = /^(before|around|after)(?:each|all|every|request|operation|action|handler|hook)?$/;

/** Returns the guard that an author meant by a name such as `_before`, `before`, `_Before`, `beforeEach`, `_befroe`. */
function guardMeantBy(name: string): GuardName | undefined {
  const letters = lettersOf(name);
  const [, exact] = GUARD_NAME.exec(letters) ?? [];
  if (exact !== undefined) return `_${exact}` as GuardName;
  if (!name.startsWith('_')) return undefined;
  if (isNear(letters, 'before', 2)) return '_before';
  if (isNear(letters, 'around', 1) && !/^g?round$/.test(letters)) return '_around';
  // Ordinary helpers have names such as "later", "enter" and "outer", which differ from "after" in two letters. "alter"
  // differs in one letter, but is also an ordinary name.
  return isNear(letters, 'after', 1) && letters !== 'alter' ? '_after' : undefined;
}

/**
 * Refuses a private member such as `#before` or `#operations` that the class does not use, because its author probably
 * meant a protection. Private names are visible only in the text of the class.
 */
function checkPrivateNames(text: string, cure: string): void {
  for (const [, name = ''] of text.matchAll(
    /(?:[\n;{}]|\b(?:static|async)\s)\s*#(operations|_?(?:before|around|after))\s*[=(]/g,
  )) {
    if (text.match(new RegExp(`#${name}\\b`, 'g'))?.length !== 1) continue;
    const guard = guardMeantBy(name);
    const itsCure = guard === undefined ? cure : methodCure(guard);
    throw new LoadRefusal('INVALID_GUARD', `#${name} is used nowhere: ${itsCure}`);
  }
}

/** Returns the class whose prototype is `holder`. */
export function classOf(holder: object): { readonly name: string } | undefined {
  const declaringClass: unknown = Object.hasOwn(holder, 'constructor') ? holder.constructor : undefined;
  return typeof declaringClass === 'function' ? declaringClass : undefined;
}

/** Returns the class of an instance, or those of an object's prototypes, and the parent classes, nearest first. */
function classesOf({ levels, isInstance }: Exported): object[] {
  const classes = new Set<object>();
  for (const { holder } of levels.slice(isInstance ? 0 : 1)) {
    // `Object.setPrototypeOf` can give a parent to the prototypes alone, or to the classes alone. So both are followed.
    let ancestor: unknown = classOf(holder);
    for (
      ;
      typeof ancestor === 'function' && ancestor !== Function.prototype;
      ancestor = Object.getPrototypeOf(ancestor)
    )
      classes.add(ancestor);
  }
  return [...classes];
}

function membersOf({ controller, levels, isInstance }: Exported, classes: readonly object[]): Member[] {
  return [
    ...membersIn(isInstance ? 'field' : 'object', controller),
    ...levels.slice(isInstance ? 0 : 1).flatMap(({ holder }) => membersIn('prototype', holder)),
    ...classes.flatMap((holder) => membersIn('static', holder)),
  ];
}

/** The property that each class and each prototype of a class has. No guard and no setting has a name like it. */
const EXPECTED: Readonly<Partial<Record<Member['holderKind'], string>>> = {
  static: 'prototype',
  prototype: 'constructor',
};

function membersIn(holderKind: Member['holderKind'], holder: object): Member[] {
  const keys = Reflect.ownKeys(holder).filter((key) => key !== EXPECTED[holderKind]);
  return keys.map((key) => {
    const property = Object.getOwnPropertyDescriptor(holder, key) as PropertyDescriptor;
    const name = typeof key === 'symbol' ? (key.description ?? '') : key;
    return { holderKind, holder, key, name, isAccessor: !('value' in property), value: property.value };
  });
}

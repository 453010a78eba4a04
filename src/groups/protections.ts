// Finds what protects the operations of a controller: `static operations` and the guards `_before` and `_after`. Any other form
// of the three, and a name that is nearly one of theirs, refuses the file: nothing that was meant to protect is dropped in
// silence. Which settings there are is operation-settings.ts.
import { editDistance, lettersOf } from '../base/near.ts';
import { isSound } from './operation-settings.ts';
import type { Exported, Guards } from './operations.ts';

export interface Protections {
  /** `operations` of the class and of each ancestor, nearest first; or of the object. */
  readonly declared: readonly Declaration[];
  readonly guards: Guards | undefined;
}

export interface Declaration {
  /** Absent: nothing is said there. */
  readonly value?: unknown;
}

/** One property of a controller, or an export beside it. */
interface Member {
  /** `prototype`: an ancestor of the instance or of the object. */
  readonly place: 'static' | 'field' | 'prototype' | 'object' | 'export';
  readonly holder: object;
  readonly key: string | symbol;
  /** Of a symbol its description. */
  readonly name: string;
  /** As messages name it: `static _before`. */
  readonly label: string;
  readonly isAccessor: boolean;
  /** Undefined for an accessor. */
  readonly value: unknown;
}

/**
 * @param operations the names of the group's operations
 * @throws Error one line: what is written in another form, and the cure
 */
export function findProtections(exported: Exported, operations: ReadonlySet<string>): Protections {
  const { controller, isInstance } = exported;
  const classes = classesOf(exported);
  const declared = (isInstance ? classes : [controller]).map((holder): Declaration => {
    const property = Object.getOwnPropertyDescriptor(holder, 'operations');
    return property === undefined ? {} : { value: property.value };
  });
  const says = (name: string) => declared.some(({ value }) => isObject(value) && Object.hasOwn(value, name));
  const settings = (text: string) => `write ${isInstance ? 'static operations =' : 'operations:'} { ${text} }`;
  const members = membersOf(exported, classes);
  for (const member of members) {
    const { place, name } = member;
    // An export that is a member, too, is judged as that.
    if (place === 'export' && members.some((other) => other.place !== 'export' && other.name === name && other.value === member.value))
      continue;
    const isOperation = operations.has(name) && says(name);
    const problem =
      name === 'operations' && !(isOperation && place === 'prototype')
        ? problemOfSettings(member, isInstance, settings('…'))
        : ((isOperation ? undefined : problemOfGuard(member)) ?? problemOfOther(member, operations, settings));
    if (problem !== undefined) throw new Error(`${member.label} ${problem}`);
  }
  for (const level of classes) checkPrivateNames(Function.prototype.toString.call(level), settings('…'));
  return { declared, guards: guardsOf(members, isInstance) };
}

function problemOfSettings({ place, key, isAccessor, value }: Member, isInstance: boolean, cure: string): string | undefined {
  if (typeof key === 'symbol') return `says nothing: ${cure}`;
  if (place === 'export') return `is exported beside the group: ${cure}`;
  if (place === 'field') return `is a field of the instance: ${cure}`;
  if (place !== 'object' && !isInstance) return `is inherited by the object: ${cure}`;
  if (isAccessor) return `is an accessor: ${cure}`;
  if (typeof value === 'function') return `is a method: ${cure}; an operation of a class may have the name where its settings name it`;
  return place === 'prototype' ? `is a value on the prototype: ${cure}` : undefined;
}

function problemOfGuard({ place, name, key, isAccessor, value }: Member): string | undefined {
  const guard = guardMeantBy(name);
  if (guard === undefined) return undefined;
  const cure = asMethod(guard);
  if (name !== guard || typeof key === 'symbol') {
    return isCallable(value) ? `is no guard: rename it to ${guard}; where it is an operation, name it in static operations` : undefined;
  }
  if (place === 'export') return `is exported beside the group: ${cure}`;
  if (place === 'static') return `is no guard: ${cure}`;
  if (isAccessor) return `is an accessor: ${cure}`;
  if (typeof value !== 'function' || isClass(value)) return 'is a guard of the group, so it must be a method';
  // Called, it returns an iterator: its body never runs.
  return Object.prototype.toString.call(value).endsWith('GeneratorFunction]') ? `is a generator: ${cure}` : undefined;
}

function asMethod(guard: '_before' | '_after'): string {
  return `write it as a method, ${guard}(${guard === '_before' ? 'data' : 'result'}, params) { … }`;
}

/** A setting that stands beside `operations`, and what is nearly called so and has its shape. */
function problemOfOther(
  { place, holder, key, name, isAccessor, value }: Member,
  operations: ReadonlySet<string>,
  settings: (text: string) => string,
): string | undefined {
  // Only a static accessor can be read without an effect.
  const content = isAccessor && place === 'static' ? readQuietly(holder, key) : value;
  if (name === 'access' || name === 'limit') {
    return isSound(name, content) ? `says nothing: ${settings(`'*': { ${name}: … }`)}, or rename it` : undefined;
  }
  if (editDistance(lettersOf(name), 'operations') > 2 || !isObject(content)) return undefined;
  const looksLikeSettings = Object.keys(content).some((one) => one === '*' || operations.has(one));
  return looksLikeSettings ? 'says nothing: rename it to operations' : undefined;
}

/** Names that people write for the guards, without case, `_`, `-` and `$`. */
const GUARD_NAME = /^(before|after)(?:each|all|every|request|operation|action|handler|hook)?$/;

/** The guard that a name stands for or is nearly the name of: `_before`, `before`, `_Before`, `beforeEach`, `_befroe`. */
function guardMeantBy(name: string): '_before' | '_after' | undefined {
  const letters = lettersOf(name);
  const [, exact] = GUARD_NAME.exec(letters) ?? [];
  if (exact !== undefined) return exact === 'before' ? '_before' : '_after';
  if (!name.startsWith('_')) return undefined;
  if (editDistance(letters, 'before') <= 2) return '_before';
  // Two letters from "after" are "later", "enter" and "outer", and one is "alter": names of ordinary helpers.
  return editDistance(letters, 'after') <= 1 && letters !== 'alter' ? '_after' : undefined;
}

/** A `#before` that nothing calls was meant for a guard. Only the text of the class shows it. */
function checkPrivateNames(text: string, cure: string): void {
  for (const [, name = ''] of text.matchAll(/(?:[\n;{}]|\b(?:static|async)\s)\s*#(operations|_?(?:before|after))\s*[=(]/g)) {
    if (text.match(new RegExp(`#${name}\\b`, 'g'))?.length !== 1) continue;
    const guard = guardMeantBy(name);
    throw new Error(`#${name} is used nowhere: ${guard === undefined ? cure : asMethod(guard)}`);
  }
}

/** @throws Error a field hides a guard of the class, or of an ancestor */
function guardsOf(members: readonly Member[], isInstance: boolean): Guards | undefined {
  const [before, after] = ['_before', '_after'].map((name) => {
    const all = members.filter((member) => member.name === name && member.place !== 'export');
    if (isInstance && all[0]?.place === 'field' && all.length > 1) throw new Error(`${name} is a field and a method: keep one of them`);
    return all[0]?.value;
  }) as [Guards['before'], Guards['after']];
  return before === undefined && after === undefined ? undefined : { before, after };
}

/** The class of an instance and its ancestors; of an object those that made what it inherits. Nearest first. */
function classesOf({ levels, isInstance }: Exported): object[] {
  const classes = new Set<object>();
  for (const { holder } of isInstance ? levels : levels.slice(1)) {
    const maker: unknown = Object.hasOwn(holder, 'constructor') ? holder.constructor : undefined;
    // By prototypes alone, or by classes alone, an ancestor can be linked, too.
    for (let level = maker; typeof level === 'function' && level !== Function.prototype; level = Object.getPrototypeOf(level))
      classes.add(level);
  }
  return [...classes];
}

function membersOf({ controller, levels, isInstance, beside }: Exported, classes: readonly object[]): Member[] {
  const own = (isInstance ? levels : levels.slice(1)).map(({ holder }) => holder);
  const places: readonly (readonly [Member['place'], object])[] = [
    [isInstance ? 'field' : 'object', controller],
    ...own.map((holder) => ['prototype', holder] as const),
    ...classes.map((holder) => ['static', holder] as const),
    ['export', beside],
  ];
  return places.flatMap(([place, holder]) =>
    Reflect.ownKeys(holder).map((key): Member => {
      const { value, get, set } = Object.getOwnPropertyDescriptor(holder, key) as PropertyDescriptor;
      const name = typeof key === 'symbol' ? (key.description ?? '') : key;
      const label = `${place === 'static' ? 'static ' : ''}${String(key)}`;
      return { place, holder, key, name, label, isAccessor: get !== undefined || set !== undefined, value };
    }),
  );
}

function readQuietly(holder: object, key: string | symbol): unknown {
  try {
    return Reflect.get(holder, key);
  } catch {
    return undefined;
  }
}

function isCallable(value: unknown): boolean {
  return typeof value === 'function' || (Array.isArray(value) && value.some((item) => typeof item === 'function'));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

export function isClass(value: unknown): value is new () => object {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

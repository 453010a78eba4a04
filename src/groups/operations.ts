// The shape half of the filesystem convention: which methods of what a controller file exports are operations.
// Names come from here, at load, and never from a request: a request can only pick one of this list.
import { isProxy } from 'node:util/types';
import { VERB_OPERATIONS } from '../base/route-name.ts';
import type { RequestCheck } from '../contract/check/request-check.ts';
import type { GroupContract } from '../contract/contract.ts';
import type { OperationSettings } from '../controller/operations.ts';
import type { ControllerParams } from '../controller.ts';
import { createRoutes, type GroupRoute, parseRouteName } from './group-routes.ts';
import { readSettings } from './operation-settings.ts';
import { findProtections, isClass } from './protections.ts';

/**
 * What a controller may inherit beside routes: a shared CRUD base class works, and its helpers stay unexposed
 * (decisions 3.3).
 */
const INHERITABLE: ReadonlySet<string> = new Set([...VERB_OPERATIONS.values(), 'updated']);
const OPERATION_NAME = /^[a-z][A-Za-z0-9]*$/;
const MARKED = 'it is marked private or protected';

export type OperationMethod = (data: unknown, params: ControllerParams) => unknown;

export interface Operation {
  /** As written: `find`, `GET {id}`. */
  readonly name: string;
  /** Its `this`. */
  readonly controller: object;
  readonly method: OperationMethod;
  /** What `static operations` says of it. */
  readonly settings: OperationSettings;
  /** The level that has the method: 0 is the exported class or object itself, 1 its parent. */
  readonly depth: number;
  /** Of its group; undefined: it has none. */
  readonly guards: Guards | undefined;
  /** Of its requests, by its types; undefined: it has none. */
  readonly check: RequestCheck | undefined;
}

/** What a controller, or an ancestor of it, has around each of its operations. */
export interface Guards {
  readonly before: OperationMethod | undefined;
  readonly after: ((result: unknown, params: ControllerParams) => unknown) | undefined;
}

/** A handler group, loaded. */
export interface Group {
  readonly name: string;
  readonly controller: object;
  /** By name, in the order of the source, those of ancestors last. The routes' are among them. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** In the order of choice. A group that has one is strict (operation-choice.ts). */
  readonly routes: readonly GroupRoute[];
  /** A verb reaches its operation at the bare group, and POST alone any other by its name. */
  readonly isStrict: boolean;
  /** What has the look of an operation and is none: for the commands, no request ever sees it. */
  readonly unexposed: readonly Unexposed[];
  /** What its types and comments say. */
  readonly contract: GroupContract;
}

export interface Unexposed {
  readonly name: string;
  /** `it is marked private or protected`, … */
  readonly reason: string;
  readonly method: unknown;
}

/** What a module exports as its group. */
export interface Exported {
  /** The class or the object. */
  readonly exported: object;
  /** Under this name the file exports it: `default`, or the name of the controller. */
  readonly exportName: string;
  /** The object, or the one instance of the class. */
  readonly controller: object;
  /** A class has made it. */
  readonly isInstance: boolean;
  /** Where its methods stand: its prototypes, or the object and its prototypes; nearest first. */
  readonly levels: readonly { readonly className: string | undefined; readonly holder: object }[];
  /** What else the module exports, by name. */
  readonly beside: Readonly<Record<string, unknown>>;
}

/**
 * The group that a module exports: a class (instantiated once, without arguments) or an object, as default or under the
 * controller's own name.
 *
 * @throws Error one line, when there is none; whatever the constructor throws
 */
export function instantiate(name: string, module: Readonly<Record<string, unknown>>): Exported {
  const found = exportOf(`${name}Controller`, module);
  if (found === undefined) {
    throw new Error(`it exports no group: export a class or an object, as default or as ${name}Controller`);
  }
  const { exported, exportName, beside } = found;
  const controller: object = isClass(exported) ? new exported() : exported;
  if (isClass(exported) && Object.getPrototypeOf(controller) !== exported.prototype)
    throw new Error(
      'its constructor returns another object, for which neither the settings nor the guards of the class hold',
    );
  const isInstance = isMadeByClass(controller);
  const levels: { className: string | undefined; holder: object }[] = [];
  // Fields live on the instance itself and are no operations, so an instance of a class begins at its prototype.
  for (let holder: object | null = isInstance ? Object.getPrototypeOf(controller) : controller; holder !== null; ) {
    if (holder === Object.prototype) break;
    levels.push({ className: classNameOf(holder), holder });
    holder = Object.getPrototypeOf(holder);
  }
  if ([controller, ...levels.map(({ holder }) => holder)].some(isProxy))
    throw new Error(
      'it exports a Proxy, or what inherits from one, whose traps no operation passes: export the object itself',
    );
  return { exported, exportName, controller, isInstance, levels, beside };
}

/**
 * @param isHidden whether the source marks the method of a level as private or protected
 * @throws Error one line
 */
export function createGroup(name: string, source: Exported, isHidden: IsHidden): Omit<Group, 'contract'> {
  const { exported, controller, isInstance, levels } = source;
  const { methods, depths, unexposed } = sortMembers(levels, propertiesOf(isInstance ? controller : {}), isHidden);
  if (isInstance) {
    const fields = methodsAmong(controller, 'it is a field and not a method').filter(
      ({ name: field }) => !methods.has(field),
    );
    unexposed.push(...fields.map((field) => (isHidden(field.name, 0) ? { ...field, reason: MARKED } : field)));
  }
  if (isClass(exported)) unexposed.push(...methodsAmong(exported, 'it is static'));
  const names = new Set(methods.keys());
  const { declared, guards } = findProtections(source, names);
  const settingsOf = readSettings(declared, names, (method) => method in controller);
  const operations = Array.from(methods, ([key, method]): [string, Operation] => [
    key,
    { name: key, controller, method, settings: settingsOf(key), depth: depths.get(key) ?? 0, guards, check: undefined },
  ]);
  const routes = createRoutes(names);
  return { name, controller, operations: new Map(operations), routes, isStrict: routes.length > 0, unexposed };
}

type Module = Readonly<Record<string, unknown>>;

function exportOf(
  controllerName: string,
  module: Module,
): Pick<Exported, 'exported' | 'exportName' | 'beside'> | undefined {
  const names = ['default', controllerName];
  const byDefault = module.default;
  // A CommonJS file, or TypeScript that tsx takes for one, arrives as a default that holds all its exports.
  const nested = isGroup(byDefault) && !isClass(byDefault) ? (byDefault as Module) : {};
  const places = [
    ...names.map((name) => ({ holder: nested, name })),
    ...names.map((name) => ({ holder: module, name })),
  ];
  for (const { holder, name } of places) {
    const exported = Object.hasOwn(holder, name) ? holder[name] : undefined;
    if (isGroup(exported))
      return { exported, exportName: name, beside: holder === module ? module : { ...module, ...nested } };
  }
  return undefined;
}

function isGroup(value: unknown): value is object {
  return isClass(value) || (typeof value === 'object' && value !== null && !Array.isArray(value));
}

interface SortedMembers {
  readonly methods: Map<string, OperationMethod>;
  /** The level of each. */
  readonly depths: ReadonlyMap<string, number>;
  readonly unexposed: Unexposed[];
}

type IsHidden = (name: string, depth: number) => boolean;

function propertiesOf(holder: object): ReadonlyMap<string, PropertyDescriptor> {
  return new Map(Object.entries(Object.getOwnPropertyDescriptors(holder)));
}

/**
 * @param fields of the instance. One that replaces a method is what a call of it runs: that method behind a guard, or
 *   undefined
 *   where a class takes back what it inherits
 */
function sortMembers(
  levels: Exported['levels'],
  fields: ReadonlyMap<string, PropertyDescriptor>,
  isHidden: IsHidden,
): SortedMembers {
  const methods = new Map<string, OperationMethod>();
  const depths = new Map<string, number>();
  const unexposed: Unexposed[] = [];
  const shadowed = new Set<string>();
  for (const [depth, { holder }] of levels.entries()) {
    for (const [name, ofClass] of propertiesOf(holder)) {
      if (shadowed.has(name)) continue;
      shadowed.add(name);
      const property = fields.get(name) ?? ofClass;
      const method: unknown = property.value ?? property.get ?? property.set;
      if (name === 'constructor' || typeof method !== 'function' || isClass(method)) continue;
      const reason = property.value === undefined ? 'it is an accessor' : whyUnexposed(name, depth, isHidden);
      if (reason !== undefined) unexposed.push({ name, reason, method });
      else {
        methods.set(name, method as OperationMethod);
        depths.set(name, depth);
      }
    }
  }
  return { methods, depths, unexposed };
}

function whyUnexposed(name: string, depth: number, isHidden: IsHidden): string | undefined {
  if (isHidden(name, depth)) return MARKED;
  if (name.startsWith('_')) return 'its name begins with _';
  if (parseRouteName(name) !== undefined) return undefined;
  if (!OPERATION_NAME.test(name)) return 'its name is not a small letter and then letters and digits';
  if (depth > 0 && !INHERITABLE.has(name))
    return `it is inherited, and of an ancestor only ${[...INHERITABLE].join(', ')} are taken`;
  return undefined;
}

function methodsAmong(holder: object, reason: string): Unexposed[] {
  return Object.entries(Object.getOwnPropertyDescriptors(holder))
    .map(([name, { value }]) => ({ name, reason, method: value as unknown }))
    .filter(({ method }) => typeof method === 'function' && !isClass(method));
}

/** Its prototype is that of a class, and not another object. */
function isMadeByClass(controller: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(controller);
  return prototype !== null && prototype !== Object.prototype && Object.hasOwn(prototype, 'constructor');
}

/** Undefined for an object that no class has made. */
function classNameOf(level: object): string | undefined {
  const maker: unknown = Object.hasOwn(level, 'constructor') ? level.constructor : undefined;
  return typeof maker === 'function' ? maker.name : undefined;
}

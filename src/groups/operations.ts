// Finds the operations of a controller: the methods of the exported class or object that answer requests. The list is
// made once, at load. A request can only choose from this list, and never reaches any other property of the controller.
import { isPromise, isProxy } from 'node:util/types';
import type { OperationSettings } from '../api/controller/operations.ts';
import type { ControllerParams } from '../api/controller.ts';
import { LoadRefusal } from '../base/load-refusal.ts';
import { splitRouteName, VERB_OPERATIONS, verbOf } from '../base/route-name.ts';
import { type Fields, isClass, isObject } from '../base/values.ts';
import type { RequestCheck } from '../contract/check/request-check.ts';
import type { ResultFilter } from '../contract/check/result-filter.ts';
import type { GroupContract, OperationContract } from '../contract/contract.ts';
import type { Exported, Guards } from './exported.ts';
import { createRoutes, type GroupRoute, parseRouteName, verbRoutes } from './group-routes.ts';
import type { MountFacts } from './mount.ts';
import { readSettings } from './operation-settings.ts';
import { classOf, findProtections } from './protections.ts';

/** A controller inherits only these operations, and routes. Other inherited methods mostly help a base class. */
const INHERITABLE: ReadonlySet<string> = new Set([...VERB_OPERATIONS.values(), 'updated']);
export const OPERATION_NAME = /^[a-z][A-Za-z0-9]*$/;
const MOUNT_CURE = 'write export default mount(handler), or mount.node(application) for one such as Express';
const MARKED_HIDDEN = 'it is marked private or protected';

export type OperationMethod = (data: unknown, params: ControllerParams) => unknown;

export interface Operation {
  /** The name as written: `find`, `GET {id}`. */
  readonly name: string;
  /** The HTTP method that the operation is meant for (`verbOf`). A request may have another one. */
  readonly verb: string;
  readonly controller: object;
  readonly method: OperationMethod;
  readonly settings: OperationSettings;
  /** How far up the method is declared: 0 for the class of the controller itself, 1 for its parent class, and so on. */
  readonly depth: number;
  readonly guards: Guards | undefined;
  /** Checks a request by the types of the operation. `check` is undefined when there is nothing to check. */
  readonly check: RequestCheck | undefined;
  /** Returns a result with only its declared fields; undefined when all fields are sent. */
  readonly filter: ResultFilter | undefined;
  /** Why `results: 'declared'` has no effect on the operation; undefined without this setting. */
  readonly unfilteredReason: string | undefined;
  /** Set for the operation of a mount, and undefined for an operation of an author. */
  readonly mount?: MountFacts;
  /** Undefined until the types of the group are read. */
  readonly contract: OperationContract | undefined;
}

export interface Group {
  readonly name: string;
  readonly controller: object;
  /** The operations by name, including the routes, in the order of the source. Inherited operations come last. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** The routes, in the order in which they are compared with a request. A group that has a route is strict. */
  readonly routes: readonly GroupRoute[];
  /**
   * The routes for a request whose URL names the group; undefined when the group is not strict. In a strict group, an
   * operation without a route is called by its name, and only with POST.
   */
  readonly strictRoutes: readonly GroupRoute[] | undefined;
  /** Methods that look like operations but are not. Only commands and log hints use this list. */
  readonly unexposed: readonly Unexposed[];
  readonly contract: GroupContract;
}

export interface Unexposed {
  readonly name: string;
  readonly reason: string;
}

/**
 * Finds the class or object that a module exports, as default or under the name of the controller. Instantiates a class
 * once, without arguments. @throws LoadRefusal, or any error of the constructor
 */
export function instantiate(name: string, module: Fields): Exported {
  const groupExport = findExport(`${name}Controller`, module);
  if (groupExport === undefined) {
    const forHandlers = typeof module.default === 'function' ? `; for a handler, ${MOUNT_CURE}` : '';
    const message = `it exports no group: export a class or an object, as default or as ${name}Controller${forHandlers}`;
    throw new LoadRefusal('INVALID_EXPORT', message);
  }
  const { exported, exportName, moduleExports } = groupExport;
  if (isPromise(exported))
    throw new LoadRefusal('INVALID_EXPORT', `${exportName} is a promise: write await before its value`);
  const controller: object = isClass(exported) ? new exported() : exported;
  if (isClass(exported) && Object.getPrototypeOf(controller) !== exported.prototype)
    throw new LoadRefusal(
      'INVALID_EXPORT',
      'its constructor returns another object, for which neither the settings nor the guards of the class hold',
    );
  const isInstance = isMadeByClass(controller);
  const levels: { className: string | undefined; holder: object }[] = [];
  // An instance itself holds only fields, which are no operations. So its levels begin with its prototype.
  for (let holder: object | null = isInstance ? Object.getPrototypeOf(controller) : controller; holder !== null; ) {
    if (holder === Object.prototype) break;
    levels.push({ className: classOf(holder)?.name, holder });
    holder = Object.getPrototypeOf(holder);
  }
  if ([exported, controller, ...levels.map(({ holder }) => holder)].some(isProxy))
    throw new LoadRefusal(
      'INVALID_EXPORT',
      'it exports a Proxy, or what inherits from one, whose traps no operation passes: export the object itself',
    );
  return { exported, exportName, controller, isInstance, levels, moduleExports };
}

/**
 * @param isHidden says whether the source marks a method as private or protected
 * @param isStrict whether the group is strict without a route, as a root group is: a path without a group would call
 *   `index`
 */
export function createGroup(
  name: string,
  groupExport: Exported,
  isHidden: IsHidden,
  isStrict = false,
): Omit<Group, 'contract'> {
  const { exported, controller, isInstance, levels } = groupExport;
  const { methods, unexposed } = sortMembers(levels, propertiesOf(isInstance ? controller : {}), isHidden);
  if (isInstance) {
    const fields = methodsAmong(controller, 'it is a field and not a method').filter(
      ({ name: field }) => !methods.has(field),
    );
    // A field that is undefined or null removes an inherited operation. Any class of the chain may mark a field.
    const isHiddenField = (key: string) => levels.some((_, depth) => isHidden(key, depth));
    for (const [key, { value }] of propertiesOf(controller))
      if ((value ?? undefined) !== undefined && !methods.has(key) && !isHiddenField(key)) refuseRoute(key, 'a field');
    unexposed.push(...fields.map((field) => (isHidden(field.name, 0) ? { ...field, reason: MARKED_HIDDEN } : field)));
  }
  if (isClass(exported)) {
    const statics = methodsAmong(exported, 'it is static');
    for (const { name: key } of statics) refuseRoute(key, 'static');
    unexposed.push(...statics);
  }
  const names = new Set(methods.keys());
  // The application of Hono is such an object. Its own routes would answer no request.
  if (names.size === 0 && typeof Reflect.get(controller, 'fetch') === 'function')
    throw new LoadRefusal('INVALID_EXPORT', `it exports a handler with fetch and no operation: ${MOUNT_CURE}`);
  const { declared, guards } = findProtections(groupExport, names);
  const settingsOf = readSettings(declared, names, (method) => method in controller);
  const operations = Array.from(methods, ([key, { method, depth }]): [string, Operation] => {
    const settings = settingsOf(key);
    const names = { name: key, verb: verbOf(key) };
    const unread = { check: undefined, filter: undefined, unfilteredReason: undefined, contract: undefined };
    return [key, { ...names, controller, method, settings, depth, guards, ...unread }];
  });
  const routes = createRoutes(names);
  const ownRoutes = routes.length > 0 ? routes : undefined;
  const strictRoutes = ownRoutes ?? (isStrict ? verbRoutes(names) : undefined);
  return { name, controller, operations: new Map(operations), routes, strictRoutes, unexposed };
}

function findExport(controllerName: string, module: Fields) {
  const defaultExport = module.default;
  // A CommonJS file, also TypeScript that tsx compiles to one, has a default export that holds all exports.
  const nested = mayBeGroup(defaultExport) && !isClass(defaultExport) ? (defaultExport as Fields) : {};
  for (const holder of [nested, module])
    for (const exportName of ['default', controllerName]) {
      const exported = Object.hasOwn(holder, exportName) ? holder[exportName] : undefined;
      if (mayBeGroup(exported))
        return { exported, exportName, moduleExports: holder === module ? module : { ...module, ...nested } };
    }
  return undefined;
}

const mayBeGroup = (value: unknown): value is object => isClass(value) || isObject(value);

type IsHidden = (name: string, depth: number) => boolean;

function propertiesOf(holder: object): ReadonlyMap<string, PropertyDescriptor> {
  return new Map(Object.entries(Object.getOwnPropertyDescriptors(holder)));
}

/** @param fields of the instance. A field replaces a method of its name; undefined removes an inherited operation */
function sortMembers(levels: Exported['levels'], fields: ReadonlyMap<string, PropertyDescriptor>, isHidden: IsHidden) {
  const methods = new Map<string, Pick<Operation, 'method' | 'depth'>>();
  const unexposed: Unexposed[] = [];
  const seenNames = new Set<string>();
  for (const [depth, { holder }] of levels.entries()) {
    for (const [name, declared] of propertiesOf(holder)) {
      if (seenNames.has(name)) continue;
      seenNames.add(name);
      const property = fields.get(name) ?? declared;
      const method: unknown = property.value ?? property.get ?? property.set;
      if (name in Object.prototype || typeof method !== 'function' || isClass(method)) continue;
      const reason = property.value === undefined ? 'it is an accessor' : whyUnexposed(name, depth, isHidden);
      if (reason !== undefined) unexposed.push({ name, reason });
      else methods.set(name, { method: method as OperationMethod, depth });
    }
  }
  return { methods, unexposed };
}

function whyUnexposed(name: string, depth: number, isHidden: IsHidden): string | undefined {
  if (isHidden(name, depth)) return MARKED_HIDDEN;
  if (name.startsWith('_')) return 'its name begins with _';
  if (parseRouteName(name) !== undefined) return undefined;
  if (!OPERATION_NAME.test(name)) return 'its name is not a small letter and then letters and digits';
  if (depth > 0 && !INHERITABLE.has(name))
    return `it is inherited, and only ${[...INHERITABLE].join(', ')} and routes can be`;
  return undefined;
}

function methodsAmong(holder: object, reason: string): Unexposed[] {
  return Array.from(propertiesOf(holder)).flatMap(([name, { value }]) =>
    typeof value === 'function' && !isClass(value) ? [{ name, reason }] : [],
  );
}

/** Refuses a route that would never answer, as in `'POST' = inTransaction(create)`. */
function refuseRoute(name: string, kind: 'a field' | 'static'): void {
  if (splitRouteName(name) === undefined) return;
  const method = `write a method, '${name}'(data, params) { … }, with _around for what surrounds it`;
  throw new LoadRefusal(
    'INVALID_ROUTE',
    `${name} is ${kind}, which answers no request: ${method}; or export an object with this property`,
  );
}

function isMadeByClass(controller: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(controller);
  return prototype !== null && prototype !== Object.prototype && Object.hasOwn(prototype, 'constructor');
}

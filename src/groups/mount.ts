// Makes a group of a mount: one operation for all methods and all paths, whose method calls the handler. No type of the
// handler is read, so its contract says that nothing is checked.
import { isMount, type Mount, type NodeHandler, type WebHandler } from '../api/controller/mount.ts';
import type { ControllerParams } from '../api/controller.ts';
import { LoadRefusal } from '../base/load-refusal.ts';
import { ANY_VERB } from '../base/route-name.ts';
import { isObject, isPlainFunction, isThenable } from '../base/values.ts';
import { factsOf, type OperationContract } from '../contract/contract.ts';
import type { GroupRoute } from './group-routes.ts';
import { isMountSetting, readMountSettings } from './operation-settings.ts';
import type { Group, Operation, OperationMethod } from './operations.ts';

/** The part of an operation that only a mount has. */
export interface MountFacts {
  readonly kind: Mount['kind'];
  /** Whether the handler answers OPTIONS, sets the CORS headers, and checks the origin of pages. */
  readonly ownsCors: boolean;
  /** Whether a Node handler gets its URL without the path of the group. */
  readonly strips: boolean;
}

/** The name of the only operation of a mount. It also answers the bare path of the group. */
const NAME = `${ANY_VERB} {path*}`;
const ROUTES: readonly GroupRoute[] = [
  { name: NAME, verb: ANY_VERB, segments: [], takesRest: false },
  {
    name: NAME,
    verb: ANY_VERB,
    segments: [{ literal: undefined, name: 'path', isRest: true, suffix: '' }],
    takesRest: true,
  },
];
/** Why nothing checks the data of a mount. */
export const A_HANDLER = 'a handler of its own';
const GUARDS = /^_?(?:before|around|after)$/;

/**
 * @param at the file of the group
 * @param moduleExports the exports of the file, none of which may look like a protection, which would have no effect
 * @throws Error with a message of one line
 */
export function createMountGroup(
  name: string,
  { kind, handler, settings: given }: Mount,
  at: string,
  moduleExports: Readonly<Record<string, unknown>> = {},
  defaultCors: 'own' | 'service' = 'service',
): Group {
  const stray = Object.keys(moduleExports).find(
    (key) => isMountSetting(key) || key === 'operations' || GUARDS.test(key),
  );
  if (stray !== undefined)
    throw new LoadRefusal('INVALID_GUARD', `${stray} says nothing beside mount(): write it into mount(handler, { … })`);
  const { cors = defaultCors, strip = false, ...own } = readMountSettings(given, kind);
  const settings = Object.freeze({ ...own, body: 'stream' as const });
  const contract: OperationContract = {
    ...{ name: NAME, summary: own.summary ?? A_HANDLER, isDeprecated: false, dataIsOptional: true, at },
    ...{ uncheckedReason: A_HANDLER, results: [{ status: 200, body: 'bytes' }] },
  };
  const operation: Operation = {
    ...{ name: NAME, verb: ANY_VERB, controller: {}, method: methodOf(kind, handler), settings, depth: 0 },
    ...{ guards: undefined, check: undefined, facts: factsOf(contract) },
    mount: { kind, ownsCors: cors === 'own', strips: strip },
  };
  const groupContract = { group: name, operations: new Map([[NAME, contract]]), defs: {} };
  const operations = new Map([[NAME, operation]]);
  const routes = { routes: ROUTES, strictRoutes: ROUTES };
  return { name, controller: operation.controller, operations, ...routes, unexposed: [], contract: groupContract };
}

/** Returns the mount that a module exports; undefined for any other controller. */
export function mountOf(exported: unknown): Mount | undefined {
  return isMount(exported) ? exported : undefined;
}

function methodOf(kind: Mount['kind'], handler: unknown): OperationMethod {
  const isFunction = isPlainFunction(handler);
  if (kind === 'node') {
    if (!isFunction) refuse('mount.node takes a function (request, response), such as an Express application');
    return () => handler as NodeHandler;
  }
  const hasFetch = isObject(handler) && isPlainFunction(handler.fetch);
  if (!isFunction && !hasFetch) refuse('mount takes a function (request) => Response, or an object with fetch');
  const call = (params: ControllerParams): unknown =>
    isFunction
      ? (handler as WebHandler)(params.toRequest(), params)
      : (handler as { fetch: WebHandler }).fetch(params.toRequest(), params);
  return (_data, params) => {
    const result = call(params);
    return isThenable(result) ? Promise.resolve(result).then(expectResponse) : expectResponse(result);
  };
}

function refuse(message: string): never {
  throw new LoadRefusal('INVALID_EXPORT', message);
}

/** Recognises a Response by its tag. `instanceof Response` would fail for the class of a library. */
function expectResponse(result: unknown): unknown {
  if (Object.prototype.toString.call(result) === '[object Response]') return result;
  throw new TypeError(`the handler of the mount returned ${typeof result} and no Response`);
}

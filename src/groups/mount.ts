// Makes a group of a mount: one operation for all methods and all paths, whose method calls the handler. No type of the
// handler is read, so its contract says that nothing is checked.
import { isMount, type Mount, type UpgradeHandler, type WebHandler } from '../api/controller/mount.ts';
import type { ControllerParams } from '../api/controller.ts';
import { FALLBACK } from '../base/group-name.ts';
import { LoadRefusal } from '../base/load-refusal.ts';
import { choosesUpgrades } from '../base/node-internals.ts';
import { ANY_VERB } from '../base/route-name.ts';
import { type Fields, isObject, isPlainFunction, isThenable } from '../base/values.ts';
import type { OperationContract } from '../contract/contract.ts';
import { isMountSetting, readMountSettings } from './operation-settings.ts';
import type { Group, Operation, OperationMethod } from './operations.ts';

export interface MountFacts {
  readonly kind: Mount['kind'];
  /** Whether the handler answers OPTIONS, sets the CORS headers, and checks the origin of pages. */
  readonly ownsCors: boolean;
  /** Whether a Node handler gets its URL without the path of the group. */
  readonly strips: boolean;
  /** Takes the sockets of WebSocket handshakes; undefined where a handshake is a usual GET. */
  readonly upgrade: UpgradeHandler | undefined;
  /** Whether the handler checks the origin of handshakes: also in a fallback, only where its settings say so. */
  readonly ownsHandshakes: boolean;
}

/** The name of the only operation of a mount. It also answers the bare path of the group. */
const NAME = `${ANY_VERB} {path*}`;
const ROUTES = [
  { name: NAME, verb: ANY_VERB, segments: [], takesRest: false },
  {
    ...{ name: NAME, verb: ANY_VERB, takesRest: true },
    segments: [{ literal: undefined, name: 'path', isRest: true, suffix: '' }],
  },
] as const;
export const A_HANDLER = 'a handler of its own';
const PROTECTIONS = /^(?:operations|_?(?:before|around|after))$/;

/**
 * @param at the file of the group
 * @param beside the exports of the module, none of them may look like a protection, which would have no effect
 */
export function createMountGroup(name: string, exported: unknown, at: string, beside: Fields = {}): Group | undefined {
  if (!isMount(exported)) return undefined;
  // The further properties of a copy, such as `{ ...mount(handler), access: 'user' }`, would have no effect.
  if (Object.keys(exported).join() !== 'kind,handler,settings')
    throw new LoadRefusal('INVALID_EXPORT', 'it is a copy of a mount: write its settings into mount(handler, { … })');
  const stray = Object.keys(beside).find((key) => isMountSetting(key) || PROTECTIONS.test(key));
  if (stray !== undefined)
    throw new LoadRefusal('INVALID_GUARD', `${stray} says nothing beside mount(): write it into mount(handler, { … })`);
  const { kind, handler } = exported;
  const { cors, strip = false, upgrade, ...own } = readMountSettings(exported.settings, kind);
  if (upgrade !== undefined && !choosesUpgrades())
    throw new LoadRefusal(
      'INVALID_SETTING',
      `mount: upgrade needs Node 22.21 and later, or 24.9 and later, and this is ${process.version}: update Node, or leave upgrade out`,
    );
  const ownsCors = cors === 'own' || (cors === undefined && name === FALLBACK);
  const contract: OperationContract = {
    ...{ name: NAME, summary: own.summary ?? A_HANDLER, isDeprecated: false, dataIsOptional: true, at },
    ...{ uncheckedReason: A_HANDLER, results: [{ status: 200, body: 'bytes' }] },
  };
  const operation: Operation = {
    ...{ name: NAME, verb: ANY_VERB, controller: exported, method: methodOf(kind, handler), depth: 0 },
    ...{ guards: undefined, check: undefined, filter: undefined, unfilteredReason: undefined, contract },
    settings: Object.freeze({ ...own, body: 'stream' as const }),
    mount: { kind, ownsCors, strips: strip && name !== FALLBACK, upgrade, ownsHandshakes: cors === 'own' },
  };
  return {
    ...{ name, controller: exported, routes: ROUTES, strictRoutes: ROUTES, unexposed: [] },
    operations: new Map([[NAME, operation]]),
    contract: { operations: new Map([[NAME, contract]]), defs: {} },
  };
}

/** The method of a Node handler is the handler itself, which operation-call.ts calls with Node's own objects. */
function methodOf(kind: Mount['kind'], handler: unknown): OperationMethod {
  const isFunction = isPlainFunction(handler);
  if (!isFunction && (kind === 'node' || !isObject(handler) || !isPlainFunction(handler.fetch)))
    throw new LoadRefusal(
      'INVALID_EXPORT',
      'mount takes a function (request) => Response, or an object with fetch; mount.node takes (request, response) => …',
    );
  if (kind === 'node') return handler as OperationMethod;
  return (_data, params) => {
    const request = params.toRequest();
    const result: unknown = isFunction
      ? (handler as WebHandler)(request, copyOf(params))
      : (handler as { fetch: WebHandler }).fetch(request, copyOf(params));
    return isThenable(result) ? Promise.resolve(result).then(expectResponse) : expectResponse(result);
  };
}

/** Makes properties that a library can copy and replace, because GraphQL Yoga makes its context from the params. */
function copyOf(params: ControllerParams): ControllerParams {
  const copy = { ...params };
  const prototype: object = Object.getPrototypeOf(params);
  const getters = [Object.getPrototypeOf(prototype), prototype].flatMap((level: object) =>
    Object.entries(Object.getOwnPropertyDescriptors(level)),
  );
  for (const [name, { get }] of getters)
    if (get !== undefined)
      Object.defineProperty(copy, name, {
        get: get.bind(params),
        set(value) {
          Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
        },
        configurable: true,
      });
  return copy;
}

/** Recognises a Response by its tag. `instanceof Response` would fail for the class of a library. */
function expectResponse(result: unknown): unknown {
  if (Object.prototype.toString.call(result) === '[object Response]') return result;
  throw new TypeError(`the handler of the mount returned ${typeof result} and no Response`);
}

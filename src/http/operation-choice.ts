// Chooses the operation of a group for a request. In a group without routes, docs/REFERENCE.md (4.1) applies: a segment
// of the URL names the operation, or the verb does. In a group with a route, the choice is strict (chooseStrictly).
import { refusal } from '../base/errors.ts';
import { VERB_OPERATIONS } from '../base/route-name.ts';
import { fitRoute, type GroupRoute, verbsOf } from '../groups/group-routes.ts';
import type { Group, Operation } from '../groups/operations.ts';

export interface Choice {
  readonly operation: Operation;
  /** The decoded path segments to which the route of the operation gives names. */
  readonly path: Readonly<Record<string, string>>;
  /** True when a segment of the URL names the operation. False when a route or the verb has chosen the operation. */
  readonly byName: boolean;
}

const NO_PATH: Readonly<Record<string, string>> = Object.freeze({});

/**
 * @param slugs the segments below the group, the first of which may name an operation
 * @param secondName the group in the URL, when a handler (a group that serves all requests of a key) serves instead. It
 *   names the operation if the first segment does not
 * @throws HttpError METHOD_NOT_ALLOWED, OPERATION_NOT_FOUND, ROUTE_NOT_FOUND
 */
export function chooseOperation(
  verb: string,
  group: Group,
  slugs: readonly string[],
  secondName: string | undefined,
): Choice {
  // The strict mode of the service file applies only to the group that the URL names, and not to a handler.
  const handlerRoutes = group.routes.length > 0 ? group.routes : undefined;
  const routes = secondName === undefined ? group.strictRoutes : handlerRoutes;
  if (routes !== undefined) return chooseStrictly(verb, group, routes, slugs, secondName);
  const named = operationNamed(group, slugs[0]) ?? operationNamed(group, secondName);
  if (named !== undefined) return { operation: named, path: NO_PATH, byName: true };
  const name = VERB_OPERATIONS.get(verb);
  if (name === undefined) throw notAllowed(allowedVerbs(group));
  const operation = group.operations.get(name);
  if (operation === undefined) {
    throw refusal('OPERATION_NOT_FOUND', undefined, {
      cause: new Error(`group ${group.name} has no operation ${name}, which ${verb} asks for`),
    });
  }
  return { operation, path: NO_PATH, byName: false };
}

/**
 * Chooses strictly. A named operation accepts only POST, so that no GET changes anything. A verb operation accepts only
 * its own verb.
 */
function chooseStrictly(
  verb: string,
  group: Group,
  routes: readonly GroupRoute[],
  slugs: readonly string[],
  secondName: string | undefined,
): Choice {
  const named = postedOperation(group, routes, slugs[0]) ?? postedOperation(group, routes, secondName);
  if (named !== undefined && verb === 'POST') return { operation: named, path: NO_PATH, byName: true };
  const fit = fitRoute(routes, verb, slugs);
  if (fit !== undefined)
    return { operation: group.operations.get(fit.route.name) as Operation, path: fit.path, byName: false };
  const verbs = verbsOf(routes, slugs);
  if (named !== undefined) verbs.add('POST');
  if (verbs.size === 0 && slugs.length > 0) throw refusal('ROUTE_NOT_FOUND');
  // OPTIONS is always served: without `Authorization` it is a preflight.
  throw notAllowed([...VERB_OPERATIONS.keys()].filter((method) => method === 'OPTIONS' || verbs.has(method)));
}

function operationNamed(group: Group, name: string | undefined): Operation | undefined {
  return name === undefined ? undefined : group.operations.get(name);
}

/**
 * Returns the operation that a POST can call by this name. A route cannot be called by its name, although a segment can
 * decode to that name (`GET%20%7Bid%7D`).
 */
function postedOperation(group: Group, routes: readonly GroupRoute[], name: string | undefined): Operation | undefined {
  const operation = operationNamed(group, name);
  return routes.some((route) => route.name === operation?.name) ? undefined : operation;
}

function notAllowed(verbs: readonly string[]): Error {
  return refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: verbs.join(', ') } });
}

/**
 * Returns the verbs for which the group has an operation. OPTIONS is always one of them: without `Authorization` it is
 * a preflight.
 */
function allowedVerbs(group: Group): string[] {
  return Array.from(VERB_OPERATIONS)
    .filter(([verb, name]) => verb === 'OPTIONS' || group.operations.has(name))
    .map(([verb]) => verb);
}

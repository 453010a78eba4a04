// Chooses the operation of a group for a request. In a group without routes, docs/REFERENCE.md (4.1) applies: a segment
// of the URL names the operation (`/api/order/paid`), or else the verb table does (POST is `created`). In a group that
// has a route such as `GET {id}`, or with a strict service file, the choice is strict: by the routes.
import { refusal } from '../base/errors.ts';
import { isRoot } from '../base/group-name.ts';
import { VERB_OPERATIONS } from '../base/route-name.ts';
import { fitRoute, verbsOf } from '../groups/group-routes.ts';
import type { Group, Operation } from '../groups/operations.ts';
import { NO_PATH } from './exchange.ts';

export interface Choice {
  readonly operation: Operation;
  /** The decoded values of `{id}` and other named segments in the route of the operation, by their names. */
  readonly path: Readonly<Record<string, string>>;
  /** True when a segment of the URL names the operation. False when a route or the verb has chosen the operation. */
  readonly isByName: boolean;
}

/**
 * @param slugs the segments below the group, the first of which may name an operation
 * @param secondName a name for the operation if `slugs` has none: the group in the URL, when a handler serves the
 *   request instead of that group
 * @throws HttpError METHOD_NOT_ALLOWED, OPERATION_NOT_FOUND, ROUTE_NOT_FOUND
 */
export function chooseOperation(
  verb: string,
  group: Group,
  slugs: readonly string[],
  secondName: string | undefined,
): Choice {
  // A strict service file gives `strictRoutes` to each group. It applies only to the group that the URL names, so for a
  // handler, only the routes of its own controller make the choice strict.
  const handlerRoutes = group.routes.length > 0 ? group.routes : undefined;
  const routes = secondName === undefined ? group.strictRoutes : handlerRoutes;
  const named = operationByName(group, routes, slugs[0]) ?? operationByName(group, routes, secondName);
  // In a strict choice, an operation that the URL names accepts only POST, so that no GET changes anything.
  if (named !== undefined && (routes === undefined || verb === 'POST'))
    return { operation: named, path: NO_PATH, isByName: true };
  if (routes !== undefined) {
    const fit = fitRoute(routes, verb, slugs);
    if (fit !== undefined)
      return { operation: group.operations.get(fit.route.name) as Operation, path: fit.path, isByName: false };
    const verbs = verbsOf(routes, slugs);
    if (named !== undefined) verbs.add('POST');
    if (verbs.size === 0 && (slugs.length > 0 || isRoot(group.name))) throw refusal('ROUTE_NOT_FOUND');
    throw notAllowed((method) => verbs.has(method));
  }
  const name = VERB_OPERATIONS.get(verb);
  if (name === undefined) throw notAllowed((_, operation) => group.operations.has(operation));
  const operation = group.operations.get(name);
  if (operation !== undefined) return { operation, path: NO_PATH, isByName: false };
  const cause = new Error(`group ${group.name} has no operation ${name}, which ${verb} asks for`);
  throw refusal('OPERATION_NOT_FOUND', undefined, { cause });
}

/** Says whether a strict group has an operation for a request. */
export function takesRequest(group: Group, verb: string, slugs: readonly string[]): boolean {
  const routes = group.strictRoutes ?? [];
  return (
    fitRoute(routes, verb, slugs) !== undefined ||
    (verb === 'POST' && operationByName(group, routes, slugs[0]) !== undefined)
  );
}

/** A route cannot be called by its name, although a segment can decode to that name (`GET%20%7Bid%7D`). */
function operationByName(group: Group, routes: Group['strictRoutes'], name = ''): Operation | undefined {
  const operation = group.operations.get(name);
  return routes?.some((route) => route.name === operation?.name) ? undefined : operation;
}

/** @param isAllowed says whether the URL takes a verb; `operation` is the operation of the verb by the verb table */
function notAllowed(isAllowed: (verb: string, operation: string) => boolean): Error {
  // OPTIONS is always allowed: without `Authorization`, an OPTIONS request is a preflight.
  const allowed = [...VERB_OPERATIONS].filter(([verb, name]) => verb === 'OPTIONS' || isAllowed(verb, name));
  return refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: allowed.map(([verb]) => verb).join(', ') } });
}

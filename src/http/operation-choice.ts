// Which operation of a group a request calls: the reference's choice (4.1) for a group without routes, the strict one
// for a group with at least one, whose verb operations are among its routes. Pure; the dispatcher calls what is chosen.
import { refusal } from '../base/errors.ts';
import { VERB_OPERATIONS } from '../base/route-name.ts';
import { fitRoute, verbsOf } from '../groups/group-routes.ts';
import type { Group, Operation } from '../groups/operations.ts';

export interface Choice {
  readonly operation: Operation;
  /** What the segments named in its route are, decoded. */
  readonly path: Readonly<Record<string, string>>;
  /** It was named by a segment, and not chosen by a route or the verb. */
  readonly byName: boolean;
}

const NO_PATH: Readonly<Record<string, string>> = Object.freeze({});

/**
 * @param slugs the segments below the group, the first of which may name an operation
 * @param second names one if that does not: the group in the URL, where a credential's handler serves
 * @throws HttpError METHOD_NOT_ALLOWED, OPERATION_NOT_FOUND, ROUTE_NOT_FOUND
 */
export function chooseOperation(
  verb: string,
  group: Group,
  slugs: readonly string[],
  second: string | undefined,
): Choice {
  // The strictness of a service file holds for the group that the URL names, and not for the handler of a credential.
  if (second === undefined ? group.isStrict : group.routes.length > 0)
    return chooseStrictly(verb, group, slugs, second);
  const named = operationNamed(group, slugs[0]) ?? operationNamed(group, second);
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

/** No GET changes anything by a name: what is named takes POST alone, and an operation of a verb only that verb. */
function chooseStrictly(verb: string, group: Group, slugs: readonly string[], second: string | undefined): Choice {
  const named = postedOperation(group, slugs[0]) ?? postedOperation(group, second);
  if (named !== undefined && verb === 'POST') return { operation: named, path: NO_PATH, byName: true };
  const fit = fitRoute(group.routes, verb, slugs);
  if (fit !== undefined)
    return { operation: group.operations.get(fit.route.name) as Operation, path: fit.path, byName: false };
  const verbs = verbsOf(group.routes, slugs);
  if (named !== undefined) verbs.add('POST');
  if (verbs.size === 0 && slugs.length > 0) throw refusal('ROUTE_NOT_FOUND');
  // OPTIONS is always served: without `Authorization` it is a preflight.
  throw notAllowed([...VERB_OPERATIONS.keys()].filter((method) => method === 'OPTIONS' || verbs.has(method)));
}

function operationNamed(group: Group, name: string | undefined): Operation | undefined {
  return name === undefined ? undefined : group.operations.get(name);
}

/** A segment may also decode to the name of a route, and that is no name to call it by. */
function postedOperation(group: Group, name: string | undefined): Operation | undefined {
  const operation = operationNamed(group, name);
  return group.routes.some((route) => route.name === operation?.name) ? undefined : operation;
}

function notAllowed(verbs: readonly string[]): Error {
  return refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: verbs.join(', ') } });
}

/** The methods of the bare group. OPTIONS is always served: without `Authorization` it is a preflight. */
function allowedVerbs(group: Group): string[] {
  return Array.from(VERB_OPERATIONS)
    .filter(([verb, name]) => verb === 'OPTIONS' || group.operations.has(name))
    .map(([verb]) => verb);
}

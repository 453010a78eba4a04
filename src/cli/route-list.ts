// Every URL that leads to an operation: the explicit rows as they stand, then each operation of each group under the
// rows of the gateway. Which row gets a request is asked of the router, never guessed.
import { VERB_OPERATIONS } from '../groups/operations.ts';
import { createRouter, firstFit, type Router } from '../http/router.ts';
import { ROUTES, type Route } from '../http/routes.ts';
import type { Place } from './function-places.ts';
import type { Inspection, LoadedGroup, Method } from './inspection.ts';

export interface ListedRoute {
  readonly kind: 'explicit' | 'group';
  readonly methods: readonly string[] | 'any';
  /** Of `any`: those that a row above takes. */
  readonly except?: readonly string[];
  readonly path: string;
  readonly group?: string;
  readonly operation: string;
  readonly file?: string;
  readonly line?: number;
  /** Without `Authorization` an OPTIONS is a preflight and reaches no operation. */
  readonly needsAuthorization?: true;
}

export function listRoutes(
  { groups, handlers }: Pick<Inspection, 'groups' | 'handlers'>,
  routes: readonly Route[] = ROUTES,
): ListedRoute[] {
  const router = createRouter(routes);
  const explicit = routes
    .filter(({ target }) => target !== 'gateway.index')
    .map(({ methods, path, target }): ListedRoute => ({ kind: 'explicit', methods, path, operation: target, ...handlers[target] }));
  const ofGroups = groups
    .toSorted((a, b) => (a.group < b.group ? -1 : 1))
    .flatMap((group) => prefixesOf(routes).flatMap((prefix) => listGroup(group, prefix, router)));
  return [...explicit, ...ofGroups];
}

export interface Shadowed {
  readonly verb: string;
  readonly path: string;
  readonly operation: string;
  /** The explicit row that takes the request. */
  readonly row: Route;
}

/** Requests that an operation is meant for and an explicit row gets. */
export function findShadowed(groups: readonly LoadedGroup[], routes: readonly Route[] = ROUTES): Shadowed[] {
  const router = createRouter(routes);
  const at = (verb: string, path: string, operation: string): Shadowed[] => {
    const row = firstFit(router.resolve(path).matches, verb)?.route;
    return row === undefined || row.target === 'gateway.index' ? [] : [{ verb, path, operation, row }];
  };
  return prefixesOf(routes).flatMap(({ prefix, takesMore }) =>
    groups.flatMap(({ group, operations }) =>
      operations.flatMap(({ name }) => {
        const base = `${prefix}${pageOf(group)}`;
        const verbs = Array.from(VERB_OPERATIONS.keys());
        const byVerb = verbs.filter((verb) => VERB_OPERATIONS.get(verb) === name).flatMap((verb) => at(verb, base, name));
        return takesMore ? [...byVerb, ...verbs.flatMap((verb) => at(verb, `${base}/${name}`, name))] : byVerb;
      }),
    ),
  );
}

interface Prefix {
  /** `/api/` */
  readonly prefix: string;
  /** Segments may follow the page. */
  readonly takesMore: boolean;
}

/** What stands before the page in the rows of the gateway. */
function prefixesOf(routes: readonly Route[]): Prefix[] {
  return routes
    .filter(({ path, target }) => target === 'gateway.index' && /\{(?:params|page)\}$/.test(path))
    .map(({ path }) => ({ prefix: path.slice(0, path.lastIndexOf('{')), takesMore: path.endsWith('{params}') }));
}

/** The page of a group, as most people write it: `user` for `User`. */
export function pageOf(group: string): string {
  return group.charAt(0).toLowerCase() + group.slice(1);
}

function listGroup(group: LoadedGroup, { prefix, takesMore }: Prefix, router: Router): ListedRoute[] {
  const base = `${prefix}${pageOf(group.group)}`;
  const byVerb = group.operations.flatMap((operation) => {
    const verbs = Array.from(VERB_OPERATIONS.keys()).filter(
      (verb) => VERB_OPERATIONS.get(verb) === operation.name && reachesGateway(router, base, verb),
    );
    const route = verbs.length === 0 ? [] : [entry(group, operation, verbs, base)];
    return verbs.includes('OPTIONS') ? route.map((found) => ({ ...found, needsAuthorization: true as const })) : route;
  });
  if (!takesMore) return byVerb;
  const bySlug = group.operations.flatMap((operation) => {
    const path = `${base}/${operation.name}`;
    const above = router.resolve(path).matches.filter(({ route }) => route.target !== 'gateway.index');
    if (above.some(({ route }) => route.methods === 'any')) return [];
    const except = [...new Set(above.flatMap(({ route }) => route.methods))];
    return [{ ...entry(group, operation, 'any', path), ...(except.length === 0 ? {} : { except }) }];
  });
  return [...byVerb, ...bySlug];
}

function reachesGateway(router: Router, path: string, verb: string): boolean {
  return firstFit(router.resolve(path).matches, verb)?.route.target === 'gateway.index';
}

function entry({ group, path: file }: LoadedGroup, { name, place }: Method, methods: ListedRoute['methods'], path: string): ListedRoute {
  return { kind: 'group', methods, path, group, operation: name, ...(place ?? ({ file } satisfies Partial<Place>)) };
}

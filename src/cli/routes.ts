// `gatefold routes` lists every URL that leads to an operation: first the explicit routes, then the routes of each
// group. The router of the server decides which route takes a request, so this file repeats no rule of the router.
import { alignColumns, shortPlace } from '../base/ink.ts';
import { urlNameOf } from '../base/page-name.ts';
import { VERB_OPERATIONS } from '../base/route-name.ts';
import type { ContractOutline } from '../contract/outline.ts';
import { createRoutes, type GroupRoute, methodsOf, verbRoutes } from '../groups/group-routes.ts';
import { createRouter, firstMatch, type Router } from '../http/router.ts';
import { type Route, routesWith } from '../http/routes.ts';
import type { Answer, Call, Command } from './command.ts';
import { inspectFolder, type LoadedGroup } from './inspection.ts';

const VERBS = [...VERB_OPERATIONS.keys()];

export const command: Command = {
  name: 'routes',
  about: 'List every URL that answers, with its operation and the file of its group, explicit rows first',
  run,
};

export interface ListedRoute {
  readonly kind: 'explicit' | 'group';
  readonly methods: readonly string[] | 'any';
  /** The methods that do not reach the operation, although `methods` is `any`: an earlier route takes them. */
  readonly except?: readonly string[];
  readonly path: string;
  readonly group?: string;
  readonly operation: string;
  readonly file?: string;
  /** The parts of a request that are checked, or the reason why nothing is checked. */
  readonly contract?: ContractOutline | undefined;
  /** The callers that the operation accepts, in words. `access` is undefined when anyone may call the operation. */
  readonly access?: string | undefined;
  /** Set when the service file makes the group strict. */
  readonly strict?: 'service';
  /**
   * Set for a route of OPTIONS. An OPTIONS request without `Authorization` is a preflight, which reaches no operation.
   */
  readonly needsAuthorization?: true;
}

async function run({ settings, io, ink }: Call): Promise<Answer> {
  const { groups, service } = await inspectFolder(settings, io);
  const routes = listRoutes(groups, routesWith(settings.docs, settings.basePath, settings.mcp));
  const broken = [...(service === undefined ? [] : [service]), ...groups].filter(({ ok }) => !ok);
  const hasAccess = routes.some(({ access }) => access !== undefined);
  const rows = alignColumns(
    routes.map((route) => [
      verbsOf(route),
      route.path,
      route.operation,
      ...(hasAccess ? [route.access ?? ''] : []),
      route.file === undefined ? '' : shortPlace(route.file, io.cwd),
      contractText(route),
    ]),
  );
  const table = rows.map(([verbs = '', path = '', ...cells], i) => {
    const [contract = '', place = '', ...others] = cells.reverse();
    const paint = routes[i]?.kind === 'explicit' ? ink.yellow : ink.green;
    return [paint(verbs), ink.bold(path), ...others.reverse(), ink.dim(place), contract].join('  ').trimEnd();
  });
  const byService = groups.filter(({ strict }) => strict === 'service').map(({ group }) => group);
  if (byService.length > 0) table.push('', `Strict because of ${service?.file}: ${byService.sort().join(', ')}`);
  return {
    json: {
      routes,
      not_loadable: broken.map(({ group, path, error, at }) => ({
        group,
        file: path,
        error,
        ...(at === undefined ? {} : { at }),
      })),
    },
    text: table.join('\n'),
    exitCode: broken.length === 0 ? 0 : 1,
    complaints: broken.map((group) => `${brokenPlace(group, io.cwd)} does not load: ${group.error}`),
  };
}

/** Describes the contract of an operation, such as `data { name, age? }` or `not checked: it has no annotation`. */
export function contractText({ contract }: { readonly contract?: ContractOutline | undefined }): string {
  const { checked = '', unchecked } = contract ?? {};
  return [checked, ...(unchecked === undefined ? [] : [`not checked: ${unchecked}`])]
    .filter((text) => text !== '')
    .join('; ');
}

export function verbsOf({ methods, except, needsAuthorization }: ListedRoute): string {
  if (methods !== 'any') return methods.join(',') + (needsAuthorization ? ' (authorized)' : '');
  return except === undefined ? 'any' : `any but ${except.join(',')}`;
}

/** Returns the place of the mistake that keeps a file from loading: `file:line`, or the file alone. */
export function brokenPlace({ at, path }: Pick<LoadedGroup, 'at' | 'path'>, cwd: string): string {
  return shortPlace(at ?? path, cwd);
}

export function listRoutes(groups: readonly LoadedGroup[], routes: readonly Route[] = routesWith('on')): ListedRoute[] {
  const router = createRouter(routes);
  const explicit = routes
    .filter(({ target }) => target !== 'gateway.index')
    .map(({ methods, path, target }): ListedRoute => ({ kind: 'explicit', methods, path, operation: target }));
  const groupRoutes = groups
    .toSorted((a, b) => (a.group < b.group ? -1 : 1))
    .flatMap((group) => prefixesOf(routes).flatMap((prefix) => listGroup(group, prefix, router)));
  return [...explicit, ...groupRoutes];
}

export interface Shadowed {
  readonly verb: string;
  readonly path: string;
  readonly operation: string;
  /** The explicit route that takes the request. */
  readonly takenBy: Route;
}

/** Finds the requests that would reach an operation, if an explicit route did not take them. */
export function findShadowed(groups: readonly LoadedGroup[], routes: readonly Route[] = routesWith('on')): Shadowed[] {
  const router = createRouter(routes);
  return prefixesOf(routes).flatMap((prefix) =>
    groups.flatMap((group) =>
      addressesOf(group, prefix).flatMap(({ operation, methods, path }) =>
        (methods === 'any' ? VERBS : methods).flatMap((verb): Shadowed[] => {
          const takenBy = firstMatch(router.resolve(path).matches, verb)?.route;
          if (takenBy === undefined || takenBy.target === 'gateway.index') return [];
          return [{ verb, path, operation, takenBy }];
        }),
      ),
    ),
  );
}

/**
 * Returns the part of a path before the name of the group, such as `/api/`, for each route that leads to the groups.
 */
function prefixesOf(routes: readonly Route[]): string[] {
  return routes
    .filter(({ path, target }) => target === 'gateway.index' && path.endsWith('{params}'))
    .map(({ path }) => path.slice(0, -'{params}'.length));
}

/** The methods and the path that reach an operation, unless an explicit route takes the request. */
interface Address {
  readonly operation: string;
  readonly methods: readonly string[] | 'any';
  readonly path: string;
}

/** Returns the addresses of a group's operations. Those of the bare group, without a further segment, come first. */
function addressesOf(group: LoadedGroup, prefix: string): Address[] {
  const base = `${prefix}${urlNameOf(group.group)}`;
  const routes = routesOf(group);
  const isStrict = group.strict !== undefined || routes.length > 0;
  const names = group.operations.map(({ name }) => name);
  const bareAddresses = names.flatMap((operation): Address[] => {
    const route = routes.find(({ name, segments }) => name === operation && segments.length === 0);
    const byVerb = VERBS.filter((verb) => VERB_OPERATIONS.get(verb) === operation);
    const methods = route === undefined ? byVerb : methodsOf(route, routes);
    return methods.length === 0 ? [] : [{ operation, methods, path: base }];
  });
  const longerAddresses = names.flatMap((operation): Address[] => {
    const route = routes.find(({ name }) => name === operation);
    if (route === undefined) return [{ operation, methods: isStrict ? ['POST'] : 'any', path: `${base}/${operation}` }];
    if (route.segments.length === 0) return [];
    return [
      { operation, methods: methodsOf(route, routes), path: `${base}/${operation.slice(operation.indexOf(' ') + 1)}` },
    ];
  });
  return [...bareAddresses, ...longerAddresses];
}

function listGroup(group: LoadedGroup, prefix: string, router: Router): ListedRoute[] {
  return addressesOf(group, prefix).flatMap(({ operation, methods, path }): ListedRoute[] => {
    const { matches } = router.resolve(path);
    if (methods === 'any') {
      const explicitMatches = matches.filter(({ route }) => route.target !== 'gateway.index');
      if (explicitMatches.some(({ route }) => route.methods === 'any')) return [];
      const except = [...new Set(explicitMatches.flatMap(({ route }) => route.methods))];
      return [{ ...entry(group, operation, 'any', path), ...(except.length === 0 ? {} : { except }) }];
    }
    const verbs = methods.filter((verb) => firstMatch(matches, verb)?.route.target === 'gateway.index');
    if (verbs.length === 0) return [];
    return [
      { ...entry(group, operation, verbs, path), ...(verbs.includes('OPTIONS') && { needsAuthorization: true }) },
    ];
  });
}

/** Returns the routes of a strict group. For any other group, the list is empty. */
export function routesOf({ operations, strict }: LoadedGroup): readonly GroupRoute[] {
  const names = operations.map(({ name }) => name);
  return strict === 'service' ? verbRoutes(names) : createRoutes(names);
}

function entry(
  { group, path: file, operations, strict }: LoadedGroup,
  operation: string,
  methods: ListedRoute['methods'],
  path: string,
): ListedRoute {
  const { contract, access } = operations.find(({ name }) => name === operation) ?? {};
  const reason = strict === 'service' ? { strict } : {};
  return { kind: 'group', methods, path, group, operation, file, access, contract, ...reason };
}

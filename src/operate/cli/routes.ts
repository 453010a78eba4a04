// `gatefold routes` lists every URL that leads to an operation: explicit routes such as `/api/docs`, then the routes of
// each group. An explicit route comes first and can take requests from a group, as the router of the server decides.

import { FALLBACK, pathOfGroup, urlNameOf } from '../../base/group-name.ts';
import { alignColumns, shortPlace } from '../../base/ink.ts';
import { VERB_OPERATIONS } from '../../base/route-name.ts';
import type { ContractOutline } from '../../contract/outline.ts';
import { createRoutes, type GroupRoute, methodsOf, verbRoutes } from '../../groups/group-routes.ts';
import { createRouter, firstMatch, type Router } from '../../request/router.ts';
import { OUTSIDE, type Route, routeTable } from '../../request/routes.ts';
import type { Answer, Command, CommandCall } from './command.ts';
import { brokenFiles, inspectFolder, type ListedOperation, type LoadedGroup } from './inspection.ts';

/** The HTTP methods that reach an operation by the path of the group, such as GET on `/api/user`. */
const VERBS = [...VERB_OPERATIONS.keys()];
const GROUPS_TARGET = 'gateway.index';

export const command: Command = {
  name: 'routes',
  about: 'List every URL that answers, with its operation and the file of its group',
  run,
};

export interface ListedRoute extends Omit<ListedOperation, 'name'> {
  readonly kind: 'explicit' | 'group';
  readonly methods: readonly string[] | 'any';
  /** The methods that an explicit route takes from an operation with the methods `any`. */
  readonly except?: readonly string[];
  readonly path: string;
  readonly group?: string;
  readonly operation: string;
  readonly file?: string;
  /** Set when the service file makes the group strict. A strict group refuses paths that no operation has. */
  readonly strict?: 'service';
  /** Set for OPTIONS. Without `Authorization`, such a request is a preflight, which reaches no operation. */
  readonly needsAuthorization?: true;
}

async function run({ settings, io, ink }: CommandCall): Promise<Answer> {
  const inspection = await inspectFolder(settings, io);
  const { groups, service } = inspection;
  const routes = listRoutes(groups, routeTable(settings.docs, settings.basePath, settings.mcp));
  const broken = brokenFiles(inspection);
  const hasAccess = routes.some(({ access }) => access !== undefined);
  const rows = routes.map((route) => {
    const file = route.file === undefined ? '' : shortPlace(route.file, io.cwd);
    const callers = hasAccess ? [route.access ?? ''] : [];
    return [verbsOf(route), route.path, route.operation, ...callers, file, contractText(route.contract)];
  });
  const table = alignColumns(rows).map(([verbs = '', path = '', ...cells], i) => {
    // The cells that stay are the operation and, when they are shown, the callers.
    const [file = '', contract = ''] = cells.splice(-2);
    const paint = routes[i]?.kind === 'explicit' ? ink.yellow : ink.green;
    return [paint(verbs), ink.bold(path), ...cells, ink.dim(file), contract].join('  ').trimEnd();
  });
  const strictByService = groups.filter(({ strict }) => strict === 'service').map(({ group }) => group);
  if (strictByService.length > 0)
    table.push('', `Strict because of ${service?.file}: ${strictByService.sort().join(', ')}`);
  return {
    json: {
      routes,
      not_loadable: broken.map(({ group, path: file, code, error, at }) => ({ group, file, code, error, at })),
    },
    text: table.join('\n'),
    exitCode: broken.length === 0 ? 0 : 1,
    warnings: broken.map((group) => `${brokenPlace(group, io.cwd)} does not load: ${group.error} (${group.code})`),
  };
}

/** Returns a text such as `data { name, age? }` or `not checked: it has no annotation`. */
function contractText(contract: ContractOutline | undefined): string {
  const { checked, unchecked } = contract ?? {};
  return [checked, unchecked && `not checked: ${unchecked}`].filter(Boolean).join('; ');
}

export function verbsOf({ methods, except, needsAuthorization }: ListedRoute): string {
  if (methods !== 'any') return methods.join(',') + (needsAuthorization ? ' (authorized)' : '');
  return except === undefined ? 'any' : `any but ${except.join(',')}`;
}

/** Returns the place of the mistake in a file that does not load: `controllers/UserController.ts:7`, or the file. */
export function brokenPlace({ at, path }: Pick<LoadedGroup, 'at' | 'path'>, cwd: string): string {
  return shortPlace(at ?? path, cwd);
}

export function listRoutes(groups: readonly LoadedGroup[], routes = routeTable('on')): ListedRoute[] {
  const router = createRouter(routes);
  const explicitRoutes = routes
    .filter(({ target }) => target !== GROUPS_TARGET)
    .map(({ methods, path, target }): ListedRoute => ({ kind: 'explicit', methods, path, operation: target }));
  const groupRoutes = groups
    .toSorted((a, b) => (a.group === FALLBACK || (b.group !== FALLBACK && a.group > b.group) ? 1 : -1))
    .flatMap((group) => listGroup(group, prefixOf(routes), router));
  return [...explicitRoutes, ...groupRoutes];
}

function prefixOf(routes: readonly Route[]): string {
  const { path } = routes.find(({ path }) => path.endsWith('{params}')) as Route;
  return path.slice(0, path.lastIndexOf('{'));
}

/** The requests that reach an operation, unless an explicit route takes them. */
type Address = Pick<ListedRoute, 'methods' | 'path'> & { readonly operation: ListedOperation };

/** Returns the addresses of a group's operations. `/api/user` comes before `/api/user/pay`. */
function addressesOf(group: LoadedGroup, prefix: string): Address[] {
  const base = group.group === FALLBACK ? '' : pathOfGroup(prefix.slice(0, -1), urlNameOf(group.group));
  const routes = routesOf(group);
  const isStrict = group.strict !== undefined || routes.length > 0;
  const bareAddresses = group.operations.flatMap((operation): Address[] => {
    const route = routes.find(({ name, segments }) => name === operation.name && segments.length === 0);
    const byVerb = VERBS.filter((verb) => VERB_OPERATIONS.get(verb) === operation.name);
    const methods = route === undefined ? byVerb : methodsOf(route, routes);
    return methods.length === 0 ? [] : [{ operation, methods, path: base || '/' }];
  });
  const longerAddresses = group.operations.flatMap((operation): Address[] => {
    const { name } = operation;
    const route = routes.find((route) => route.name === name);
    if (route === undefined) return [{ operation, methods: isStrict ? ['POST'] : 'any', path: `${base}/${name}` }];
    if (route.segments.length === 0) return [];
    const path = `${base}/${name.slice(name.indexOf(' ') + 1)}`;
    return [{ operation, methods: methodsOf(route, routes), path }];
  });
  return [...bareAddresses, ...longerAddresses];
}

function listGroup(loaded: LoadedGroup, prefix: string, router: Router): ListedRoute[] {
  const { group, path: file, strict } = loaded;
  const byService = strict === 'service' ? { strict } : {};
  return addressesOf(loaded, prefix).flatMap(({ operation, methods, path }): ListedRoute[] => {
    const { name, contract, access } = operation;
    const call = { operation: name, file, access, contract, ...byService };
    const route: ListedRoute = { kind: 'group', methods, path, group, ...call };
    const { matches } = router.resolve(encodeURI(path));
    if (methods === 'any') {
      const explicitMatches = matches.filter(({ route }) => route.target !== GROUPS_TARGET);
      if (explicitMatches.some(({ route }) => route.methods === 'any')) return [];
      const except = [...new Set(explicitMatches.flatMap(({ route }) => route.methods))];
      return [except.length === 0 ? route : { ...route, except }];
    }
    // Outside of the base path, there is no row, and the fallback answers.
    const verbs = methods.filter((verb) => (firstMatch(matches, verb)?.route ?? OUTSIDE).target === GROUPS_TARGET);
    if (verbs.length === 0) return [];
    return [{ ...route, methods: verbs, ...(verbs.includes('OPTIONS') && { needsAuthorization: true }) }];
  });
}

/** @returns an empty list unless the group is strict */
export function routesOf({ operations, strict }: LoadedGroup): readonly GroupRoute[] {
  const names = operations.map(({ name }) => name);
  return strict === 'service' ? verbRoutes(names) : createRoutes(names);
}

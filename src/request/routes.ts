// The table of routes. The first row that matches a request serves the request. The last three rows (the gateway) lead
// to the controllers. If the rows above a row match all its requests, the row is dead, and router.ts refuses the table.
// The paths are written for the default BASE_PATH, `/api`.

/** The target of a row. For each target, steps.ts has the steps of a request. */
export type RouteTarget =
  | 'gateway.index'
  | 'public.file'
  | 'public.fallback'
  | 'identity.signin'
  | 'identity.register'
  | 'docs.openapi'
  | 'docs.page'
  | 'mcp.message';

export interface Route {
  readonly methods: readonly string[] | 'any';
  /** `{params}` at the end stands for one or more segments. */
  readonly path: string;
  readonly target: RouteTarget;
}

export const ROUTES: readonly Route[] = [
  { methods: ['POST'], path: '/api/idp-signin', target: 'identity.signin' },
  { methods: ['POST'], path: '/api/register', target: 'identity.register' },
  { methods: ['GET', 'HEAD'], path: '/api/openapi.json', target: 'docs.openapi' },
  { methods: ['GET', 'HEAD'], path: '/api/docs', target: 'docs.page' },
  // All methods match, so that methods other than POST get a 405. Clients of the Model Context Protocol learn from the
  // 405 that there is no stream to listen to (GET) and no session to end (DELETE).
  { methods: 'any', path: '/api/mcp', target: 'mcp.message' },
  { methods: 'any', path: '/api', target: 'gateway.index' },
  { methods: 'any', path: '/api/', target: 'gateway.index' },
  { methods: 'any', path: '/api/{params}', target: 'gateway.index' },
];

/** With `application`, the steps refuse callers without a credential. The rows are the same as with `on`. */
type Availability = 'on' | 'application' | 'off';

/**
 * Returns the rows with `basePath` in the place of `/api`. Under an empty base path, the rows `/api` and `/api/` become
 * one. The rows of `docs` and `mcp` are left out when these are off, so their paths lead to the controllers.
 */
export function routeTable(docs: Availability, basePath = '/api', mcp: Availability = 'off'): readonly Route[] {
  return ROUTES.map((route) => ({ ...route, path: basePath + route.path.slice('/api'.length) })).filter(
    ({ path, target }) =>
      path !== '' && (docs !== 'off' || !target.startsWith('docs.')) && (mcp !== 'off' || target !== 'mcp.message'),
  );
}

/** The rows of requests outside of the base path. */
export const OUTSIDE: Route = { methods: 'any', path: '/', target: 'gateway.index' };
export const FILE: Route = { ...OUTSIDE, target: 'public.file' };
const FILE_OR_FALLBACK: Route = { ...OUTSIDE, target: 'public.fallback' };

/** @returns undefined when nothing is served outside of the base path */
export function routeOutside(hasFiles: boolean, hasFallback: boolean): Route | undefined {
  if (!hasFiles) return hasFallback ? OUTSIDE : undefined;
  return hasFallback ? FILE_OR_FALLBACK : FILE;
}

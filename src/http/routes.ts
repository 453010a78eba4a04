// The ordered rows of routes: the first row that matches serves the request. The last three rows (the gateway) lead to
// the controllers. The service does not start when a row can never match, because rows above it match all its requests
// (router.ts). The paths are written for the default BASE_PATH, `/api`.

/** The destination of a row. For each destination, steps.ts lists the functions that handle a request in turn. */
export type RouteTarget =
  | 'gateway.index'
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

/** `application` serves only callers with a credential. It has the same rows as `on`. */
type Availability = 'on' | 'application' | 'off';

/**
 * Returns the rows under another base path. Under an empty base path, the rows `/api` and `/api/` become one. When
 * `docs` or `mcp` is off, its paths lead to the controllers like any other path.
 */
export function routesWith(docs: Availability, basePath = '/api', mcp: Availability = 'off'): readonly Route[] {
  return ROUTES.map((route) => ({ ...route, path: basePath + route.path.slice('/api'.length) })).filter(
    ({ path, target }) =>
      path !== '' && (docs !== 'off' || !target.startsWith('docs.')) && (mcp !== 'off' || target !== 'mcp.message'),
  );
}

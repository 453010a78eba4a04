// The ordered rows of routes: the first fit wins. Explicit rows come first, the three rows of the gateway last. The
// service does not start with a row whose requests all go to a row above it (router.ts). Rows are written for the
// default of BASE_PATH.

/** The destination of a row; app.ts has the steps of each. */
export type RouteTarget =
  | 'gateway.index'
  | 'identity.signin'
  | 'identity.register'
  | 'docs.openapi'
  | 'docs.page'
  | 'mcp.message';

export interface Route {
  readonly methods: readonly string[] | 'any';
  /** `{page}` is one segment, which names the handler group. `{params}` at the end is one or more segments. */
  readonly path: string;
  readonly target: RouteTarget;
}

export const ROUTES: readonly Route[] = [
  { methods: ['POST'], path: '/api/idp-signin', target: 'identity.signin' },
  { methods: ['POST'], path: '/api/register', target: 'identity.register' },
  { methods: ['GET', 'HEAD'], path: '/api/openapi.json', target: 'docs.openapi' },
  { methods: ['GET', 'HEAD'], path: '/api/docs', target: 'docs.page' },
  // Clients learn from a 405 that there is neither a stream to listen to nor a session to end.
  { methods: 'any', path: '/api/mcp', target: 'mcp.message' },
  { methods: 'any', path: '/api', target: 'gateway.index' },
  { methods: 'any', path: '/api/', target: 'gateway.index' },
  { methods: 'any', path: '/api/{params}', target: 'gateway.index' },
];

type Switch = 'on' | 'application' | 'off';

/**
 * The rows under another base path, which may be empty: the rows `/api` and `/api/` are then one. Where `DOCS` or `MCP`
 * is off, its paths are the gateway's like any other.
 */
export function routesWith(docs: Switch, basePath = '/api', mcp: Switch = 'off'): readonly Route[] {
  return ROUTES.map((route) => ({ ...route, path: basePath + route.path.slice('/api'.length) })).filter(
    ({ path, target }) =>
      path !== '' && (docs !== 'off' || !target.startsWith('docs.')) && (mcp !== 'off' || target !== 'mcp.message'),
  );
}

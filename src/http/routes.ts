// The ordered array of routes: first fit wins, explicit rows above, the gateway's three below. A row that a row above
// it swallows stops the start (router.ts). Rows are written for the default of BASE_PATH.

/** What a row leads to; app.ts holds the function for each name. */
export type RouteTarget = 'gateway.index' | 'identity.signin' | 'identity.register' | 'docs.openapi' | 'docs.page';

export interface Route {
  readonly methods: readonly string[] | 'any';
  /** `{page}` is one segment and names the handler group; `{params}`, at the end, is all that is left, one at least. */
  readonly path: string;
  readonly target: RouteTarget;
}

export const ROUTES: readonly Route[] = [
  { methods: ['POST'], path: '/api/idp-signin', target: 'identity.signin' },
  { methods: ['POST'], path: '/api/register', target: 'identity.register' },
  { methods: ['GET', 'HEAD'], path: '/api/openapi.json', target: 'docs.openapi' },
  { methods: ['GET', 'HEAD'], path: '/api/docs', target: 'docs.page' },
  { methods: 'any', path: '/api', target: 'gateway.index' },
  { methods: 'any', path: '/api/', target: 'gateway.index' },
  { methods: 'any', path: '/api/{params}', target: 'gateway.index' },
];

/**
 * The rows under another base path, which may be empty: the rows `/api` and `/api/` are then one. Where `DOCS` is off,
 * the paths of the document and its page are the gateway's like any other.
 */
export function routesWith(docs: 'on' | 'application' | 'off', basePath = '/api'): readonly Route[] {
  return ROUTES.map((route) => ({ ...route, path: basePath + route.path.slice('/api'.length) })).filter(
    ({ path, target }) => path !== '' && (docs !== 'off' || !target.startsWith('docs.')),
  );
}

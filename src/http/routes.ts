// The ordered array of routes: first fit wins, explicit rows above, the gateway's three below. A row that a row above it
// swallows stops the start (router.ts).

/** What a row leads to; app.ts holds the function for each name. */
export type RouteTarget = 'gateway.index' | 'identity.signin' | 'identity.register';

export interface Route {
  readonly methods: readonly string[] | 'any';
  /** `{page}` is one segment and names the handler group; `{params}`, at the end, is all that is left, one at least. */
  readonly path: string;
  readonly target: RouteTarget;
}

export const ROUTES: readonly Route[] = [
  { methods: ['POST'], path: '/api/idp-signin', target: 'identity.signin' },
  { methods: ['POST'], path: '/api/register', target: 'identity.register' },
  { methods: 'any', path: '/api', target: 'gateway.index' },
  { methods: 'any', path: '/api/', target: 'gateway.index' },
  { methods: 'any', path: '/api/{params}', target: 'gateway.index' },
];

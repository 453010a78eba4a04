// The gateway: the reference's seven steps, in its order (reference 1).

import { refusal } from '../base/errors.ts';
import type { CallingApplication } from '../controller.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Exchange } from './exchange.ts';
import type { Responder } from './response.ts';
import type { RouteMatch } from './router.ts';

/** What the gateway reads of a row of the registered-credentials table. */
export interface CallerRow {
  readonly application: CallingApplication;
  /** The handler group that the row's requests go to. */
  readonly handler: string;
  /** Verbs allowed; undefined: all. */
  readonly methods: ReadonlySet<string> | undefined;
}

export type Caller =
  | { readonly kind: 'row'; readonly row: CallerRow }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refused'; readonly reason: string };

export interface CallerTable {
  identify(authorization: string): Caller;
}

export interface GatewayParts {
  readonly groups: Pick<Groups, 'find'>;
  readonly credentials: CallerTable;
  readonly dispatcher: Dispatcher;
  readonly respond: Responder;
}

export type Gateway = (exchange: Exchange, match: RouteMatch) => void;

export function createGateway({ groups, credentials, dispatcher, respond }: GatewayParts): Gateway {
  return function index(exchange, match) {
    const { authorization } = exchange.head;
    // 1. Preflight: no body, no table, no file.
    if (exchange.verb === 'OPTIONS' && authorization === undefined) return respond.preflight(exchange);
    // 2. Response headers: response.ts gives them to every answer.
    // 3. Page resolution.
    exchange.page = match.page;
    exchange.slugs = match.slugs;
    // 4. SDK mode.
    if (authorization !== undefined) {
      const caller = credentials.identify(authorization);
      if (caller.kind === 'refused') throw invalidCredential(caller.reason);
      if (caller.kind === 'row') return serveApplication(exchange, caller.row);
    }
    // 5. Delegation, 6. absent group.
    withGroup(exchange, exchange.page, (group) => {
      if (group !== undefined) dispatcher.dispatch(exchange, group);
      else respond.fail(exchange, refusal(authorization === undefined ? 'GROUP_NOT_FOUND' : 'DELEGATED_GROUP_NOT_FOUND'));
    });
    // 7. Exception: whatever is thrown above reaches respond.fail, here or in app.ts.
  };

  /** The row's group serves the request, never the group in the URL; there the first segment may name the operation. */
  function serveApplication(exchange: Exchange, row: CallerRow): void {
    const { verb } = exchange;
    exchange.application = row.application;
    if (row.methods !== undefined && !row.methods.has(verb) && !(verb === 'HEAD' && row.methods.has('GET'))) {
      throw refusal('METHOD_NOT_ALLOWED', 'This application may not use the method', {
        headers: { Allow: Array.from(row.methods).join(', ') },
      });
    }
    withGroup(exchange, row.handler, (group) => {
      if (group === undefined)
        throw refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(`the row's handler is ${row.handler}`) });
      dispatcher.dispatch(exchange, group, exchange.page);
    });
  }

  /** In the same tick for a group that is loaded, later for a file that has to be imported first. */
  function withGroup(exchange: Exchange, page: string, serve: (group: Group | undefined) => void): void {
    const group = groups.find(page);
    if (group instanceof Promise) group.then(serve).catch((error) => respond.fail(exchange, error));
    else serve(group);
  }
}

function invalidCredential(reason: string): Error {
  return refusal('INVALID_CREDENTIAL', undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    cause: new Error(reason),
  });
}

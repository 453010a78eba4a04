// The gateway: the reference's seven steps, in its order (reference 1).

import { type ErrorCode, refusal } from '../base/errors.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import type { Admission } from './admission.ts';
import type { Responder } from './answer/response.ts';
import { type CallerRow, checkGroup, checkVerb, invalidCredential } from './credential-rights.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Exchange } from './exchange.ts';
import type { RouteMatch } from './router.ts';

export type Caller =
  /** `expiresAt` is in Unix milliseconds. Undefined: the credential never expires. */
  | { readonly kind: 'row'; readonly row: CallerRow; readonly expiresAt?: number }
  | { readonly kind: 'foreign' }
  /** `id`: of the row, where the token told it. */
  | { readonly kind: 'refused'; readonly reason: string; readonly id?: string };

export interface CallerTable {
  /** A promise only where the table has to be looked at first. Neither throws nor rejects. */
  identify(authorization: string): Caller | Promise<Caller>;
  /** Returns the current table, another object after each change. Undefined: the table never changes. */
  table?(): unknown;
}

export interface GatewayParts {
  readonly groups: Pick<Groups, 'find'>;
  readonly credentials: CallerTable;
  readonly admission: Admission;
  readonly dispatcher: Dispatcher;
  readonly respond: Responder;
}

export type Gateway = (exchange: Exchange, match: RouteMatch) => void;

export function createGateway({ groups, credentials, admission, dispatcher, respond }: GatewayParts): Gateway {
  return function index(exchange, match) {
    const { authorization } = exchange.head;
    // 1. Preflight: no body, no table, no file.
    if (exchange.verb === 'OPTIONS' && authorization === undefined) return respond.preflight(exchange);
    // 2. Response headers: response.ts gives them to every answer.
    // 3. Page resolution.
    exchange.page = match.page;
    exchange.slugs = match.slugs;
    // 4. SDK mode.
    if (authorization === undefined) {
      admission.caller(exchange);
      return delegate(exchange, 'GROUP_NOT_FOUND');
    }
    const caller = credentials.identify(authorization);
    if (!(caller instanceof Promise)) return serveCaller(exchange, caller);
    caller.then((found) => serveCaller(exchange, found)).catch((error) => respond.fail(exchange, error));
    // 7. Exception: whatever is thrown above reaches respond.fail, here or in app.ts.
  };

  function serveCaller(exchange: Exchange, caller: Caller): void {
    const row = admit(exchange, caller, admission);
    if (row === undefined) delegate(exchange, 'DELEGATED_GROUP_NOT_FOUND');
    else serveApplication(exchange, row);
  }

  /** 5. Delegation, 6. absent group. */
  function delegate(exchange: Exchange, ifAbsent: ErrorCode): void {
    withGroup(exchange, exchange.page, (group) => {
      if (group === undefined) throw refusal(ifAbsent);
      dispatcher.dispatch(exchange, group);
    });
  }

  function serveApplication(exchange: Exchange, row: CallerRow): void {
    const { handler } = row;
    checkVerb(row, exchange.verb);
    if (handler === undefined) {
      checkGroup(row, exchange.page);
      return delegate(exchange, 'GROUP_NOT_FOUND');
    }
    // The row's group serves the request, never the group in the URL; there the first segment may name the operation.
    withGroup(exchange, handler, (group) => {
      if (group === undefined) {
        throw refusal('DELEGATED_GROUP_NOT_FOUND', undefined, {
          cause: new Error(
            `there is no ${handler}Controller in the folder, and the calls of a credential without groups go there`,
          ),
        });
      }
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

/**
 * From here on the request is the application's, and the log names its credential. Undefined: a header of somebody
 * else.
 * @throws HttpError INVALID_CREDENTIAL, RATE_LIMITED
 */
export function admit(exchange: Exchange, caller: Caller, admission: Admission): CallerRow | undefined {
  if (caller.kind === 'row') {
    exchange.caller = caller.row;
    exchange.credential = caller.row.application.id;
  } else if (caller.kind === 'refused') exchange.credential = caller.id ?? '';
  // Whoever tries out credentials is held by the limit of the address.
  admission.caller(exchange);
  if (caller.kind === 'refused') throw invalidCredential(caller.reason);
  return exchange.caller;
}

// Creates the params of an operation for a test (`gatefold/testing`). This file must not load the server.
import type { ControllerParams } from '../controller.ts';
import { NO_TRACE } from './trace.ts';

/** The enumerable fields of the params. Only these fields are sent when an operation returns its params. */
const ENUMERABLE = new Set(['page', 'method', 'verb', 'slugs', 'query', 'requestId', 'application']);

/**
 * Creates the second argument of an operation, for a test that calls the operation as a function:
 * `new BookController().index({}, createParams())`.
 *
 * @param given the fields to set; all others have the values of a request `GET /api/test`
 */
export function createParams<
  Path extends object = Readonly<Record<string, string>>,
  Query extends object = Record<string, string | string[]>,
  User = undefined,
>(given: GivenParams<Path, Query, User> = {}): CreatedParams<Path, Query, User> {
  const defaults = {
    page: 'test',
    method: 'index',
    verb: 'GET',
    slugs: [],
    query: {},
    requestId: 'test',
    path: {},
    headers: {},
    base: '/api',
    bytes: new Uint8Array(),
    log: { info() {}, warn() {}, error() {} },
    trace: NO_TRACE,
    address: '127.0.0.1',
    waitUntil() {},
    lastEventId: undefined,
    cookies: {},
    setHeader() {},
    appendHeader() {},
    setCookie() {},
    user: undefined,
    request: {},
    signal: new AbortController().signal,
    toRequest: () => new Request('http://127.0.0.1/api/test'),
  };
  const fields = Object.entries({ ...defaults, ...given }).map(([name, value]) => [
    name,
    { value, enumerable: ENUMERABLE.has(name) },
  ]);
  return Object.defineProperties({}, Object.fromEntries(fields)) as CreatedParams<Path, Query, User>;
}

/** Some fields of the params, with a path, a query and a user of the operation's types. */
export interface GivenParams<Path, Query, User = undefined>
  extends Partial<Omit<ControllerParams, 'path' | 'query' | 'user'>> {
  readonly path?: Path;
  readonly query?: Query;
  readonly user?: User;
}

/** The params of an operation. Without a user, the params fit an operation that anyone may call. */
export type CreatedParams<Path, Query, User> = ControllerParams<{ path: Path & object; query: Query & object }> & {
  // Without NoInfer, TypeScript infers the type of the user from the operation, and a missing user is no error.
  readonly user: NoInfer<User>;
};

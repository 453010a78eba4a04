// Compiled, never run: the types of a service file and of `access`. `npm run typecheck` fails when a line that should
// be refused compiles, and when any other line does not.
import {
  type AccessParamsOf,
  type ControllerParams,
  defineService,
  ErrorReply,
  HttpError,
  type LimitParams,
  type Next,
  type Operations,
  type Refusal,
  Reply,
  type ReplyHeaders,
  type ServiceOptions,
} from '../../../src/api/controller.ts';

interface User {
  readonly id: number;
  readonly role: 'admin' | 'reader';
}
interface MyError {
  readonly errors: { readonly body: readonly string[] };
}
declare function findUser(token: string | undefined): Promise<User | undefined>;

export const good = [
  defineService({}),
  defineService<User>({
    strict: true,
    access: ['user', ({ user }) => user?.role === 'admin', { scope: 'notes' }],
    authenticate: ({ authorization, cookies }) => findUser(authorization ?? cookies.session),
    formatError: ({ message, errors, cause }): MyError => ({
      errors: { body: errors?.map(({ pointer }) => pointer) ?? [message, String(cause)] },
    }),
    cors: { origins: ['https://app.example.com'], credentials: true },
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer' },
      session: { type: 'apiKey', in: 'cookie', name: 's' },
    },
    keyHeader: 'X-Api-Key',
    headers: { 'Strict-Transport-Security': 'max-age=1' },
    unchecked: 'refuse',
    close: async () => {},
  }),
  defineService<User>({
    authenticate: ({ setCookie, setHeader, appendHeader }) => {
      setCookie('session', 'x', { maxAge: 60, sameSite: 'Strict' });
      setHeader('X-Total', 7);
      appendHeader('Link', '</>');
      return null;
    },
    around: async (next, { user, log }) => {
      log.info(String(user?.role));
      return next();
    },
  }),
  defineService({ around: (next) => next() }),
  defineService({
    cors: {
      origins: (origin, { headers }) => origin === `https://${headers.host}`,
      methods: ['GET', 'PATCH'],
      preflightStatus: 204,
    },
  }),
  defineService<User>({ formatError: ({ user, request }) => ({ role: user?.role, by: request?.headers.accept }) }),
  defineService<User>({ authenticate: () => null, access: async ({ user }) => user !== undefined }),
  defineService({
    formatError: ({ status }: Refusal) => new ErrorReply(status, 'text', { 'Content-Type': 'text/plain' }),
  }),
  defineService({
    formatError: ({ status }: Refusal) => new ErrorReply(status, 'text', { 'Set-Cookie': ['a=1', 'b=2'] }),
  }),
];

/** Headers have one type in every answer. */
export const headersOfAnswers = (headers: ReplyHeaders) => [
  new Reply(200, {}, headers),
  new ErrorReply(400, {}, headers),
  new HttpError(400, 'X', 'm', { headers }),
];

export const bad = [
  // @ts-expect-error no such property
  defineService({ strikt: true }),
  // @ts-expect-error the user has no role
  defineService<User>({ authenticate: () => ({ id: 1 }) }),
  // @ts-expect-error an id is a text or a number
  defineService<{ id: boolean }>({}),
  // @ts-expect-error a user may be absent
  defineService<User>({ access: ({ user }) => user.role === 'admin' }),
  // @ts-expect-error a verdict is true or false
  defineService<User>({ access: ({ user }) => user?.role }),
  // @ts-expect-error no such word
  defineService({ access: 'users' }),
  // @ts-expect-error the user may be absent
  defineService<User>({ around: (next, { user }) => [user.role, next] }),
  // @ts-expect-error next takes no arguments
  defineService({ around: (next) => next({ other: 'data' }) }),
  // @ts-expect-error around is a function
  defineService({ around: [(next: () => unknown) => next()] }),
  // @ts-expect-error no such option
  defineService({ authenticate: ({ setCookie }) => setCookie('a', '1', { httponly: true }) }),
  // @ts-expect-error a cookie is a text
  defineService({ authenticate: ({ setCookie }) => setCookie('a', 1) }),
  // @ts-expect-error formatError is synchronous
  defineService({ formatError: async (): Promise<MyError> => ({ errors: { body: [] } }) }),
  // @ts-expect-error a body is needed
  defineService({ formatError: () => undefined }),
  // @ts-expect-error a scheme in a header has a name
  defineService({ securitySchemes: { token: { type: 'apiKey', in: 'header' } } }),
  // @ts-expect-error a function of origins is synchronous
  defineService({ cors: { origins: async () => true } }),
  // @ts-expect-error no such method
  defineService({ cors: { methods: ['get'] } }),
  // @ts-expect-error no such status
  defineService({ cors: { preflightStatus: 201 } }),
  // @ts-expect-error an origin is a list or '*'
  defineService({ cors: { origins: 'https://app.example.com' } }),
];

/** The options without their type argument accept any user. */
export const options: ServiceOptions = { authenticate: () => ({ id: 'a', name: 'A' }) };

export const readers = [
  // @ts-expect-error the next function in access gets the same query
  ({ query }: AccessParamsOf<User>) => delete query.page,
  // @ts-expect-error the query is for reading
  ({ query }: LimitParams) => delete query.page,
];

const isAdmin = ({ user }: AccessParamsOf<User>): boolean => user?.role === 'admin';

export class NoteController {
  static operations: Operations<NoteController> = {
    '*': { access: 'user' },
    POST: { access: ['user', isAdmin] },
    'GET {id}': { access: ({ user, path }) => user !== undefined && path.id !== '' },
    'GET either': { access: 'caller' },
    'DELETE {id}': { access: [isAdmin, { scope: 'notes:delete' }] },
    'GET limited': {
      limit: { rate: '20/15m', by: ({ query, user }) => `${query.email} ${(user as User).id}`, count: 'failures' },
    },
    'GET async': { access: async ({ address }) => address === '127.0.0.1' },
  };
  POST(data: { text: string }, { user }: ControllerParams<{ user: User }>): string {
    return `${data.text} ${user.role}`;
  }
  'GET {id}'(_: unknown, { user, path }: ControllerParams<{ user?: User; path: { id: number } }>): string {
    // @ts-expect-error the user may be absent
    user.role;
    return `${user?.role} ${path.id}`;
  }
  'GET either'(_: unknown, { user }: ControllerParams): void {
    // @ts-expect-error without its type a user is unknown
    user.role;
  }
  'DELETE {id}'(): void {}
  'GET async'(): void {}
  'GET limited'(): void {}
}

export class Guarded {
  async _around(next: Next<{ rows: number }>, _data: unknown, { setHeader }: ControllerParams): Promise<object> {
    setHeader('X-Rows', (await next()).rows);
    return next();
  }
}

export class WrongController {
  static operations: Operations<WrongController> = {
    // @ts-expect-error no such word
    index: { access: 'admin' },
    // @ts-expect-error a function in access returns a boolean
    created: { access: () => 'yes' },
    // @ts-expect-error by is synchronous
    red: { limit: { rate: '1/s', by: async () => 'a' } },
    // @ts-expect-error no such count
    patch: { limit: { rate: '1/s', count: 'all' } },
    // @ts-expect-error a list of rules has no numbers
    deleted: { access: ['user', 7] },
  };
  index(): void {}
  created(): void {}
  red(): void {}
  patch(): void {}
  deleted(): void {}
}

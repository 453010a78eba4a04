// `defineService`, `ErrorReply` and the types of the service file: `export default defineService({ … })` in
// `controllers/service.ts`. callers/access/definition.ts checks the values when the service file loads.
import type { IncomingMessage } from 'node:http';
import type { ErrorDetail } from '../../base/errors.ts';
import { isErrorStatus, isPlainObject, showStatus } from '../../base/values.ts';
import type { ControllerParams, OperationLog } from '../controller.ts';
import type { HeaderSetters } from './answer-headers.ts';
import type { Mount } from './mount.ts';
import type { Access } from './operations.ts';
import type { ReplyHeaders } from './reply.ts';

/**
 * Calls the operation from `_around` or from `around` of the service file. It can be called again, unless the data of
 * the operation is a stream. After the answer, the promise rejects.
 */
export type Next<Result = unknown> = () => Promise<Result>;

/** A signed-in user of the service. */
export interface ServiceUser {
  /** A text that is not empty, or a safe integer. */
  readonly id: string | number;
}

/** A request before its body has arrived: the argument of `authenticate` and of the functions in `access`. */
export interface AccessParams
  extends HeaderSetters,
    Pick<ControllerParams, 'application' | 'cookies' | 'address' | 'log' | 'signal'>,
    Pick<ControllerParams, 'path' | 'method' | 'verb'> {
  /** The header `Authorization`; undefined without the header, and when it has a credential of Gatefold. */
  readonly authorization: string | undefined;
  readonly request: IncomingMessage;
  /** The values of the query string, as texts. A repeated key has a list as its value. */
  readonly query: Readonly<Record<string, string | string[]>>;
  /** The name of the group, such as `order`, also for a URL that spells it `Order`. */
  readonly page: string;
}

/** The argument of a function in `access`: a request, and its user if there is one. */
export interface AccessParamsOf<User> extends AccessParams {
  readonly user?: User;
}

/** An answer with a status of 400 or more, before its body is made. */
export interface Refusal<User = unknown> {
  readonly status: number;
  /** A code of docs/ERRORS.md, or the code of the `HttpError` that was thrown. */
  readonly code: string;
  readonly message: string;
  /** One entry for each mistake of the request data. */
  readonly errors?: readonly ErrorDetail[];
  readonly requestId: string;
  /** The group as the URL names it. */
  readonly page?: string;
  /** The name of the operation. */
  readonly method?: string;
  /** The path of the URL as the client sent it, without the query. */
  readonly path?: string;
  /** The HTTP method. */
  readonly verb?: string;
  /** The value that was thrown. The field is not enumerable, so that `{ ...refusal }` does not send it. */
  readonly cause?: unknown;
  /** The request with its headers; undefined for bytes that are no request. Not enumerable, like `cause`. */
  readonly request?: IncomingMessage;
  /** The user whom `authenticate` has found; undefined when there is none. Not enumerable, like `cause`. */
  readonly user?: User;
}

export interface CorsOptions {
  /**
   * Origins such as `https://app.example.com`, or `https://*.example.com` for each subdomain. Default: `'*'`. Pages of
   * listed origins may change data with the cookies of a user. With `'*'`, no page of another origin may. A function is
   * asked for each answer. It must be synchronous, and a throw means no.
   */
  readonly origins?: '*' | readonly string[] | ((origin: string, request: IncomingMessage) => boolean);
  /** Whether browsers may send cookies from those origins. `true` needs a list of origins. */
  readonly credentials?: boolean;
  /** The methods that a page may use. Default: all that the service answers. */
  readonly methods?: readonly ('GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS')[];
  /** The status of the answer to a preflight. Default: 200. */
  readonly preflightStatus?: 200 | 204;
  /** Seconds for which a browser may cache the answer to a preflight. Default: 86400. */
  readonly maxAge?: number;
  /** The request headers that a page may send. Default: the headers that the preflight asks for. */
  readonly allowHeaders?: readonly string[];
  /** The headers of the answer that a page may read. Default: every header of the answer. */
  readonly exposeHeaders?: readonly string[];
}

/** A Security Scheme Object of OpenAPI 3.1. */
export type SecurityScheme = { readonly description?: string } & (
  | { readonly type: 'http'; readonly scheme: string; readonly bearerFormat?: string }
  | { readonly type: 'apiKey'; readonly in: 'header' | 'query' | 'cookie'; readonly name: string }
  | { readonly type: 'oauth2'; readonly flows: object }
  | { readonly type: 'openIdConnect'; readonly openIdConnectUrl: string }
);

type MaybePromise<T> = T | Promise<T>;

export interface ServiceOptions<User extends ServiceUser = ServiceUser> {
  /**
   * Whether every group is strict. In a strict group, only verb operations such as `index` answer the bare URL
   * (`/api/user`). Each other operation has its own URL, which answers only POST. Default: `false`.
   */
  readonly strict?: boolean;
  /** Whether groups in folders serve, too: `controllers/v2/OrderController.ts` at `/api/v2/order`. Default: `false`. */
  readonly folders?: boolean;
  /**
   * Finds the user of a request. `undefined` and `null` mean that nobody is signed in. If the function throws anything
   * but an `HttpError`, the answer is a 500, because the caller must not count as anonymous.
   */
  readonly authenticate?: (params: AccessParams) => MaybePromise<User | undefined | null>;
  /** The access of each operation that has no `access` of its own. Default: `'anyone'`. */
  readonly access?: Access<User>;
  /**
   * Surrounds every operation: `await next()` returns the result of the operation, or throws what it threw. Runs after
   * every `_before`. Returns the result to send; when it returns nothing, the result of `next()` is sent.
   */
  readonly around?: (next: Next, params: ControllerParams<{ readonly user?: User }>) => unknown;
  /** Makes the body of each answer with a status of 400 or more. The function must be synchronous. */
  readonly formatError?: (refusal: Refusal<User>) => (object & { readonly then?: never }) | string | ErrorReply;
  readonly cors?: CorsOptions;
  /**
   * Answers every request that no controller and no route of the service takes, inside and outside of the base path. An
   * application that is being replaced serves on this way.
   */
  readonly fallback?: Mount;
  /** Ways in which users authenticate, for the OpenAPI document and for `WWW-Authenticate`. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  /** A header that may have a credential of Gatefold instead of `Authorization`, such as `X-Api-Key`. */
  readonly keyHeader?: string;
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Rules for the files of PUBLIC_DIR. `headers` returns headers of the file with a path below the folder, such as
   * `{ 'Content-Security-Policy': "default-src 'self'" }`, or `Cache-Control` in the place of Gatefold's.
   */
  readonly public?: { readonly headers: (path: string) => Readonly<Record<string, string | undefined>> };
  /** With `'refuse'`, a file does not load if it has an operation whose request data no type and no schema checks. */
  readonly unchecked?: 'refuse';
  /** With `'declared'`, results are sent without the fields that their types do not declare. */
  readonly results?: 'declared';
  /** Runs when a worker ends, after its controllers have been disposed of. The function may take 5 s at most. */
  readonly close?: () => unknown;
  /**
   * Runs once in each worker when its code begins to serve, and again after a throw. A function that it returns runs
   * before `close`.
   */
  readonly start?: (params: TaskParams) => unknown;
  /** Work without a request, by name. Each task runs in one worker of all machines (docs/TASKS.md). */
  readonly background?: Readonly<Record<string, BackgroundTask>>;
}

export interface TaskParams {
  /** Aborted when the worker ends, and when this machine may no longer run the task. */
  readonly signal: AbortSignal;
  readonly log: OperationLog;
}

export interface TimedTask {
  /** A throw means that the run has failed, or that it stopped because of `signal`: then it is made again. */
  readonly run: (
    params: TaskParams & { /** The time of this run, the same if it is repeated. */ dueAt: Date },
  ) => unknown;
  /** With `false`, a time that passed while nothing ran is skipped. Default: it is made up for once. */
  readonly catchUp?: boolean;
}

/** A function runs all the time. `every` is a time such as `5m`, and `at` a time of the day such as `03:00`. */
export type BackgroundTask =
  | ((params: TaskParams) => unknown)
  | (TimedTask & { readonly every: string })
  | (TimedTask & { readonly at: string; readonly timeZone?: string });

// Global symbols mark these objects: `instanceof` fails when the service file imports another copy of this package.
const SERVICE = Symbol.for('gatefold.Service');
const ERROR_REPLY = Symbol.for('gatefold.ErrorReply');

/** The default export of `controllers/service.ts`. */
export interface Service<User extends ServiceUser = ServiceUser> {
  readonly options: ServiceOptions<User>;
}

/** Marks the options of a service: `export default defineService({ strict: true })` in `controllers/service.ts`. */
export function defineService<User extends ServiceUser = ServiceUser>(options: ServiceOptions<User>): Service<User> {
  return Object.freeze({ [SERVICE]: true, options });
}

/** A copy such as `{ ...base, access: 'user' }` is refused. Its further properties would have no effect. */
export function isService(value: unknown): value is Service {
  return Object(value)[SERVICE] === true && Object.keys(Object(value)).join() === 'options';
}

/** An answer of `formatError` that sets its own status, and headers such as `Content-Type`. */
export class ErrorReply<Body = unknown> {
  readonly status: number;
  readonly body: Body;
  readonly headers: ReplyHeaders | undefined;

  /**
   * @param status a whole number from 400 to 599
   * @param body an object, a list or a text
   * @throws TypeError for another status, and for headers that are no plain object
   */
  constructor(status: number, body: Body, headers?: ReplyHeaders) {
    if (!isErrorStatus(status))
      throw new TypeError(`ErrorReply: the status is ${showStatus(status)}, it must be a whole number from 400 to 599`);
    if (headers !== undefined && !isPlainObject(headers))
      throw new TypeError('ErrorReply: headers must be a plain object');
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

Object.defineProperty(ErrorReply.prototype, ERROR_REPLY, { value: true });

export function isErrorReply(value: unknown): value is ErrorReply {
  return Object(value)[ERROR_REPLY] === true;
}

// The service file: `export default defineService({ … })` in `controllers/service.ts`. This file holds its types and
// two makers. service/definition.ts checks the values when the file loads.
import type { IncomingMessage } from 'node:http';
import type { ErrorDetail } from '../base/errors.ts';
import type { CallingApplication, OperationLog } from '../controller.ts';
import type { Access } from './operations.ts';

/** A signed-in user of the service. The id is a text that is not empty, or a safe integer. */
export interface ServiceUser {
  readonly id: string | number;
}

/** A request before its body has arrived: the argument of `authenticate` and of the functions in `access`. */
export interface AccessParams {
  /** The header `Authorization`, unless it holds a credential of Gatefold: that one never reaches a parser of yours. */
  readonly authorization: string | undefined;
  /** The application whose credential the request has. */
  readonly application?: CallingApplication;
  readonly request: IncomingMessage;
  /** The cookies of the request, by name, decoded. The object has no prototype. */
  readonly cookies: Readonly<Record<string, string>>;
  /** The client's address; behind `TRUSTED_PROXIES` the address that those report. */
  readonly address: string;
  readonly log: OperationLog;
  /** Aborted when the client is gone or the operation is out of time. */
  readonly signal: AbortSignal;
  /** The segments that the route names, as texts. */
  readonly path: Readonly<Record<string, string>>;
  /** The query string, as texts; a repeated key is a list. */
  readonly query: Readonly<Record<string, string | string[]>>;
  /** The group as the URL names it, such as `order`. */
  readonly page: string;
  /** The name of the operation, such as `index` or `GET {id}`. */
  readonly method: string;
  /** The HTTP method in upper case. */
  readonly verb: string;
}

/** The argument of a function in `access`: the request, and its user where it has one. */
export interface AccessParamsOf<User> extends AccessParams {
  readonly user?: User;
}

/** An answer of 400 or more, before it is written. `cause` is the thrown value, and not enumerable. */
export interface Refusal {
  readonly status: number;
  /** A code of docs/ERRORS.md, or the code of the `HttpError` that was thrown. */
  readonly code: string;
  readonly message: string;
  /** One entry for each mistake of the request data. */
  readonly errors?: readonly ErrorDetail[];
  readonly requestId: string;
  readonly page?: string;
  readonly method?: string;
  /** The path of the URL as it came, without the query. */
  readonly path?: string;
  readonly verb?: string;
  readonly cause?: unknown;
}

export interface CorsOptions {
  /** Origins such as `https://app.example.com`, or `https://*.example.com` for each subdomain. Default: `'*'`. */
  readonly origins?: '*' | readonly string[];
  /** Lets browsers send cookies from those origins. Needs a list of origins. */
  readonly credentials?: boolean;
  /** Seconds that a browser keeps the answer to a preflight. Default: 86400. */
  readonly maxAge?: number;
  /** Default: the headers that the preflight asks for. */
  readonly allowHeaders?: readonly string[];
  /** Default: every header of the answer. */
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
  /** `true`: every group takes its verbs at the bare group, and other operations by POST alone. Default: `false`. */
  readonly strict?: boolean;
  /** `true`: `controllers/v2/OrderController.ts` serves `/api/v2/order`. Default: `false`. */
  readonly folders?: boolean;
  /**
   * Finds the user of a request. `undefined` and `null` mean nobody. A throw other than an `HttpError` is a 500, and
   * never an anonymous caller.
   */
  readonly authenticate?: (params: AccessParams) => MaybePromise<User | undefined | null>;
  /** The access of each operation that has no `access` of its own. Default: `'anyone'`. */
  readonly access?: Access<User>;
  /** Makes the body of each answer of 400 or more. Synchronous. */
  readonly formatError?: (refusal: Refusal) => (object & { readonly then?: never }) | string | ErrorReply;
  readonly cors?: CorsOptions;
  /** Ways in which users authenticate, for the OpenAPI document and for `WWW-Authenticate`. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  /** A header that may hold a credential of Gatefold in the place of `Authorization`, such as `X-Api-Key`. */
  readonly keyHeader?: string;
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `'refuse'`: an operation whose request data no type checks refuses its file. */
  readonly unchecked?: 'refuse';
  /** Runs when a worker ends, after the controllers' own disposal; 5 s at most. */
  readonly close?: () => unknown;
}

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

export function isService(value: unknown): value is Service {
  return typeof value === 'object' && value !== null && (value as { [SERVICE]?: unknown })[SERVICE] === true;
}

/** An answer of `formatError` with a status, and headers such as `Content-Type`, of its own. */
export class ErrorReply<Body = unknown> {
  readonly status: number;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>> | undefined;

  /**
   * @param status 400 to 599
   * @param body an object, a list or a text
   * @throws TypeError when the status is another number
   */
  constructor(status: number, body: Body, headers?: Readonly<Record<string, string>>) {
    if (!Number.isInteger(status) || status < 400 || status > 599)
      throw new TypeError(`ErrorReply: the status is ${status}, it must be a whole number from 400 to 599`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

// A global symbol, not `instanceof`: the service file may import another copy of this package than the one that serves.
Object.defineProperty(ErrorReply.prototype, ERROR_REPLY, { value: true });

export function isErrorReply(value: unknown): value is ErrorReply {
  return typeof value === 'object' && value !== null && (value as { [ERROR_REPLY]?: unknown })[ERROR_REPLY] === true;
}

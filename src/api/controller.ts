// The entry `gatefold` for the authors of controllers: `import { HttpError, type ControllerParams } from 'gatefold'`.
// Its values are what operations throw and return, and `defineService`. The entry loads nothing of the server.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { HeaderSetters } from './controller/answer-headers.ts';
import type { Trace } from './controller/trace.ts';

export { type ErrorDetail, HttpError, type HttpErrorOptions } from '../base/errors.ts';
export type { CookieOptions, HeaderSetters } from './controller/answer-headers.ts';
export * from './controller/channel.ts';
export { type EventStream, type EventStreamOptions, eventStream, type ServerEvent } from './controller/event-stream.ts';
export { type FileReplyOptions, fileReply } from './controller/file-reply.ts';
export { type IfMatchOptions, ifMatch } from './controller/if-match.ts';
export type {
  Mount,
  MountSettings,
  NodeHandler,
  NodeMountSettings,
  UpgradeHandler,
  WebHandler,
} from './controller/mount.ts';
export { mount } from './controller/mount.ts';
export { toNodeStream } from './controller/node-stream.ts';
export type * from './controller/operations.ts';
export { Reply, type ReplyHeaders } from './controller/reply.ts';
export {
  type AccessParams,
  type AccessParamsOf,
  type BackgroundTask,
  type CorsOptions,
  defineService,
  ErrorReply,
  type Next,
  type Refusal,
  type SecurityScheme,
  type Service,
  type ServiceOptions,
  type ServiceUser,
  type TaskParams,
  type TimedTask,
} from './controller/service.ts';
export type { BackgroundEvent, RequestEvent, SpanAttribute, SpanOptions, Trace } from './controller/trace.ts';

/** Writes to the service's log. `fields` must be JSON-safe, and must not contain secrets. */
export interface OperationLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** The application that a request's credential belongs to. Its fields contain no secret. */
export interface CallingApplication {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  /** The identity that registered the application: OpenID Connect `iss` and `sub`. */
  readonly owner?: { readonly issuer: string; readonly subject: string };
  /** The scopes in the application's row of the credentials table. */
  readonly scopes?: readonly string[];
}

/** The types of a request's path, query, headers and user: `ControllerParams<{ path: { id: string }; user: User }>`. */
export interface ParamsShape {
  readonly path?: object;
  readonly query?: object;
  /** The names are in lower case: `{ 'idempotency-key'?: string }`. */
  readonly headers?: object;
  /** The user whom `authenticate` of the service file has found: `user?` where `access` has no `'user'`. */
  readonly user?: object;
}

/**
 * The second argument of every operation. The fields before `path` are enumerable and JSON-safe. `path` and the fields
 * after it are not enumerable, so a result that contains the params does not send them.
 */
export interface ControllerParams<Shape extends ParamsShape = object> extends HeaderSetters {
  /** The handler group as the URL names it: `user` for `/api/user`. */
  readonly page: string;
  /** The operation that was called: `index`, `created`, `GET {id}`, … */
  readonly method: string;
  /** The HTTP method, upper case. */
  readonly verb: string;
  /** All path segments after the group, percent-decoded. */
  readonly slugs: string[];
  /** The parameters of the query string. The value of a repeated key is an array. The object has no prototype. */
  readonly query: Shape extends { readonly query: infer Query } ? Query : Record<string, string | string[]>;
  /** The request id: the client's `X-Request-Id` when it is well formed, else a new one. */
  readonly requestId: string;
  /** The calling application. `application` is undefined when the request has no registered credential. */
  readonly application?: CallingApplication;
  /** The captured segments of the route, percent-decoded: `{ id: '7' }` for `'GET {id}'` and `/api/order/7`. */
  readonly path: Shape extends { readonly path: infer Path } ? Path : Readonly<Record<string, string>>;
  /** The headers that the type declares, checked and converted; without such a type, all of `request.headers`. */
  readonly headers: Shape extends { readonly headers: infer Headers } ? Headers : IncomingHttpHeaders;
  /** The base path of all URLs, to build `Location`: `/api`, for example. `base` is empty when `BASE_PATH` is `/`. */
  readonly base: string;
  /** The bytes of the body, decompressed but not parsed, to verify a signature (HMAC). Empty without a body. */
  readonly bytes: Uint8Array;
  /** The service's log. Each line has the request id, the group and the operation. */
  readonly log: OperationLog;
  /** The trace of the request. Its method `span` records a part of the request. */
  readonly trace: Trace;
  /** The client's IP address. Behind `TRUSTED_PROXIES`, `address` is the address that these proxies report. */
  readonly address: string;
  /**
   * Registers work that continues after the answer. A worker that ends waits for the work, up to `DRAIN_TIMEOUT`. The
   * service logs an error when the work rejects.
   */
  readonly waitUntil: (work: PromiseLike<unknown>) => void;
  /** The `id` of the last event that a client received before it reconnected to an event stream. */
  readonly lastEventId: string | undefined;
  /** The cookies of the request, by name, decoded. The object has no prototype. */
  readonly cookies: Readonly<Record<string, string>>;
  /** The user whom `authenticate` of the service file has found. `user` is undefined when there is no such user. */
  readonly user: Shape extends { readonly user: infer User }
    ? User
    : Shape extends { readonly user?: infer User }
      ? User | undefined
      : unknown;
  /** Node's own request object. Its body has already been read. */
  readonly request: IncomingMessage;
  /** Aborted when the client disconnects or the operation exceeds its time limit. */
  readonly signal: AbortSignal;
  /**
   * Creates the request as the web's own type. It has neither a key of Gatefold nor the headers of the connection. Its
   * body is as it was sent if the setting `body` is `'stream'`, and decompressed otherwise.
   */
  readonly toRequest: () => Request;
}

export type Params<Shape extends ParamsShape = object> = ControllerParams<Shape>;

// The types below are strings and numbers for TypeScript. The server also checks that a value has the named form.

/** A whole number, from -(2^53 - 1) to 2^53 - 1. */
export type Int = number;
export type Email = string;
/** A UUID (RFC 9562), in hexadecimal with hyphens. */
export type Uuid = string;
/** A date and time (RFC 3339): `2026-12-31T23:59:59Z`. A `Date` is sent in this form and arrives as a `Date`. */
export type DateTime = string;
/** A date without a time: `2026-12-31`. */
export type DateOnly = string;
export type Uri = string;

/** A form field or file of a request body; repeated keys become an array. */
export type FormValue = string | File | (string | File)[];

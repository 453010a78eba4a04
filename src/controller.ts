// What the author of a controller imports: `import { HttpError, type ControllerParams } from 'gatefold'`.
// Types, and what a controller throws and returns; nothing of the server.
import type { IncomingMessage } from 'node:http';

export { type ErrorDetail, HttpError, type HttpErrorOptions } from './base/errors.ts';
export { type EventStream, type EventStreamOptions, eventStream, type ServerEvent } from './controller/event-stream.ts';
export { type IfMatchOptions, ifMatch } from './controller/if-match.ts';
export type { Access, OperationName, OperationSettings, Operations, StandardSchema } from './controller/operations.ts';
export { Reply, type ReplyHeaders } from './controller/reply.ts';

/** @param fields JSON-safe facts. No secret belongs in a log. */
export interface OperationLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** The application that a request's credential belongs to. No secret is in it. */
export interface CallingApplication {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  /** The identity that registered it: OpenID Connect `iss` and `sub`. */
  readonly owner?: { readonly issuer: string; readonly subject: string };
  /** What it may do, as its row of the credentials table says. */
  readonly scopes?: readonly string[];
}

/** What is known of the parts of a request: `ControllerParams<{ path: { id: string } }>`. */
export interface ParamsShape {
  readonly path?: object;
  readonly query?: object;
}

/**
 * The controller params: the second argument of every operation. The enumerable fields are JSON-safe;
 * `path` and what follows it are not enumerable, so an echo of the params never carries them.
 */
export interface ControllerParams<Shape extends ParamsShape = object> {
  /** The handler group as the URL names it: `user` for `/api/user`. */
  readonly page: string;
  /** The operation that was called: `index`, `created`, `GET {id}`, … */
  readonly method: string;
  /** The HTTP method, upper case. */
  readonly verb: string;
  /** All path segments after the group, percent-decoded. */
  readonly slugs: string[];
  /** The query string; a repeated key is an array. Has no prototype. */
  readonly query: Shape extends { readonly query: infer Query } ? Query : Record<string, string | string[]>;
  /** The request id: the client's `X-Request-Id` when it is well formed, else a new one. */
  readonly requestId: string;
  /** Of a request with a registered credential alone. */
  readonly application?: CallingApplication;
  /** What the segments named in its route are, decoded: `{ id: '7' }` for `'GET {id}'` and `/api/order/7`. */
  readonly path: Shape extends { readonly path: infer Path } ? Path : Readonly<Record<string, string>>;
  /**
   * The body as it arrived, after `Content-Encoding` and before any parsing: what an HMAC is made over. Empty without a
   * body.
   */
  readonly bytes: Uint8Array;
  /** Lines of the service's own log, with the request id, the group and the operation. */
  readonly log: OperationLog;
  /** The client's address; behind `TRUSTED_PROXIES` what those say. */
  readonly address: string;
  /** Work after the answer: a worker that ends waits for it, up to `DRAIN_TIMEOUT`; its rejection is logged. */
  readonly waitUntil: (work: PromiseLike<unknown>) => void;
  /** Of a client that reconnects to an event stream: the `id` of the last event it has seen. */
  readonly lastEventId: string | undefined;
  /** The request as Node has it. Its body has been read already. */
  readonly request: IncomingMessage;
  /** Aborted when the client is gone or the operation is out of time. */
  readonly signal: AbortSignal;
}

export type Params<Shape extends ParamsShape = object> = ControllerParams<Shape>;

// Plain types with a constraint, for the types of operations: TypeScript sees a string or a number, the check sees
// more.

/** A whole number, from -(2^53 - 1) to 2^53 - 1. */
export type Int = number;
export type Email = string;
/** RFC 9562, in hexadecimal with hyphens. */
export type Uuid = string;
/** RFC 3339: `2026-12-31T23:59:59Z`. A `Date` is sent the same way and arrives as a `Date`. */
export type DateTime = string;
/** `2026-12-31` */
export type DateOnly = string;
export type Uri = string;

/** A form field or file of a request body; repeated keys become an array. */
export type FormValue = string | File | (string | File)[];

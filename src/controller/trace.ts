// The types of traces: `params.trace`, and the messages of the diagnostics channels that tools can subscribe to.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The value of an attribute of a span. */
export type SpanAttribute = string | number | boolean | readonly (string | number | boolean)[];

export interface SpanOptions {
  /**
   * The kind of the span. `'client'` means that the work waits for another service, such as a database. Default:
   * `'internal'`.
   */
  readonly kind?: 'internal' | 'client' | 'producer';
  /**
   * The attributes of the span, such as `{ 'db.system.name': 'postgresql' }`. Attributes leave this service, so they
   * must not contain secrets.
   */
  readonly attributes?: Readonly<Record<string, SpanAttribute>>;
}

/** The trace of a request. Without tracing and without a header `traceparent`, its fields are undefined. */
export interface Trace {
  /** The id of the trace: 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  /** The id of the span that this service has begun, or else of the caller's span: 16 hexadecimal digits. */
  readonly spanId: string | undefined;
  /** The value of the header `traceparent` for a request to another service, which then continues the trace. */
  readonly traceparent: string | undefined;
  /**
   * Runs `work` as a span of its own, and returns its result. The span ends when `work` ends, or when the promise that
   * `work` returns is settled. Without tracing, `span` only runs `work`.
   */
  span<T>(name: string, work: (trace: Trace) => T, options?: SpanOptions): T;
}

/** The trace of a request without tracing and without a header `traceparent`. */
export const NO_TRACE: Trace = {
  ...{ traceId: undefined, spanId: undefined, traceparent: undefined },
  span: (_name, work) => work(NO_TRACE),
};

/**
 * The message of the channels of `tracingChannel('gatefold:request')`, one object for each request. The channels have
 * these meanings:
 * - `start`: the head of the request has arrived.
 * - `end`: the synchronous steps of the request have run.
 * - `error`: the answer is a 5xx.
 * - `asyncStart`, `asyncEnd`: the last byte of the answer has been sent.
 */
export interface RequestEvent {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** The HTTP method. */
  readonly verb: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** The template of the path, such as `/api/order/{id}`; undefined until the operation is found. */
  readonly route: string | undefined;
  /** The group that the URL names; empty until the URL has been read. */
  readonly page: string;
  /** The name of the operation; empty until the operation is found. */
  readonly operation: string;
  /** The IP address of the client. Behind `TRUSTED_PROXIES`, this is the address that those proxies report. */
  readonly address: string;
  /** The name of the tool, when a client of the Model Context Protocol calls the operation as a tool. */
  readonly tool: string | undefined;
  /** The request that brought the call of a tool; undefined for any other request. */
  readonly parent: RequestEvent | undefined;
  /**
   * The status of the answer, or 0 until the answer has been sent. 499 means that the client left before the last byte
   * of the answer.
   */
  readonly status: number;
  /** The bytes of the body that were sent. */
  readonly bytes: number;
  /** The value that was thrown, when the answer is a 5xx. */
  readonly error: unknown;
  /**
   * The trace that the header `traceparent` names. When a subscriber replaces this trace, log lines have the ids of the
   * new one.
   */
  trace: Trace | undefined;
}

/** The message of `tracingChannel('gatefold:background')`, one object for each promise given to `params.waitUntil`. */
export interface BackgroundEvent {
  readonly request: RequestEvent;
  /** The reason why the promise was rejected. */
  error?: unknown;
}

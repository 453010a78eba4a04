// The types of traces: `params.trace`, and the messages of the channels that other tools may subscribe to.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The value of an attribute of a span. */
export type SpanAttribute = string | number | boolean | readonly (string | number | boolean)[];

export interface SpanOptions {
  /** `'client'`: the work waits for another service, such as a database. Default: `'internal'`. */
  readonly kind?: 'internal' | 'client' | 'producer';
  /** Such as `{ 'db.system.name': 'postgresql' }`. They leave this service, so they must not contain secrets. */
  readonly attributes?: Readonly<Record<string, SpanAttribute>>;
}

/** The trace of a request. Without tracing and without a header `traceparent` its fields are undefined. */
export interface Trace {
  /** 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  /** The span of this service, or else the caller's span: 16 hexadecimal digits. */
  readonly spanId: string | undefined;
  /** The header that continues the trace in another service. */
  readonly traceparent: string | undefined;
  /**
   * Runs `work` as a span of its own, and returns what it returns. The span ends when `work` does, or its promise.
   * Without tracing it only runs `work`.
   */
  span<T>(name: string, work: (trace: Trace) => T, options?: SpanOptions): T;
}

/** The trace of a request that nothing traces, and that brought none. */
export const NO_TRACE: Trace = {
  ...{ traceId: undefined, spanId: undefined, traceparent: undefined },
  span: (_name, work) => work(NO_TRACE),
};

/**
 * The message of the channels of `tracingChannel('gatefold:request')`, one object a request. `start`: the head has
 * arrived. `end`: the synchronous steps are over. `error`: the answer is a 5xx. `asyncStart`, `asyncEnd`: the last byte
 * of the answer is out.
 */
export interface RequestEvent {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** The HTTP method. */
  readonly verb: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** The template of the path: `/api/order/{id}`. Undefined until the operation is found. */
  readonly route: string | undefined;
  /** The group that the URL names; empty until the URL is read. */
  readonly page: string;
  /** Empty until it is found. */
  readonly operation: string;
  /** The IP address of the client, by `TRUSTED_PROXIES`. */
  readonly address: string;
  /** The tool of the Model Context Protocol that calls the operation, inside of the request `parent`. */
  readonly tool: string | undefined;
  readonly parent: RequestEvent | undefined;
  /** The status of the answer; 499: the client left before its last byte. 0 until the answer is out. */
  readonly status: number;
  /** The bytes of the body that were sent. */
  readonly bytes: number;
  /** The value that was thrown, where the answer is a 5xx. */
  readonly error: unknown;
  /** The trace of the header `traceparent`. A subscriber may replace it, and log lines then have its ids. */
  trace: Trace | undefined;
}

/** The message of `tracingChannel('gatefold:background')`, one object for each promise given to `params.waitUntil`. */
export interface BackgroundEvent {
  readonly request: RequestEvent;
  /** The reason of the rejection. */
  error?: unknown;
}

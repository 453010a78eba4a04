// The types of traces: `params.trace`, and the messages of the diagnostics channels to which tools can subscribe.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The value of an attribute of a span. */
export type SpanAttribute = string | number | boolean | readonly (string | number | boolean)[];

export interface SpanOptions {
  /** With `'client'`, the work waits for another service, and with `'producer'`, it does not. Default: `'internal'`. */
  readonly kind?: 'internal' | 'client' | 'producer';
  /** Attributes such as `{ 'db.system.name': 'postgresql' }`. They leave this service, so they must have no secrets. */
  readonly attributes?: Readonly<Record<string, SpanAttribute>>;
}

/** The trace of a request. When tracing is off and the request has no header `traceparent`, all ids are undefined. */
export interface Trace {
  /** The id of the trace: 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  /** The id of the span that this service has begun, or else of the caller's span: 16 hexadecimal digits. */
  readonly spanId: string | undefined;
  /** The value of the header `traceparent` for a request to another service. That service then continues the trace. */
  readonly traceparent: string | undefined;
  /**
   * Runs `work` as a span of its own, and returns the result of `work`. The span ends when `work` returns, or when the
   * promise that `work` returns is fulfilled or rejected. When tracing is off, `span` only runs `work`.
   */
  span<T>(name: string, work: (trace: Trace) => T, options?: SpanOptions): T;
}

/** The trace of a request when tracing is off and the request has no header `traceparent`. */
export const NO_TRACE: Trace = {
  ...{ traceId: undefined, spanId: undefined, traceparent: undefined },
  span: (_name, work) => work(NO_TRACE),
};

/**
 * The message of `tracingChannel('gatefold:request')`, one object for each request. The object is published:
 * - on `start` when the head of the request has arrived
 * - on `end` when the synchronous steps of the request have run
 * - on `error` when the answer is a 5xx
 * - on `asyncStart` and `asyncEnd` when the last byte of the answer has been sent, or the client has left
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
  /** For the call of a tool: the HTTP request that contained the call. For any other request: undefined. */
  readonly parent: RequestEvent | undefined;
  /** The status of the answer; 0 until it has been sent; 499 when the client left before its last byte. */
  readonly status: number;
  /** The number of bytes that were sent of the answer's body. */
  readonly bytes: number;
  /** The value that was thrown; undefined unless the answer is a 5xx. */
  readonly error: unknown;
  /** The trace that the header `traceparent` names. A subscriber may replace it: log lines then have the new ids. */
  trace: Trace | undefined;
}

/** The message of `tracingChannel('gatefold:background')`, one object for each promise given to `params.waitUntil`. */
export interface BackgroundEvent {
  readonly request: RequestEvent;
  /** The value with which the promise was rejected. */
  error?: unknown;
}

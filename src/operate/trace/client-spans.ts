// Makes spans for the requests that a controller sends with `fetch` or node:http while a sampled request is handled.
// Adds the headers that continue the trace, sampled or not, if the called host is allowed. The exporter works outside
// of incoming requests, so its own requests get neither headers nor spans.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Attributes } from './otlp.ts';
import { KNOWN_METHODS, type Span, type Tracer } from './span.ts';

export interface ClientSpanOptions {
  readonly tracer: Tracer;
  readonly allowsHost: (host: string) => boolean;
}

/** A request as the channels of undici, which `fetch` uses, publish it. */
interface UndiciRequest {
  readonly origin: string | URL;
  readonly path: string;
  readonly method: string;
  readonly headers: unknown;
  addHeader(name: string, value: string): unknown;
}

/** The messages of all channels. A message has only some of the fields. */
interface Message<Request> {
  readonly request: Request;
  readonly response: IncomingMessage;
  readonly error: unknown;
}

type SetHeader = (name: string, value: string) => unknown;

interface Outcome {
  readonly status?: number | undefined;
  readonly version?: string | undefined;
  readonly error?: unknown;
}

/** @returns a function that ends the subscriptions */
export function traceClients({ tracer, allowsHost }: ClientSpanOptions): () => void {
  const { storage } = tracer;
  /** By request that has begun: its span without an answer, with the attributes that were known at the beginning. */
  const spans = new WeakMap<object, { readonly span: Span; readonly attributes: Attributes } | undefined>();

  /**
   * Adds the headers of the trace to the request, and begins a span when the incoming request is sampled. Does nothing
   * outside of an incoming request.
   *
   * @param setHeader sets a header; undefined when the headers can no longer be set
   * @param hasTraceparent whether the controller has set the header `traceparent`, which then stays as it is
   */
  function begin(
    request: UndiciRequest | ClientRequest,
    host: string,
    setHeader: SetHeader | undefined,
    hasTraceparent: boolean,
  ): void {
    const parent = storage.getStore();
    // From 22.12 on, Node publishes the beginning of a request of node:http twice.
    if (parent === undefined || spans.has(request)) return;
    // Without a span of its own, the request continues the trace by the ids of its parent.
    const span = parent.isSampled ? parent.child() : parent;
    const continuesTrace = !hasTraceparent && allowsHost(proxiedUrl(request.path)?.hostname ?? host);
    if (continuesTrace) {
      setHeader?.('traceparent', span.traceparent);
      if (span.tracestate !== '') setHeader?.('tracestate', span.tracestate);
    }
    const attributes = continuesTrace && setHeader === undefined ? { 'gatefold.traceparent_sent': false } : {};
    spans.set(request, span === parent ? undefined : { span, attributes });
  }

  /** Ends a span when the head of the answer has arrived, or the request has failed. A body may never be read. */
  function end(request: UndiciRequest | ClientRequest, origin: URL, { status, version, error }: Outcome): void {
    const { span, attributes } = spans.get(request) ?? {};
    if (span === undefined) return;
    spans.set(request, undefined);
    const { method } = request;
    const isKnownMethod = KNOWN_METHODS.has(method);
    const url = proxiedUrl(request.path);
    const server = url ?? origin;
    // The path of CONNECT is a host with a port.
    const target = url ? url.pathname + url.search : request.path.startsWith('/') ? request.path : '';
    // For the span of a client, the conventions count each status from 400 on as an error.
    const hasFailed = status === undefined || status >= 400;
    span.end(isKnownMethod ? method : 'HTTP', 'client', {
      ...attributes,
      'http.request.method': isKnownMethod ? method : '_OTHER',
      'http.request.method_original': isKnownMethod ? undefined : method,
      'server.address': server.hostname,
      'server.port': Number(server.port) || (server.protocol === 'https:' ? 443 : 80),
      // A query can have personal data and keys.
      'url.full': server.origin + target.replace(/\?.*$/s, ''),
      'network.protocol.version': version,
      'http.response.status_code': status,
      ...(hasFailed && span.fail(status === undefined ? error : { code: String(status) })),
    });
  }

  const listeners: Readonly<Record<string, (message: never) => void>> = {
    'undici:request:create': ({ request }: Message<UndiciRequest>) => {
      const hasTraceparent = hasHeader(request.headers, 'traceparent');
      begin(request, new URL(request.origin).hostname, (name, value) => request.addHeader(name, value), hasTraceparent);
    },
    'undici:request:headers': ({ request, response: { statusCode: status = 0 } }: Message<UndiciRequest>) => {
      // Early hints (103) are published, too, before the answer.
      if (status >= 200) end(request, new URL(request.origin), { status });
    },
    'undici:request:error': ({ request, error }: Message<UndiciRequest>) =>
      end(request, new URL(request.origin), { error }),
    'http.client.request.created': ({ request }: Message<ClientRequest>) => {
      const areHeadersSent = request.headersSent;
      const setHeader: SetHeader = (name, value) => request.setHeader(name, value);
      begin(request, request.host, areHeadersSent ? undefined : setHeader, request.hasHeader('traceparent'));
    },
    // Node before 22.12 publishes the beginning only here, when the headers can no longer be changed.
    'http.client.request.start': ({ request }: Message<ClientRequest>) =>
      begin(request, request.host, undefined, request.hasHeader('traceparent')),
    'http.client.response.finish': ({ request, response }: Message<ClientRequest>) =>
      end(request, originOf(request), { status: response.statusCode, version: response.httpVersion }),
    'http.client.request.error': ({ request, error }: Message<ClientRequest>) =>
      end(request, originOf(request), { error }),
  };
  const subscriptions = Object.entries(listeners).map(([name, listener]) => [name, withoutThrow(listener)] as const);
  for (const [name, listener] of subscriptions) subscribe(name, listener);
  return () => {
    for (const [name, listener] of subscriptions) unsubscribe(name, listener);
  };
}

function withoutThrow(listener: (message: never) => void): (message: unknown) => void {
  return (message) => {
    try {
      listener(message as never);
    } catch {
      // Any program can publish other messages on these channels. They get no span, and must not end the worker.
    }
  };
}

/** @param headers the flat list of an UndiciRequest, in which each name is followed by its value */
function hasHeader(headers: unknown, name: string): boolean {
  return Array.isArray(headers) && headers.some((text, i) => i % 2 === 0 && String(text).toLowerCase() === name);
}

/** Returns the URL of a request that goes through a proxy: then the path is the whole URL. */
function proxiedUrl(path: string): URL | undefined {
  return /^https?:\/\//i.test(path) ? new URL(path) : undefined;
}

/** Returns the origin of a request. Its port is that of the header `Host` for the same host, or else of the socket. */
function originOf(request: ClientRequest): URL {
  const { protocol, host, socket } = request;
  const hostname = host.includes(':') ? `[${host}]` : host;
  const hostHeader = String(request.getHeader('host') ?? '');
  const port = hostHeader.startsWith(`${hostname}:`) ? hostHeader.slice(hostname.length + 1) : socket?.remotePort;
  return new URL(`${protocol}//${hostname}:${port ?? ''}`);
}

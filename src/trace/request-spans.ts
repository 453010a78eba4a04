// Makes the spans of incoming requests, by the semantic conventions for HTTP servers. The events come from public
// diagnostics channels, so any other tool can do the same as this file.
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { parseTraceparent } from '../base/traceparent.ts';
import type { BackgroundEvent, RequestEvent } from '../controller/trace.ts';
import { encodeNameAndKind, intAttribute, listAttribute, textAttribute } from './otlp.ts';
import { redactQuery } from './query.ts';
import type { Sampler } from './sampler.ts';
import { beginSpan, errorType, Span, type Tracer } from './span.ts';
import { parseTracestate } from './tracestate.ts';

export interface RequestSpanOptions {
  readonly tracer: Tracer;
  readonly sampler: Sampler;
  readonly knownMethods: ReadonlySet<string>;
  /** The setting TRACE_CAPTURE: `query`, and names of headers whose values are sent. */
  readonly capture: readonly string[];
}

/** For each known method, the texts of at most this many pairs of route and tool are cached. */
const MAX_ROUTES = 1000;

/** Attributes of the last answer on a connection. They are cached because the next answer usually has the same. */
interface ConnectionTexts {
  /** JSON: the attributes that stay the same as long as the connection is open. */
  readonly fixed: string;
  readonly address: string;
  readonly version: string;
  readonly status: number;
  /** JSON: the part of `rest` (see `SpanParts`) that follows from the fields above. */
  readonly rest: string;
}

/** @returns a function that ends the subscriptions */
export function traceRequests({ tracer, sampler, knownMethods, capture }: RequestSpanOptions): () => void {
  const { storage } = tracer;
  /** The beginnings of spans (see `SpanParts`), by method, and then by route and tool. */
  const beginnings = new Map<string, Map<string, string>>();
  const connections = new WeakMap<object, ConnectionTexts>();
  const backgroundSpans = new WeakMap<object, Span>();

  /** Returns the beginning of the span, which all requests with the same method, route and tool share. */
  function beginningOf({ verb, route, tool }: RequestEvent): string {
    const key = tool === undefined ? (route ?? '') : `${route ?? ''} ${tool}`;
    const cached = beginnings.get(verb)?.get(key);
    if (cached !== undefined) return cached;
    const isKnownMethod = knownMethods.has(verb);
    const method = isKnownMethod ? verb : 'HTTP';
    const attributes = [
      textAttribute('http.request.method', isKnownMethod ? verb : '_OTHER'),
      ...(isKnownMethod ? [] : [textAttribute('http.request.method_original', verb)]),
      ...(route === undefined ? [] : [textAttribute('http.route', route)]),
      ...(tool === undefined ? [] : [textAttribute('gen_ai.tool.name', tool)]),
    ];
    // A client calls a tool within another request. That request has a span of the kind `server`, so the call is
    // internal.
    const kind = tool === undefined ? 'server' : 'internal';
    const name = route === undefined ? method : `${method} ${route}`;
    const text = `${encodeNameAndKind(name, kind)}${attributes.join(',')},{"key":"url.path","value":{"stringValue":`;
    const beginningsOfVerb = beginnings.get(verb) ?? new Map<string, string>();
    if (isKnownMethod && beginningsOfVerb.size < MAX_ROUTES) beginnings.set(verb, beginningsOfVerb.set(key, text));
    return text;
  }

  /** Returns the attributes after the path. @param status the status that the client has received, or else 0 */
  function restOf({ request, address }: RequestEvent, status: number): string {
    const { socket, httpVersion: version } = request;
    const cached = connections.get(socket);
    if (cached?.status === status && cached.address === address && cached.version === version) return cached.rest;
    const fixed = cached?.fixed ?? connectionAttributesOf(socket);
    const attributes = [
      fixed,
      textAttribute('client.address', address),
      textAttribute('network.protocol.version', version),
      ...(status === 0 ? [] : [intAttribute('http.response.status_code', status)]),
    ];
    const rest = `}},${attributes.join(',')}`;
    connections.set(socket, { fixed, address, version, status, rest });
    return rest;
  }

  function endSpan(event: RequestEvent, span: Span): void {
    const { status, bytes, response } = event;
    // 499 means that the client left before the last byte. If a part of the body was sent, so was the status.
    const sentStatus = status !== 499 ? status : bytes > 0 ? response.statusCode : 0;
    let rest = restOf(event, sentStatus);
    if (status >= 499) {
      span.hasFailed = true;
      rest += `,${textAttribute('error.type', failureOf(event))}`;
    }
    if (capture.length > 0) rest += capturedOf(event, capture);
    span.endWithJson(beginningOf(event), event.path, rest);
  }

  const onRequest = {
    start(message: unknown): void {
      const event = message as RequestEvent;
      if (event.parent?.trace instanceof Span) {
        event.trace = event.parent.trace.child();
        return;
      }
      const parent = event.trace?.traceparent === undefined ? undefined : parseTraceparent(event.trace.traceparent);
      const state = parent === undefined ? '' : tracestateOf(event.request.rawHeaders);
      event.trace = beginSpan(tracer, sampler, parent, state);
    },
    asyncEnd(message: unknown): void {
      const event = message as RequestEvent;
      const span = event.trace;
      if (!(span instanceof Span) || !span.isSampled) return;
      endSpan(event, span);
    },
  };
  const onBackground = {
    start(message: unknown): void {
      const { trace } = (message as BackgroundEvent).request;
      if (trace instanceof Span && trace.isSampled) backgroundSpans.set(message as object, trace.child());
    },
    asyncEnd(message: unknown): void {
      const event = message as BackgroundEvent;
      const span = backgroundSpans.get(event);
      if (span === undefined) return;
      span.end('waitUntil', 'internal', 'error' in event ? [span.fail(event.error)] : []);
    },
  };

  const requests = tracingChannel('gatefold:request');
  const backgrounds = tracingChannel('gatefold:background');
  const operations = channel('gatefold:operation');
  const spanOf = (message: unknown): Span | undefined => {
    const { trace } = message as RequestEvent;
    return trace instanceof Span ? trace : undefined;
  };
  requests.start.subscribe(onRequest.start);
  requests.asyncEnd.subscribe(onRequest.asyncEnd);
  backgrounds.start.subscribe(onBackground.start);
  backgrounds.asyncEnd.subscribe(onBackground.asyncEnd);
  operations.bindStore(storage, spanOf);
  return () => {
    requests.start.unsubscribe(onRequest.start);
    requests.asyncEnd.unsubscribe(onRequest.asyncEnd);
    backgrounds.start.unsubscribe(onBackground.start);
    backgrounds.asyncEnd.unsubscribe(onBackground.asyncEnd);
    operations.unbindStore(storage);
  };
}

/** Returns the scheme of the URL, and the address and port of the peer, as attributes. */
function connectionAttributesOf(socket: Socket): string {
  const { remoteAddress, remotePort } = socket;
  return [
    textAttribute('url.scheme', 'encrypted' in socket ? 'https' : 'http'),
    ...(remoteAddress === undefined ? [] : [textAttribute('network.peer.address', remoteAddress)]),
    ...(remotePort === undefined ? [] : [intAttribute('network.peer.port', remotePort)]),
  ].join(',');
}

/** Returns the value of `error.type`. 499 means that the client has left, and a 5xx that the service has failed. */
function failureOf({ status, error }: RequestEvent): string {
  if (status === 499) return 'client_disconnected';
  const type = error === undefined ? '_OTHER' : errorType(error);
  return type === '_OTHER' ? String(status) : type;
}

function tracestateOf(rawHeaders: readonly string[]): string {
  const lines: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 10 && name.toLowerCase() === 'tracestate') lines.push(rawHeaders[i + 1] as string);
  }
  return lines.length === 0 ? '' : parseTracestate(lines);
}

/** Returns the attributes that TRACE_CAPTURE asks for, with a comma before each. */
function capturedOf({ request }: RequestEvent, capture: readonly string[]): string {
  const attributes = capture.flatMap((name) => {
    if (name === 'query') {
      const [, query] = /\?(.*)$/s.exec(request.url ?? '') ?? [];
      return query === undefined ? [] : [textAttribute('url.query', redactQuery(query))];
    }
    const values = request.headersDistinct[name];
    const [value] = values ?? [];
    if (values === undefined || value === undefined) return [];
    if (name === 'user-agent') return [textAttribute('user_agent.original', value)];
    if (name !== 'host') return [listAttribute(`http.request.header.${name}`, values)];
    const [, host = value, port] = /^(.*?)(?::(\d+))?$/.exec(value) ?? [];
    return [textAttribute('server.address', host), ...(port ? [intAttribute('server.port', Number(port))] : [])];
  });
  return attributes.map((attribute) => `,${attribute}`).join('');
}

// Makes the spans of incoming requests, by the semantic conventions for HTTP servers. The events come from public
// channels, so any other tool can do the same as this file.
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { parseTraceparent } from '../base/traceparent.ts';
import type { BackgroundEvent, RequestEvent } from '../controller/trace.ts';
import { encodeName, intAttribute, listAttribute, textAttribute } from './otlp.ts';
import { redactQuery } from './query.ts';
import type { Sampler } from './sampler.ts';
import { beginSpan, errorType, Span, type SpanContext } from './span.ts';
import { parseTracestate } from './tracestate.ts';

export interface RequestSpanOptions {
  readonly context: SpanContext;
  readonly sampler: Sampler;
  readonly knownMethods: ReadonlySet<string>;
  /** The values that TRACE_CAPTURE asks for: `query`, or the name of a header. */
  readonly capture: readonly string[];
}

/** The most routes for each method whose texts are cached. */
const MAX_ROUTES = 1000;

/** The attributes of a connection, and of the last answer on it. The next answer usually has the same attributes. */
interface ConnectionTexts {
  readonly peer: string;
  readonly address: string;
  readonly version: string;
  readonly status: number;
  readonly rest: string;
}

/** @returns a function that ends the subscription */
export function traceRequests({ context, sampler, knownMethods, capture }: RequestSpanOptions): () => void {
  const { storage } = context;
  /** The beginnings of spans, by method and route. */
  const routes = new Map<string, Map<string, string>>();
  const connections = new WeakMap<object, ConnectionTexts>();
  const backgroundSpans = new WeakMap<object, Span>();

  /** Returns the beginning of the span, which all requests with the same method and route share. */
  function beginningOf({ verb, route, tool }: RequestEvent): string {
    const key = tool === undefined ? (route ?? '') : `${route ?? ''} ${tool}`;
    const kept = routes.get(verb)?.get(key);
    if (kept !== undefined) return kept;
    const isKnown = knownMethods.has(verb);
    const method = isKnown ? verb : 'HTTP';
    const attributes = [
      textAttribute('http.request.method', isKnown ? verb : '_OTHER'),
      ...(isKnown ? [] : [textAttribute('http.request.method_original', verb)]),
      ...(route === undefined ? [] : [textAttribute('http.route', route)]),
      ...(tool === undefined ? [] : [textAttribute('gen_ai.tool.name', tool)]),
    ];
    // The call of a tool arrives inside another request. Only that other request has been sent by a client, so the call
    // is internal.
    const kind = tool === undefined ? 'server' : 'internal';
    const name = route === undefined ? method : `${method} ${route}`;
    const text = `${encodeName(name, kind)}${attributes.join(',')},{"key":"url.path","value":{"stringValue":`;
    const ofVerb = routes.get(verb) ?? new Map<string, string>();
    if (isKnown && ofVerb.size < MAX_ROUTES) routes.set(verb, ofVerb.set(key, text));
    return text;
  }

  /** Returns the attributes behind the path. @param status the status that the client has; 0 when it has none */
  function restOf({ request, address }: RequestEvent, status: number): string {
    const { socket, httpVersion: version } = request;
    const kept = connections.get(socket);
    if (kept?.status === status && kept.address === address && kept.version === version) return kept.rest;
    const peer = kept?.peer ?? peerOf(socket);
    const attributes = [
      peer,
      textAttribute('client.address', address),
      textAttribute('network.protocol.version', version),
      ...(status === 0 ? [] : [intAttribute('http.response.status_code', status)]),
    ];
    const rest = `}},${attributes.join(',')}`;
    connections.set(socket, { peer, address, version, status, rest });
    return rest;
  }

  function endSpan(event: RequestEvent, span: Span): void {
    const { status, bytes, response } = event;
    // The client left before the last byte. If it has a part of the body, it has also received the status.
    const sent = status !== 499 ? status : bytes > 0 ? response.statusCode : 0;
    let rest = restOf(event, sent);
    if (status >= 499) {
      span.hasFailed = true;
      rest += `,${textAttribute('error.type', failureOf(event))}`;
    }
    if (capture.length > 0) rest += capturedOf(event, capture);
    span.endAs(beginningOf(event), event.path, rest);
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
      event.trace = beginSpan(context, sampler, parent, state);
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

function peerOf(socket: Socket): string {
  const { remoteAddress, remotePort } = socket;
  return [
    textAttribute('url.scheme', 'encrypted' in socket ? 'https' : 'http'),
    ...(remoteAddress === undefined ? [] : [textAttribute('network.peer.address', remoteAddress)]),
    ...(remotePort === undefined ? [] : [intAttribute('network.peer.port', remotePort)]),
  ].join(',');
}

/** Returns the kind of a failure: 499 stands for a client that has left, and a 5xx for an error of the service. */
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

/** Returns the values of the query and of headers that TRACE_CAPTURE asks for, with a comma before each. */
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

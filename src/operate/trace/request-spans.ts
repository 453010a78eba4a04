// Makes the spans of incoming requests, by the semantic conventions for HTTP servers. The events come from public
// diagnostics channels, so any other tool can do the same as this file.
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { BackgroundEvent, RequestEvent } from '../../api/controller/trace.ts';
import { parseTraceparent } from '../../base/traceparent.ts';
import { encodeNameAndKind, intAttribute, listAttribute, textAttribute } from './otlp.ts';
import { redactQuery } from './query.ts';
import type { Sampler } from './sampler.ts';
import { beginSpan, errorType, KNOWN_METHODS, Span, type Tracer } from './span.ts';
import { parseTracestate } from './tracestate.ts';

export interface RequestSpanOptions {
  readonly tracer: Tracer;
  readonly sampler: Sampler;
  readonly capture: readonly string[];
}

/**
 * For each known method, the texts of at most this many pairs of route and tool are cached. A tool is an operation that
 * an agent calls by the Model Context Protocol.
 */
const MAX_ROUTES = 1000;

/** Attributes of the last answer on a connection. They are cached because the next answer usually has the same. */
interface ConnectionTexts {
  /** JSON: the attributes that stay the same as long as the connection is open. */
  readonly connectionAttributes: string;
  readonly address: string;
  readonly version: string;
  readonly status: number;
  /** JSON: the part of `Span.rest` that the fields above determine. */
  readonly rest: string;
}

/** @returns a function that ends the subscriptions */
export function traceRequests({ tracer, sampler, capture }: RequestSpanOptions): () => void {
  const { storage } = tracer;
  /** The beginnings of spans (`Span.beginning`), by method, and then by route and tool. */
  const beginnings = new Map<string, Map<string, string>>();
  const connections = new WeakMap<object, ConnectionTexts>();
  const backgroundSpans = new WeakMap<object, Span>();

  /** Returns the beginning of the span, which all requests with the same method, route and tool share. */
  function beginningOf({ verb, route, tool }: RequestEvent): string {
    const key = tool === undefined ? (route ?? '') : `${route ?? ''} ${tool}`;
    const cached = beginnings.get(verb)?.get(key);
    if (cached !== undefined) return cached;
    const isKnownMethod = KNOWN_METHODS.has(verb);
    const method = isKnownMethod ? verb : 'HTTP';
    const attributes = [
      textAttribute('http.request.method', isKnownMethod ? verb : '_OTHER'),
      ...(isKnownMethod ? [] : [textAttribute('http.request.method_original', verb)]),
      ...(route === undefined ? [] : [textAttribute('http.route', route)]),
      ...(tool === undefined ? [] : [textAttribute('gen_ai.tool.name', tool)]),
    ];
    // A client calls a tool within another request, which has a span of the kind `server`. So the call is internal.
    const kind = tool === undefined ? 'server' : 'internal';
    const name = route === undefined ? method : `${method} ${route}`;
    const text = `${encodeNameAndKind(name, kind)}${attributes.join(',')},{"key":"url.path","value":{"stringValue":`;
    const beginningsOfVerb = beginnings.get(verb) ?? new Map<string, string>();
    if (isKnownMethod && beginningsOfVerb.size < MAX_ROUTES) beginnings.set(verb, beginningsOfVerb.set(key, text));
    return text;
  }

  /**
   * Returns the attributes after the path, without those of errors and of TRACE_CAPTURE.
   *
   * @param status the status that the client has received, or 0 if it has received none
   */
  function restOf({ request, address }: RequestEvent, status: number): string {
    const { socket, httpVersion: version } = request;
    const texts = connections.get(socket);
    if (texts?.status === status && texts.address === address && texts.version === version) return texts.rest;
    const connectionAttributes = texts?.connectionAttributes ?? connectionAttributesOf(socket);
    const attributes = [
      connectionAttributes,
      textAttribute('client.address', address),
      textAttribute('network.protocol.version', version),
      ...(status === 0 ? [] : [intAttribute('http.response.status_code', status)]),
    ];
    const rest = `}},${attributes.join(',')}`;
    connections.set(socket, { connectionAttributes, address, version, status, rest });
    return rest;
  }

  function endSpan(event: RequestEvent, span: Span): void {
    const { status, bytes, response } = event;
    // 499 means that the client left before the last byte. The client has a status only if body bytes were sent.
    const receivedStatus = status !== 499 ? status : bytes > 0 ? response.statusCode : 0;
    let rest = restOf(event, receivedStatus);
    if (status >= 499) {
      span.hasFailed = true;
      rest += `,${textAttribute('error.type', errorTypeOf(event))}`;
    }
    if (capture.length > 0) rest += capturedAttributesOf(event, capture);
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
  requests.subscribe(onRequest);
  backgrounds.subscribe(onBackground);
  operations.bindStore(storage, spanOf);
  return () => {
    requests.unsubscribe(onRequest);
    backgrounds.unsubscribe(onBackground);
    operations.unbindStore(storage);
  };
}

function connectionAttributesOf(socket: Socket): string {
  const { remoteAddress, remotePort } = socket;
  return [
    textAttribute('url.scheme', 'encrypted' in socket ? 'https' : 'http'),
    ...(remoteAddress === undefined ? [] : [textAttribute('network.peer.address', remoteAddress)]),
    ...(remotePort === undefined ? [] : [intAttribute('network.peer.port', remotePort)]),
  ].join(',');
}

/** Returns the value of `error.type`, for a client that has left (499) or a service that has failed (5xx). */
function errorTypeOf({ status, error }: RequestEvent): string {
  if (status === 499) return 'client_disconnected';
  const type = errorType(error);
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
function capturedAttributesOf({ request }: RequestEvent, capture: readonly string[]): string {
  const attributes = capture.flatMap((name) => {
    if (name === 'query') {
      const [, query] = /\?(.*)$/s.exec(request.url as string) ?? [];
      return query === undefined ? [] : [textAttribute('url.query', redactQuery(query))];
    }
    const values = request.headersDistinct[name] ?? [];
    const [value] = values;
    if (value === undefined) return [];
    if (name === 'user-agent') return [textAttribute('user_agent.original', value)];
    if (name !== 'host') return [listAttribute(`http.request.header.${name}`, values)];
    const [, host = value, port] = /^(.*?)(?::(\d+))?$/.exec(value) ?? [];
    return [textAttribute('server.address', host), ...(port ? [intAttribute('server.port', Number(port))] : [])];
  });
  return attributes.map((attribute) => `,${attribute}`).join('');
}

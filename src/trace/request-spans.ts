// The spans of requests, by the semantic conventions for HTTP servers. The events come from public channels, so any
// other tool can do what this file does.
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { quote } from '../base/json-text.ts';
import { parseTraceparent } from '../base/traceparent.ts';
import type { BackgroundEvent, RequestEvent } from '../controller/trace.ts';
import { intAttribute, KINDS, listAttribute, textAttribute } from './otlp.ts';
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

/** Heads of spans that are kept, a method and a route each. */
const MOST_HEADS = 1000;

/** @returns a function that ends the subscription */
export function traceRequests({ context, sampler, knownMethods, capture }: RequestSpanOptions): () => void {
  const { storage } = context;
  const heads = new Map<string, string>();
  const peers = new WeakMap<object, string>();
  const backgroundSpans = new WeakMap<object, Span>();

  /** The name, the kind and the method of a span: the same for all requests of a route. */
  function headOf(verb: string, route: string | undefined, isTool: boolean): string {
    const key = `${isTool ? '+' : ''}${verb} ${route ?? ''}`;
    const kept = heads.get(key);
    if (kept !== undefined) return kept;
    const method = knownMethods.has(verb) ? verb : 'HTTP';
    const name = route === undefined ? method : `${method} ${route}`;
    // The request that brings the call of a tool is the one that a client has sent.
    const head = `"name":${quote(name)},"kind":${isTool ? KINDS.internal : KINDS.server}`;
    if (heads.size < MOST_HEADS) heads.set(key, head);
    return head;
  }

  /** The attributes of a connection. */
  function peerOf({ request }: RequestEvent): string {
    const { socket } = request;
    const kept = peers.get(socket);
    if (kept !== undefined) return kept;
    const { remoteAddress, remotePort } = socket;
    const peer = [
      textAttribute('url.scheme', 'encrypted' in socket ? 'https' : 'http'),
      ...(remoteAddress === undefined ? [] : [textAttribute('network.peer.address', remoteAddress)]),
      ...(remotePort === undefined ? [] : [intAttribute('network.peer.port', remotePort)]),
    ].join(',');
    peers.set(socket, peer);
    return peer;
  }

  function attributesOf(event: RequestEvent, span: Span): string {
    const { verb, route, status, request, response, address, path, tool } = event;
    const isKnown = knownMethods.has(verb);
    let attributes = `${textAttribute('http.request.method', isKnown ? verb : '_OTHER')},${textAttribute('url.path', path)},${peerOf(event)},${textAttribute('client.address', address)},${textAttribute('network.protocol.version', request.httpVersion)}`;
    if (!isKnown) attributes += `,${textAttribute('http.request.method_original', verb)}`;
    if (route !== undefined) attributes += `,${textAttribute('http.route', route)}`;
    if (tool !== undefined) attributes += `,${textAttribute('gen_ai.tool.name', tool)}`;
    if (status === 499) {
      // The client left before the last byte, so the status that it may have got is that of the head.
      span.hasFailed = true;
      if (response.headersSent) attributes += `,${intAttribute('http.response.status_code', response.statusCode)}`;
      attributes += `,${textAttribute('error.type', 'client_disconnected')}`;
    } else {
      attributes += `,${intAttribute('http.response.status_code', status)}`;
      if (status >= 500) {
        span.hasFailed = true;
        const type = event.error === undefined ? String(status) : errorType(event.error);
        attributes += `,${textAttribute('error.type', type === '_OTHER' ? String(status) : type)}`;
      }
    }
    return capture.length === 0 ? attributes : [attributes, ...capturedOf(event, capture)].join(',');
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
      const attributes = attributesOf(event, span);
      span.endAs(headOf(event.verb, event.route, event.tool !== undefined), attributes);
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

function tracestateOf(rawHeaders: readonly string[]): string {
  const lines: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 10 && name.toLowerCase() === 'tracestate') lines.push(rawHeaders[i + 1] as string);
  }
  return lines.length === 0 ? '' : parseTracestate(lines);
}

/** The values of the query and of headers that TRACE_CAPTURE asks for. */
function capturedOf({ request }: RequestEvent, capture: readonly string[]): string[] {
  return capture.flatMap((name) => {
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
}

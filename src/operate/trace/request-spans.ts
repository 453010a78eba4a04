// Makes the spans of incoming requests, by the semantic conventions for HTTP servers. The events come from public
// diagnostics channels, so any other tool can do the same as this file.
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { BackgroundEvent, RequestEvent } from '../../api/controller/trace.ts';
import { parseTraceparent } from '../../base/traceparent.ts';
import type { Attributes } from './otlp.ts';
import type { Sampler } from './sampler.ts';
import { beginSpan, errorType, KNOWN_METHODS, Span, type Tracer } from './span.ts';
import { parseTracestate } from './tracestate.ts';

export interface RequestSpanOptions {
  readonly tracer: Tracer;
  readonly sampler: Sampler;
}

/** @returns a function that ends the subscriptions */
export function traceRequests({ tracer, sampler }: RequestSpanOptions): () => void {
  const { storage } = tracer;
  const backgroundSpans = new WeakMap<object, Span>();

  function endSpan(event: RequestEvent, span: Span): void {
    const { request, response, verb, route, tool, path, address, status, bytes } = event;
    // A client calls a tool within another request, which has a span of the kind `server`. So the call is internal.
    const kind = tool === undefined ? 'server' : 'internal';
    const isKnownMethod = KNOWN_METHODS.has(verb);
    const method = isKnownMethod ? verb : 'HTTP';
    // 499 means that the client left before the last byte. The client has a status only if body bytes were sent.
    const isGone = status === 499;
    if (status >= 499) span.hasFailed = true;
    // One literal without a spread, because a spread would cost more than all the rest of the span.
    const attributes: Attributes = {
      'http.request.method': isKnownMethod ? verb : '_OTHER',
      'http.request.method_original': isKnownMethod ? undefined : verb,
      'http.route': route,
      'gen_ai.tool.name': tool,
      'url.path': path,
      'url.scheme': 'encrypted' in request.socket ? 'https' : 'http',
      'network.peer.address': request.socket.remoteAddress,
      'network.peer.port': request.socket.remotePort,
      'client.address': address,
      'network.protocol.version': request.httpVersion,
      'http.response.status_code': isGone ? (bytes > 0 ? response.statusCode : undefined) : status || undefined,
      'error.type': span.hasFailed ? errorTypeOf(event) : undefined,
    };
    span.end(route === undefined ? method : `${method} ${route}`, kind, attributes);
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
      const span = spanOf(message);
      if (span?.isSampled) endSpan(message as RequestEvent, span);
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
      span.end('waitUntil', 'internal', 'error' in event ? span.fail(event.error) : {});
    },
  };

  const requests = tracingChannel('gatefold:request');
  const backgrounds = tracingChannel('gatefold:background');
  const operations = channel('gatefold:operation');
  requests.subscribe(onRequest);
  backgrounds.subscribe(onBackground);
  operations.bindStore(storage, spanOf);
  return () => {
    requests.unsubscribe(onRequest);
    backgrounds.unsubscribe(onBackground);
    operations.unbindStore(storage);
  };
}

function spanOf(message: unknown): Span | undefined {
  const { trace } = message as RequestEvent;
  return trace instanceof Span ? trace : undefined;
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

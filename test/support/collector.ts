// An OpenTelemetry collector for tests: a real HTTP server that accepts OTLP as JSON, keeps the spans, and sends the
// answers that the test chooses.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number };
  /** The attributes by name. A whole number is a text, as in the JSON of protobuf. */
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface CollectorAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Collector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The parsed bodies. */
  readonly bodies: readonly unknown[];
  readonly requests: readonly Pick<IncomingMessage, 'method' | 'url' | 'headers'>[];
  /** Sets the answer to all later requests; `'hang'` sends none. Only a body that is answered with 200 is kept. */
  answer(next: CollectorAnswer | 'hang'): void;
  /** Resolves when `fits` accepts the spans. Rejects after a long time, with the spans received so far. */
  until(fits: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

type Value = Readonly<Record<string, unknown>>;
type KeyValue = { readonly key: string; readonly value: Value };
interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly (ReceivedSpan & { attributes: readonly KeyValue[] })[] }[];
  }[];
}

const PATIENCE = 60_000;

export async function startCollector(port = 0): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const bodies: unknown[] = [];
  const requests: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = [];
  const waiting = new Set<() => void>();
  let next: CollectorAnswer | 'hang' = {};

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const text = String(request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes);
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    if (next !== 'hang') {
      const { status = 200, headers = {}, body = '{}' } = next;
      if (status === 200) {
        const parsed = JSON.parse(text) as Body;
        bodies.push(parsed);
        spans.push(...spansOf(parsed));
      }
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    }
    for (const check of [...waiting]) check();
  });
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    requests,
    answer(wanted) {
      next = wanted;
    },
    until: (fits) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (!fits(spans)) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(spans);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`the collector has ${requests.length} requests and ${JSON.stringify(spans, null, 1)}`));
        }, PATIENCE);
        waiting.add(check);
        check();
      }),
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function spansOf({ resourceSpans }: Body): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        ...span,
        attributes: byName(span.attributes),
        resource: byName(resource.attributes),
      })),
    ),
  );
}

function byName(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain(value: Value): unknown {
  const [kind, content] = Object.entries(value)[0] ?? [];
  return kind === 'arrayValue' ? (content as { values: Value[] }).values.map(plain) : content;
}

// The operations port: /livez, /readyz and /metrics, served by the supervisor, so that they answer while every worker
// is stuck. Read-only: nothing here starts, stops or changes anything. It never keeps the process alive.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from '../base/builtins.ts';
import { mostSideConnections } from '../base/descriptors.ts';
import { envelope, rawRefusal } from '../base/envelope.ts';
import { isHttpError, refusal } from '../base/errors.ts';
import { listen } from '../base/listen.ts';
import { describeError, type Log } from '../base/log.ts';
import { version } from '../own-files.ts';
import { boundConnections } from './connections.ts';
import { CONTENT_TYPE, renderFamilies } from './exposition.ts';
import { createMemoryReader } from './memory.ts';
import { type About, familiesOf } from './metrics.ts';
import { describeReadiness, readinessOf } from './readiness.ts';
import { createServiceWatch, type ServiceStatus, type SupervisorStatus } from './service-status.ts';

export interface Operations {
  /**
   * Listens; to be called before the first worker is started.
   *
   * @param supervisor undefined while there is none
   * @throws the system's error when it cannot listen
   */
  open(supervisor: () => SupervisorStatus | undefined): Promise<void>;
  /** A worker's report, as it came. */
  reported(pid: number, report: unknown): void;
  /** The service drains: not ready from now on, and answering until the process ends. */
  stopping(): void;
}

export interface OperationsOptions {
  /** 0: any free one; the log says which. */
  readonly port: number;
  readonly host: string;
  /** Workers that are to serve. */
  readonly workers: number;
  readonly log: Log;
  /** Of this process's own log. */
  readonly droppedLines: () => number;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const JSON_TYPE = 'application/json; charset=UTF-8';
/** Scrapers and probes, and some to spare. */
const MOST_CONNECTIONS = 100;
/** Milliseconds; a probe gives up sooner. */
const REQUEST_TIMEOUT = 5000;
const ANSWER_TIMEOUT = 5000;

export function createOperations({ port, host, workers, log, droppedLines }: OperationsOptions): Operations {
  let supervisor: () => SupervisorStatus | undefined = () => undefined;
  const watch = createServiceWatch(() => supervisor());
  const about = describeProcess(workers, droppedLines);
  let asked = 0;

  const pages = new Map<string, (status: () => ServiceStatus) => Page>([
    ['/livez', () => asJson(200, { status: 'alive', timestamp: Math.floor(Date.now() / 1000) })],
    ['/readyz', (status) => asJson(readinessOf(status()) === 'ready' ? 200 : 503, describeReadiness(status()))],
    ['/metrics', (status) => ({ status: 200, type: CONTENT_TYPE, body: renderFamilies(familiesOf(status(), about)) })],
  ]);

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.socket.destroyed) return;
    const requestId = newRequestId();
    try {
      send(request, response, pageOf(request), requestId);
    } catch (error) {
      if (!isHttpError(error)) log.error('operations-failed', describeError(error));
      const refused = isHttpError(error) ? error : refusal('INTERNAL_ERROR');
      const page = { status: refused.status, type: JSON_TYPE, body: `${envelope(refused, requestId)}\n` };
      send(request, response, page, requestId, refused.headers);
    }
  }

  /** @throws HttpError MALFORMED_HOST, NOT_FOUND, METHOD_NOT_ALLOWED */
  function pageOf({ url = '', method, headers, httpVersion }: IncomingMessage): Page {
    if (headers.host === undefined && httpVersion !== '1.0') throw refusal('MALFORMED_HOST');
    const [path = ''] = url.split('?', 1);
    const page = pages.get(path);
    if (page === undefined) throw refusal('NOT_FOUND', `Nothing is served here but ${[...pages.keys()].join(', ')}`);
    if (method !== 'GET' && method !== 'HEAD')
      throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'GET, HEAD' } });
    return page(watch.status);
  }

  /** Answers what Node's parser gives up on. */
  function refuseMalformed(_error: Error, socket: Socket): void {
    if (!socket.writable) return void socket.destroy();
    const headers = ['Content-Type', JSON_TYPE, 'X-Content-Type-Options', 'nosniff'];
    socket.end(rawRefusal(refusal('MALFORMED_REQUEST'), newRequestId(), headers), () => socket.destroy());
  }

  function newRequestId(): string {
    return `ops-${process.pid}-${(++asked).toString(36)}`;
  }

  return {
    async open(status) {
      supervisor = status;
      const server = createServer({
        headersTimeout: REQUEST_TIMEOUT,
        requestTimeout: REQUEST_TIMEOUT,
        connectionsCheckingInterval: 1000,
        // The check is in `pageOf`: Node's own answer has no headers.
        requireHostHeader: false,
      });
      boundConnections(server, {
        mostConnections: mostSideConnections(MOST_CONNECTIONS),
        answerTimeout: ANSWER_TIMEOUT,
      });
      server.on('request', answer);
      server.on('checkExpectation', answer);
      server.on('clientError', refuseMalformed);
      await listen(server, { port, host });
      server.on('error', (error) => log.error('operations-failed', describeError(error)));
      server.unref();
      log.info('operations-listening', { host, port: (server.address() as AddressInfo).port });
    },
    reported: watch.reported,
    stopping: watch.stopping,
  };
}

function send(request: IncomingMessage, response: ServerResponse, page: Page, requestId: string, headers = {}): void {
  response.writeHead(page.status, {
    'Content-Type': page.type,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(page.body),
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
    // A body is not read here, so it must not be taken for the next request.
    ...(request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined
      ? {}
      : { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : page.body);
}

function asJson(status: number, body: object): Page {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n` };
}

function describeProcess(wanted: number, logLinesDropped: () => number): About {
  return {
    version: version(),
    node: process.versions.node,
    wanted,
    logLinesDropped,
    // Never a moment that is still to come.
    startedAt: Math.floor(Date.now() / 1000 - process.uptime()),
    memoryBytes: createMemoryReader(),
    cpuSeconds() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  };
}

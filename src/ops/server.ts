// Serves the operations port: /livez, /readyz and /metrics. The supervisor runs this port, so the port answers even
// while all workers are blocked. The port is read-only: a client cannot start, stop or change anything through it. An
// open port does not keep the process alive.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from '../base/builtins.ts';
import { maxSupervisorConnections } from '../base/descriptors.ts';
import { envelope, JSON_TYPE, rawRefusal } from '../base/envelope.ts';
import { isHttpError, refusal } from '../base/errors.ts';
import { listen } from '../base/listen.ts';
import { describeError, type Log } from '../base/log.ts';
import { unixTime } from '../base/time.ts';
import { version } from '../own-files.ts';
import { limitConnections } from './connections.ts';
import { CONTENT_TYPE, renderFamilies } from './exposition.ts';
import { createMemoryReader } from './memory.ts';
import { collectFamilies, type ProcessFacts } from './metrics.ts';
import { describeReadiness, readinessOf } from './readiness.ts';
import { createServiceWatch, type ServiceStatus, type SupervisorStatus } from './service-status.ts';

export interface OperationsServer {
  /**
   * Opens the port. Called before the first worker is started.
   *
   * @param supervisor returns undefined until the supervisor is created
   * @throws the system's error when it cannot listen
   */
  open(supervisor: () => SupervisorStatus | undefined): Promise<void>;
  addReport(pid: number, report: unknown): void;
  /** Makes /readyz answer `stopping` from now on. The port answers until the process ends. */
  setStopping(): void;
}

export interface OperationsServerOptions {
  /** The port, or 0 for any free port. The number of the opened port is logged. */
  readonly port: number;
  readonly host: string;
  /** The configured number of workers. */
  readonly workers: number;
  readonly log: Log;
  /** Returns the number of log lines that this process has dropped. */
  readonly droppedLines: () => number;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Maximum number of connections. Scrapers and probes need fewer. */
const MAX_CONNECTIONS = 100;
/** Milliseconds that a client has to send a request. Probes give up sooner. */
const REQUEST_TIMEOUT = 5000;
/** Milliseconds that a client has to read an answer. */
const ANSWER_TIMEOUT = 5000;

export function createOperationsServer({
  port,
  host,
  workers,
  log,
  droppedLines,
}: OperationsServerOptions): OperationsServer {
  let supervisor: () => SupervisorStatus | undefined = () => undefined;
  const watch = createServiceWatch(() => supervisor());
  const facts = processFacts(workers, droppedLines);
  let requests = 0;

  const pages = new Map<string, (status: () => ServiceStatus) => Page>([
    ['/livez', () => asJson(200, { status: 'alive', timestamp: unixTime() })],
    ['/readyz', (status) => asJson(readinessOf(status()) === 'ready' ? 200 : 503, describeReadiness(status()))],
    [
      '/metrics',
      (status) => ({ status: 200, type: CONTENT_TYPE, body: renderFamilies(collectFamilies(status(), facts)) }),
    ],
  ]);

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.socket.destroyed) return;
    const requestId = newRequestId();
    try {
      send(request, response, renderPage(request), requestId);
    } catch (error) {
      if (!isHttpError(error)) log.error('operations-answer-failed', describeError(error));
      const httpError = isHttpError(error) ? error : refusal('INTERNAL_ERROR');
      const page = { status: httpError.status, type: JSON_TYPE, body: `${envelope(httpError, requestId)}\n` };
      send(request, response, page, requestId, httpError.headers);
    }
  }

  /** @throws HttpError MALFORMED_HOST, NOT_FOUND, METHOD_NOT_ALLOWED */
  function renderPage({ url = '', method, headers, httpVersion }: IncomingMessage): Page {
    if (headers.host === undefined && httpVersion !== '1.0') throw refusal('MALFORMED_HOST');
    const [path = ''] = url.split('?', 1);
    const page = pages.get(path);
    if (page === undefined)
      throw refusal('NOT_FOUND', `Not found: this port serves only ${[...pages.keys()].join(', ')}`);
    if (method !== 'GET' && method !== 'HEAD')
      throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'GET, HEAD' } });
    return page(watch.status);
  }

  /** Answers requests that Node's parser rejects. */
  function refuseMalformed(_error: Error, socket: Socket): void {
    if (!socket.writable) return void socket.destroy();
    const headers = ['Content-Type', JSON_TYPE, 'X-Content-Type-Options', 'nosniff'];
    socket.end(rawRefusal(refusal('MALFORMED_REQUEST'), newRequestId(), headers), () => socket.destroy());
  }

  function newRequestId(): string {
    return `ops-${process.pid}-${(++requests).toString(36)}`;
  }

  return {
    async open(supervisorStatus) {
      supervisor = supervisorStatus;
      const server = createServer({
        headersTimeout: REQUEST_TIMEOUT,
        requestTimeout: REQUEST_TIMEOUT,
        connectionsCheckingInterval: 1000,
        // `renderPage` checks the Host header, because a refusal by Node itself would have no envelope.
        requireHostHeader: false,
      });
      limitConnections(server, {
        maxConnections: maxSupervisorConnections(MAX_CONNECTIONS),
        answerTimeout: ANSWER_TIMEOUT,
      });
      server.on('request', answer);
      server.on('checkExpectation', answer);
      server.on('clientError', refuseMalformed);
      await listen(server, { port, host });
      server.on('error', (error) => log.error('operations-port-failed', describeError(error)));
      server.unref();
      log.info('operations-port-opened', { host, port: (server.address() as AddressInfo).port });
    },
    addReport: watch.addReport,
    setStopping: watch.setStopping,
  };
}

function send(request: IncomingMessage, response: ServerResponse, page: Page, requestId: string, headers = {}): void {
  response.writeHead(page.status, {
    'Content-Type': page.type,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(page.body),
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
    // No request body is read here, so a request with a body ends the connection. Otherwise Node would parse the body
    // as the next request.
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

function processFacts(wantedWorkers: number, logLinesDropped: () => number): ProcessFacts {
  return {
    version: version(),
    node: process.versions.node,
    wantedWorkers,
    logLinesDropped,
    // The start time is rounded down, so that the start is never in the future.
    startedAt: Math.floor(Date.now() / 1000 - process.uptime()),
    memoryBytes: createMemoryReader(),
    cpuSeconds() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  };
}

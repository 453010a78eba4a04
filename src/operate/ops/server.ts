// The operations port: /livez, /readyz and /metrics. It runs in the supervisor, so it answers even while all workers
// are blocked. A client cannot start, stop or change anything through it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from '../../base/builtins.ts';
import { refusalCodeOf } from '../../base/client-error.ts';
import { descriptorLimit, maxSupervisorConnections } from '../../base/descriptors.ts';
import { envelope, JSON_TYPE, rawRefusal } from '../../base/envelope.ts';
import { isHttpError, refusal } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import { listen } from '../../base/listen.ts';
import { describeError, type Log } from '../../base/log.ts';
import { createRecentConnections } from '../../base/recent-connections.ts';
import type { Settings } from '../../base/settings.ts';
import { unixTime } from '../../base/time.ts';
import { buildName, version } from '../../own-files.ts';
import { CONTENT_TYPE, renderFamilies } from './exposition.ts';
import { watchPunctuality } from './loop-delay.ts';
import { createMemoryReader } from './memory.ts';
import { collectFamilies } from './metrics.ts';
import { describeReadiness, readinessOf } from './readiness.ts';
import { createServiceWatch, type ServiceStatus, type SupervisorStatus } from './service-status.ts';

export type OperationsServer = ReturnType<typeof createOperationsServer>;

export interface OperationsServerOptions {
  readonly port: number;
  readonly host: string;
  readonly workers: number;
  readonly ready?: Settings['ready'];
  readonly log: Log;
  readonly droppedLines: () => number;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const MAX_CONNECTIONS = 100;
/** Milliseconds within which a client must have sent its request. Probes give up sooner. */
const REQUEST_TIMEOUT = 5000;
const ANSWER_TIMEOUT = 5000;

export function createOperationsServer(options: OperationsServerOptions) {
  const { port, host, workers, ready, log, droppedLines } = options;
  let supervisor: () => SupervisorStatus | undefined = () => undefined;
  const watch = createServiceWatch(() => supervisor(), undefined, { ready, isPunctual: watchPunctuality() });
  const facts = supervisorFacts(workers, droppedLines);
  const renderMetrics = () => renderFamilies(collectFamilies(watch.status(), facts));
  let requestCount = 0;

  const answersByPath = new Map<string, () => Answer>([
    ['/livez', () => asJson(200, { status: 'alive', timestamp: unixTime() })],
    ['/readyz', () => answerReady(watch.status())],
    ['/metrics', () => ({ status: 200, type: CONTENT_TYPE, body: renderMetrics() })],
  ]);

  function handle(request: IncomingMessage, response: ServerResponse): void {
    // limitConnections has cut this client off.
    if (request.socket.destroyed) return;
    const requestId = newRequestId();
    try {
      send(request, response, answer(request), requestId);
    } catch (error) {
      if (!isHttpError(error)) log.error('operations-answer-failed', describeError(error));
      const httpError = isHttpError(error) ? error : refusal('INTERNAL_ERROR');
      const body = `${envelope(httpError, requestId)}\n`;
      send(request, response, { status: httpError.status, type: JSON_TYPE, body }, requestId, httpError.headers);
    }
  }

  /** @throws HttpError MALFORMED_HOST, NOT_FOUND, METHOD_NOT_ALLOWED */
  function answer({ url = '', method, headers, httpVersion }: IncomingMessage): Answer {
    if (headers.host === undefined && httpVersion !== '1.0') throw refusal('MALFORMED_HOST');
    const [path = ''] = url.split('?', 1);
    const createAnswer = answersByPath.get(path);
    if (createAnswer === undefined)
      throw refusal('NOT_FOUND', `Not found: this port serves only ${[...answersByPath.keys()].join(', ')}`);
    if (method !== 'GET' && method !== 'HEAD')
      throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'GET, HEAD' } });
    return createAnswer();
  }

  function refuseClientError(error: Error, socket: Socket): void {
    if (!socket.writable) return void socket.destroy();
    const headers = ['Content-Type', JSON_TYPE, 'X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
    socket.end(rawRefusal(refusal(refusalCodeOf(error)), newRequestId(), headers), () => socket.destroy());
  }

  function newRequestId(): string {
    return `ops-${process.pid}-${(++requestCount).toString(36)}`;
  }

  return {
    /**
     * Opens the port. Called before the first worker is started.
     *
     * @param supervisorStatus returns undefined until the supervisor is created
     * @throws the system's error when the port cannot be opened
     */
    async open(supervisorStatus: () => SupervisorStatus | undefined): Promise<void> {
      supervisor = supervisorStatus;
      const server = createServer({
        headersTimeout: REQUEST_TIMEOUT,
        requestTimeout: REQUEST_TIMEOUT,
        connectionsCheckingInterval: 1000,
        // `answer` checks the Host header, because a refusal by Node itself would have no envelope.
        requireHostHeader: false,
      });
      const maxConnections = maxSupervisorConnections(MAX_CONNECTIONS);
      limitConnections(server, { maxConnections, answerTimeout: ANSWER_TIMEOUT });
      server.on('request', handle);
      server.on('checkExpectation', handle);
      server.on('clientError', refuseClientError);
      await listen(server, { port, host });
      server.on('error', (error) => log.error('operations-port-failed', describeError(error)));
      // The open port does not keep the process running.
      server.unref();
      log.info('operations-port-opened', { host, port: (server.address() as AddressInfo).port });
    },
    /** Called with the WorkerReport of a worker; undefined when the worker has none yet. */
    addReport: watch.addReport,
    /** Makes /readyz answer `stopping` from now on. The port answers until the process ends. */
    setStopping: watch.setStopping,
  };
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer, requestId: string, headers = {}) {
  const { status, type, body } = answer;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  response.writeHead(status, {
    'Content-Type': type,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
    // Node would read the whole body of a request before the next request. The end of the connection prevents that.
    ...((length !== undefined || encoding !== undefined) && { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function answerReady(service: ServiceStatus): Answer {
  return asJson(readinessOf(service) === 'ready' ? 200 : 503, describeReadiness(service));
}

function asJson(status: number, body: object): Answer {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n` };
}

export function supervisorFacts(wantedWorkers: number, logLinesDropped: () => number) {
  const running = version();
  let cachedBuild: string | undefined;
  return {
    version: running,
    /** The version and a hash of the program, read at the first scrape; without its files, the version alone. */
    build: () => attempt(() => (cachedBuild ??= buildName()), running),
    node: process.versions.node,
    wantedWorkers,
    logLinesDropped,
    /** Unix time in seconds. A time that is rounded up could be in the future. */
    startedAt: Math.floor(Date.now() / 1000 - process.uptime()),
    memoryBytes: createMemoryReader(),
    maxDescriptors: descriptorLimit() ?? 0,
    cpuSeconds(): number {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  };
}

interface ConnectionLimits {
  /** Maximum number of connections. A further connection ends the connection whose last request is longest ago. */
  readonly maxConnections: number;
  readonly answerTimeout: number;
}

/** Cuts clients that ask before an answer or read it too late: they could keep probes out, and fill the memory. */
export function limitConnections(server: Server, { maxConnections, answerTimeout }: ConnectionLimits): void {
  const connections = createRecentConnections(maxConnections);
  const socketsInUse = new WeakSet<object>();
  server.on('connection', connections.add);
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // Probes and scrapers send a request only after the answer to the one before. Another client is cut off.
    if (socketsInUse.has(socket)) return void socket.destroy();
    connections.add(socket);
    socketsInUse.add(socket);
    const timer = setTimeout(() => socket.destroy(), answerTimeout).unref();
    response.once('finish', () => socketsInUse.delete(socket));
    response.once('close', () => clearTimeout(timer));
  });
}

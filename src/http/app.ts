// One request, top to bottom: `serve` and the steps below it. This file opens no port and reads no environment; the
// caller of createApp() listens.
import type { Server, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { type ErrorCode, refusal } from '../base/errors.ts';
import type { RequestIds } from '../base/events.ts';
import { idsOf, type LineSink, type Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { ServiceState } from '../groups/registry.ts';
import { createRateLimiter, type RateLimiter } from '../limits/rate-limiter.ts';
import { createAccessLog } from './access-log.ts';
import { parseTrustedProxies } from './address.ts';
import { answerClientErrors } from './answer/client-error.ts';
import { createResponder, type RequestObserver } from './answer/response.ts';
import { createBackgroundWork } from './background.ts';
import { overloaded } from './body/body.ts';
import { createBodyBudget, defaultBodyBudget } from './body/budget.ts';
import type { CallerTable } from './caller.ts';
import { createConnections } from './connections/connections.ts';
import { createCurrentExchange } from './current-exchange.ts';
import { type CapturedAnswer, Exchange, type Step, type ToolCall } from './exchange.ts';
import { checkHead, createRequestIds, type Request } from './head.ts';
import { createStreamWatch } from './open-streams.ts';
import { type EventParts, serveFollowed } from './request-event.ts';
import { createRouter, firstFit, type RouteMatch } from './router.ts';
import { type Route, routesWith } from './routes.ts';
import { createRequestServer, type Expectation, PLAIN, type Transport } from './server.ts';
import { type Destinations, prepareSteps } from './steps.ts';
import { pathEnd, readQuery } from './target.ts';
import { createCallExchange, type ToolServer } from './tool-calls.ts';

export interface AppParts extends Destinations {
  readonly settings: Settings;
  readonly log: Log;
  /** The sink for the log line of each request; undefined when no line is written. */
  readonly requestLog?: LineSink | undefined;
  readonly credentials: CallerTable;
  /** Answers the messages of the Model Context Protocol; undefined when MCP is off. */
  readonly tools?: ToolServer | undefined;
  readonly observer?: RequestObserver | undefined;
  /** Default: a limiter that counts for this process alone. */
  readonly limiter?: Pick<RateLimiter, 'check'> | undefined;
  readonly routes?: readonly Route[];
  /** Default: HTTP without TLS. */
  readonly transport?: Transport | undefined;
}

export interface App {
  /** The server, which does not listen yet. */
  readonly server: Server;
  /** Applies this state of the service file from now on. When the service file is broken, every request is a 500. */
  useService(state: ServiceState): void;
  /** Returns a whole answer that refuses bytes which are not a valid request. */
  rawRefusal(code: ErrorCode): string;
  /** Makes every answer from now on end its connection. */
  setDraining(): void;
  /** The number of requests that have come and are not answered yet. */
  inFlight(): number;
  /**
   * The number of promises given to `params.waitUntil` whose work is under way. Such work continues after its answer.
   */
  pendingWork(): number;
  /** Stops waiting for the work of `params.waitUntil`, and logs each piece that has not ended. */
  giveUpWork(): void;
  /**
   * Finds the request whose operation led to the throw. If that request has no answer yet, it is answered with 500. No
   * other request is touched. An `uncaughtException` listener calls this.
   */
  failCurrentRequest(thrown: unknown): void;
  /**
   * Returns the log fields that name the request whose operation led to the throw. The result is undefined when no
   * operation led to the throw.
   */
  currentRequestIds(): RequestIds | undefined;
}

/** @throws Error when a route can never be reached */
export function createApp({
  settings,
  log,
  requestLog,
  groups,
  credentials,
  identity,
  observer,
  limiter = createRateLimiter(),
  docs,
  tools,
  routes = routesWith(settings.docs, settings.basePath, tools && settings.mcp),
  transport = PLAIN,
}: AppParts): App {
  const { bodyLimit, bodyBudget = defaultBodyBudget(bodyLimit), maxInFlight, basePath } = settings;
  const router = createRouter(routes, basePath);
  const connections = createConnections({
    keepAliveTimeout: settings.keepAliveTimeout,
    readTimeout: settings.requestTimeout,
    maxUnread: bodyBudget,
    maxConnections: settings.maxConnections,
  });
  const respond = createResponder({
    log,
    accessLog: requestLog && createAccessLog(requestLog),
    bodyLimit,
    development: settings.development,
    isSecure: transport.isSecure,
    observer,
    onSettled: finish,
    onStreaming: leaveFlight,
    watch: createStreamWatch(credentials),
  });
  const budget = createBodyBudget({
    limit: bodyBudget,
    bodyLimit,
    exchanges: connections.exchanges,
    evict: (exchange) => respond.fail(exchange, overloaded()),
  });
  const currentExchange = createCurrentExchange();
  const background = createBackgroundWork(log, currentExchange.leave);
  const proxies = parseTrustedProxies(settings.trustedProxies);
  const newRequestId = createRequestIds();
  const events: EventParts = { proxies, base: basePath };
  const isMeasured = requestLog !== undefined || observer !== undefined;
  let inFlight = 0;

  const createRows = prepareSteps({
    ...{ groups, credentials, identity, docs, tools, callTool, toolAccess: settings.mcp, limiter, proxies, log },
    ...{ background, base: basePath, currentExchange, respond, fail: respond.fail, resume: advance },
    addressRate: settings.rateLimit,
    operationTimeout: settings.operationTimeout,
    bodyLimit,
    intake: { budget, isFull },
    isSecure: transport.isSecure,
  });

  /**
   * Serves one request. The comment at the end of a line names the statuses with which the line refuses. The last lines
   * choose the steps (steps.ts) of the row of routes.ts that the request fits.
   */
  function serve(exchange: Exchange): void {
    try {
      const { broken } = exchange.request;
      if (broken !== undefined) throw refusal(broken); // 400, 408, 417
      if (isBroken) throw refusal('SERVICE_NOT_LOADABLE'); // 500
      checkHead(exchange.request, exchange.head); // 400, 501, 505
      if (isServerWide(exchange)) return respond.preflight(exchange);
      readTarget(exchange); //                       400
      if (isFull()) throw overloaded(); //           503
      const row = findRow(exchange); //              404
      if (isPreflight(exchange)) return respond.preflight(exchange);
      exchange.page = row.page;
      exchange.slugs = row.slugs;
      exchange.steps = rows[row.route.target];
    } catch (error) {
      return respond.fail(exchange, error);
    }
    advance(exchange);
  }

  /**
   * Serves a call by a tool. The message that brings the call has already passed the first steps. The request of the
   * message is in flight, so the call itself is not counted.
   */
  function callTool(outer: Exchange, call: ToolCall): Promise<CapturedAnswer> {
    return new Promise((resolve) => {
      const exchange = createCallExchange(outer, call, tools as ToolServer, isMeasured ? performance.now() : 0);
      exchange.capture = resolve;
      serveFollowed(exchange, outer.event, events, serveCall);
    });
  }

  function serveCall(exchange: Exchange): void {
    try {
      readTarget(exchange);
      const row = findRow(exchange);
      if (row.route.target !== 'gateway.index') throw refusal('ROUTE_NOT_FOUND');
      exchange.page = row.page;
      exchange.slugs = row.slugs;
      exchange.steps = rows['mcp.call'];
    } catch (error) {
      return respond.fail(exchange, error);
    }
    advance(exchange);
  }

  let rows = createRows(undefined);
  let isBroken = false;

  /** Runs the remaining steps. All run in this tick, until one has to wait for something. */
  function advance(exchange: Exchange): void {
    const { steps } = exchange;
    try {
      while (exchange.step < steps.length && !exchange.isAnswered) {
        const step = steps[exchange.step++] as Step;
        const outcome = step(exchange);
        if (outcome === undefined) continue;
        if (outcome !== 'later')
          outcome.then(
            () => advance(exchange),
            (error) => respond.fail(exchange, error),
          );
        return;
      }
    } catch (error) {
      respond.fail(exchange, error);
    }
  }

  function readTarget(exchange: Exchange): void {
    const target = exchange.request.url as string;
    const end = pathEnd(target);
    if (end < target.length) exchange.queryText = readQuery(target, end + 1);
    exchange.resolved = router.resolve(end < target.length ? target.slice(0, end) : target);
  }

  function findRow({ resolved, verb }: Exchange): RouteMatch {
    const row = firstFit(resolved?.matches ?? [], verb);
    if (row === undefined) throw refusal('NOT_FOUND', `Nothing is served outside ${basePath}`);
    return row;
  }

  /** Holds a request back until the earlier requests on its connection have their answers. */
  function begin(request: Request, response: ServerResponse, expectation: Expectation): void {
    if (response.socket === null) connections.defer(response, () => start(request, response, expectation));
    else start(request, response, expectation);
  }

  function start(request: Request, response: ServerResponse, expectation: Expectation): void {
    const exchange = new Exchange(request, response, isMeasured ? performance.now() : 0);
    if (!connections.begin(exchange)) return;
    inFlight++;
    exchange.requestId = newRequestId(exchange.head.requestId);
    exchange.expectsContinue = expectation === 'continue';
    // Node's parser drops the bytes that follow a request with an `Upgrade` header. So the connection ends after the
    // answer.
    if (exchange.head.hasUpgrade) response.shouldKeepAlive = false;
    if (expectation === 'unknown') request.broken ??= 'EXPECTATION_FAILED';
    serveFollowed(exchange, undefined, events, serve);
  }

  /**
   * Says whether too many requests are under way. An upload counts as a request only when it is complete. Until then,
   * the body budget counts its bytes.
   */
  function isFull(): boolean {
    return inFlight - budget.uploads() > maxInFlight;
  }

  /**
   * Ends the counting of a request when its answer is complete, or when its streamed answer begins. The reason:
   * MAX_CONNECTIONS limits the streamed answers, and MAX_IN_FLIGHT limits all others. The memory of the body is
   * released, because a request whose answer has begun no longer needs its body.
   */
  function leaveFlight(exchange: Exchange): void {
    inFlight--;
    exchange.received = undefined;
    exchange.input = undefined;
    budget.release(exchange);
  }

  function finish(exchange: Exchange): void {
    if (exchange.capture !== undefined) return budget.release(exchange);
    if (!exchange.isStreamingAnswer) leaveFlight(exchange);
    connections.end(exchange);
  }

  const server = createRequestServer(transport, settings, begin);
  // With TLS a request has the socket that exists after the handshake, and not the one that was accepted.
  connections.watch(server, transport.isSecure ? 'secureConnection' : 'connection');
  answerClientErrors(server, { respond, newRequestId, connections });

  return {
    server,
    useService(state) {
      const service = state.kind === 'loaded' ? state.service : undefined;
      isBroken = state.kind === 'broken';
      rows = createRows(service);
      respond.useService(service);
    },
    rawRefusal: (code) => respond.rawRefusal(refusal(code), newRequestId()),
    setDraining: respond.setDraining,
    inFlight: () => inFlight,
    pendingWork: background.pending,
    giveUpWork: background.giveUp,
    failCurrentRequest(thrown) {
      const exchange = currentExchange.get();
      if (exchange !== undefined) respond.fail(exchange, thrown);
    },
    currentRequestIds() {
      const exchange = currentExchange.get();
      return exchange && idsOf(exchange);
    },
  };
}

/** `OPTIONS *` asks about the whole server and has no path (RFC 9110, 9.3.7). */
function isServerWide({ request, verb }: Exchange): boolean {
  return request.url === '*' && verb === 'OPTIONS';
}

function isPreflight({ head, verb }: Exchange): boolean {
  return verb === 'OPTIONS' && head.authorization === undefined;
}

// One request, top to bottom: head, target, route, then an explicit handler or the gateway. This file opens no port and
// reads no environment; the caller of createApp() listens.
import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { createServer } from '../base/builtins.ts';
import { refusal } from '../base/errors.ts';
import type { LineSink, Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { ControllerParams } from '../controller.ts';
import { NO_SETTINGS } from '../groups/operation-settings.ts';
import type { OperationMethod } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import { createRateLimiter, type RateLimiter } from '../limits/rate-limiter.ts';
import { createAccessLog } from './access-log.ts';
import { trustedProxies } from './address.ts';
import { createAdmission } from './admission.ts';
import { answerClientErrors } from './answer/client-error.ts';
import { createResponder, type RequestObserver } from './answer/response.ts';
import { createBackgroundWork } from './background.ts';
import { overloaded } from './body/body.ts';
import { createBodyBudget, defaultBodyBudget } from './body/budget.ts';
import { trackConnections } from './connections.ts';
import { createRequestAtHand } from './current-exchange.ts';
import { type Call, createDispatcher } from './dispatcher.ts';
import { Exchange } from './exchange.ts';
import { admit, type CallerTable, createGateway, type Gateway } from './gateway.ts';
import { checkHead, Request } from './head.ts';
import { createStreamWatch } from './open-streams.ts';
import { createRequestIds } from './request-id.ts';
import { createRouter, firstFit } from './router.ts';
import { type Route, type RouteTarget, routesWith } from './routes.ts';
import { checkQuery, pathEnd } from './target.ts';

type Identify = CallerTable['identify'];

/** The answer of an explicit handler. The body carries a secret, so it is never cached. */
export interface ExplicitAnswer {
  readonly status: number;
  readonly body: object;
}

export type ExplicitHandler = (data: unknown, params: ControllerParams) => Promise<ExplicitAnswer>;

export interface AppParts {
  readonly settings: Settings;
  readonly log: Log;
  /** The sink for the line of each request; undefined: no line is written. */
  readonly requestLog?: LineSink | undefined;
  readonly groups: Pick<Groups, 'find'>;
  readonly credentials: CallerTable;
  readonly identity: { readonly signin: ExplicitHandler; readonly register: ExplicitHandler };
  /** Both answer as operations do. */
  readonly docs: { readonly openapi: OperationMethod; readonly page: OperationMethod };
  readonly observer?: RequestObserver | undefined;
  /** Default: a limiter that counts for this process alone. */
  readonly limiter?: Pick<RateLimiter, 'check'> | undefined;
  readonly routes?: readonly Route[];
  /** The source of connections; default: HTTP without TLS. */
  readonly transport?: Transport | undefined;
}

export interface Transport {
  createServer(options: ServerOptions, listener: RequestListener): Server;
  readonly isSecure: boolean;
}

const PLAIN: Transport = { createServer, isSecure: false };

export interface App {
  /** The server, which does not listen yet. */
  readonly server: Server;
  /** Makes every answer from now on end its connection. */
  setDraining(): void;
  /** The number of requests that have come and are not answered yet. */
  inFlight(): number;
  /** The number of pieces of work after their answers (`params.waitUntil`) that are under way. */
  pendingWork(): number;
  /** Stops waiting for that work, and logs the pieces that have not ended. */
  giveUpWork(): void;
  /**
   * Answers with 500 the request whose operation led to the throw, unless it has its answer. No other request is
   * touched. An `uncaughtException` listener calls this.
   */
  failRequestAtHand(thrown: unknown): void;
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
  routes = routesWith(settings.docs),
  transport = PLAIN,
}: AppParts): App {
  const { bodyLimit, operationTimeout, maxInFlight, development } = settings;
  const router = createRouter(routes);
  const accessLog = requestLog && createAccessLog(requestLog);
  const respond = createResponder({
    log,
    accessLog,
    bodyLimit,
    development,
    isSecure: transport.isSecure,
    observer,
    onSettled: finish,
    onStreaming: leaveFlight,
    isFollowed: (exchange) => connections.isFollowed(exchange),
    watch: createStreamWatch(credentials),
  });
  const bodyBudget = settings.bodyBudget ?? defaultBodyBudget(bodyLimit);
  const budget = createBodyBudget({
    limit: bodyBudget,
    bodyLimit,
    exchanges: () => connections.exchanges(),
    evict: (exchange) => respond.fail(exchange, overloaded()),
  });
  const atHand = createRequestAtHand();
  const background = createBackgroundWork(log);
  const proxies = trustedProxies(settings.trustedProxies);
  const admission = createAdmission({ limiter, addressRate: settings.rateLimit, proxies });
  const dispatcher = createDispatcher({
    respond,
    log,
    bodyLimit,
    intake: { budget, isFull },
    admission,
    operationTimeout,
    atHand,
    params: { log, background, proxies },
  });
  const requestIds = createRequestIds();
  const identify: Identify = (authorization) => credentials.identify(authorization);
  const targets: Record<RouteTarget, Gateway> = {
    'gateway.index': createGateway({ groups, credentials, admission, dispatcher, respond }),
    'identity.signin': single('signin', identity, identity.signin, secret),
    'identity.register': single('register', identity, identity.register, secret),
    'docs.openapi': single('openapi', docs, docs.openapi, respond.result, identify),
    'docs.page': single('page', docs, docs.page, respond.result, identify),
  };
  const isMeasured = requestLog !== undefined || observer !== undefined;
  let inFlight = 0;

  function secret(exchange: Exchange, result: unknown): void {
    const { status, body } = result as ExplicitAnswer;
    respond.secret(exchange, status, body);
  }

  /**
   * The gateway of one operation that has no group. Without `identify` the credential of a request is not looked at.
   */
  function single(
    name: string,
    controller: object,
    method: OperationMethod,
    answer: Call['answer'],
    identify?: Identify,
  ): Gateway {
    const operation = {
      name,
      controller,
      method,
      settings: NO_SETTINGS,
      depth: 0,
      guards: undefined,
      check: undefined,
    };
    const call: Call = { operation, byName: false, answer };
    return (exchange, match) => {
      const { authorization } = exchange.head;
      exchange.page = match.page;
      exchange.operation = name;
      if (identify === undefined || authorization === undefined) {
        admission.caller(exchange);
        return dispatcher.call(exchange, call);
      }
      Promise.resolve(identify(authorization))
        .then((caller) => {
          admit(exchange, caller, admission);
          dispatcher.call(exchange, call);
        })
        .catch((error) => respond.fail(exchange, error));
    };
  }

  function serve(exchange: Exchange): void {
    const { request, head } = exchange;
    try {
      checkHead(request, head);
      const target = request.url as string;
      if (target === '*' && exchange.verb === 'OPTIONS') return respond.preflight(exchange);
      const end = pathEnd(target);
      if (end < target.length) exchange.queryText = checkQuery(target, end + 1);
      const resolved = router.resolve(end < target.length ? target.slice(0, end) : target);
      exchange.resolved = resolved;
      if (isFull()) throw overloaded();
      const match = firstFit(resolved.matches, exchange.verb);
      if (match === undefined) throw refusal('NOT_FOUND');
      targets[match.route.target](exchange, match);
    } catch (error) {
      respond.fail(exchange, error);
    }
  }

  function begin(request: Request, response: ServerResponse, expectation?: 'continue' | 'unknown'): void {
    // The request before this one on its connection has not had its answer.
    if (response.socket === null) connections.defer(response, () => start(request, response, expectation));
    else start(request, response, expectation);
  }

  function start(request: Request, response: ServerResponse, expectation: 'continue' | 'unknown' | undefined): void {
    const exchange = new Exchange(request, response, isMeasured ? performance.now() : 0);
    if (!connections.begin(exchange)) return;
    inFlight++;
    exchange.requestId = requestIds.of(exchange.head.requestId);
    exchange.expectsContinue = expectation === 'continue';
    // Node's parser drops the bytes that have come behind such a request.
    if (exchange.head.hasUpgrade) response.shouldKeepAlive = false;
    if (request.broken !== undefined) respond.fail(exchange, refusal(request.broken));
    else if (expectation === 'unknown') respond.fail(exchange, refusal('EXPECTATION_FAILED'));
    else serve(exchange);
  }

  /** An upload that is not complete is no request yet: it costs bytes, which the budget counts, and no operation. */
  function isFull(): boolean {
    return inFlight - budget.uploads() > maxInFlight;
  }

  /**
   * A streamed answer is bounded by MAX_CONNECTIONS, and not by MAX_IN_FLIGHT. The body of its request is not needed
   * any more.
   */
  function leaveFlight(exchange: Exchange): void {
    inFlight--;
    exchange.received = undefined;
    budget.release(exchange);
  }

  function finish(exchange: Exchange): void {
    if (!exchange.streaming) leaveFlight(exchange);
    connections.end(exchange);
  }

  const server = transport.createServer(
    {
      IncomingMessage: Request,
      // Node's default is 30 s.
      connectionsCheckingInterval: 1000,
      // connections.ts ends connections that idle.
      keepAliveTimeout: 0,
      // A request without a body is no stream that has to be read to its end. Node before 24 ignores this.
      optimizeEmptyRequests: true,
      // Node refuses a head that may take longer than the request it begins.
      headersTimeout: Math.min(settings.headersTimeout, settings.requestTimeout),
      requestTimeout: settings.requestTimeout,
      // head.ts checks the header: Node's answer would be without envelope and CORS.
      requireHostHeader: false,
    },
    (request, response) => begin(request as Request, response),
  );
  // Node's limit would drop header lines in silence; head.ts counts them.
  server.maxHeadersCount = 0;
  server.on('checkContinue', (request: Request, response: ServerResponse) => begin(request, response, 'continue'));
  server.on('checkExpectation', (request: Request, response: ServerResponse) => begin(request, response, 'unknown'));
  const { keepAliveTimeout, requestTimeout: readTimeout, maxConnections } = settings;
  // With TLS the socket of a request is not the one that was accepted, but the one on top of it after the handshake.
  const event = transport.isSecure ? 'secureConnection' : 'connection';
  const connections = trackConnections(server, {
    keepAliveTimeout,
    readTimeout,
    maxUnread: bodyBudget,
    maxConnections,
    event,
  });
  answerClientErrors(server, { respond, newRequestId: () => requestIds.of(undefined), connections });

  return {
    server,
    setDraining: respond.setDraining,
    inFlight: () => inFlight,
    pendingWork: background.pending,
    giveUpWork: background.giveUp,
    failRequestAtHand(thrown) {
      const exchange = atHand.current();
      if (exchange !== undefined) respond.fail(exchange, thrown);
    },
  };
}

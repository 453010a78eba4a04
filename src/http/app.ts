// One request, top to bottom: head, target, route, then an explicit handler or the gateway. It opens no port and reads no
// environment; whoever creates it listens.
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

/** What an explicit handler answers; it carries a secret, so it is never cached. */
export interface ExplicitAnswer {
  readonly status: number;
  readonly body: object;
}

export type ExplicitHandler = (data: unknown, params: ControllerParams) => Promise<ExplicitAnswer>;

export interface AppParts {
  readonly settings: Settings;
  readonly log: Log;
  /** Where the line of each request goes; undefined: nowhere. */
  readonly requestLog?: LineSink | undefined;
  readonly groups: Pick<Groups, 'find'>;
  readonly credentials: CallerTable;
  readonly identity: { readonly signin: ExplicitHandler; readonly register: ExplicitHandler };
  /** Each answers as an operation does. */
  readonly docs: { readonly openapi: OperationMethod; readonly page: OperationMethod };
  readonly observer?: RequestObserver | undefined;
  /** Default: one that counts for this process alone. */
  readonly limiter?: Pick<RateLimiter, 'check'> | undefined;
  readonly routes?: readonly Route[];
  /** Where connections come from; default: HTTP without TLS. */
  readonly transport?: Transport | undefined;
}

export interface Transport {
  createServer(options: ServerOptions, listener: RequestListener): Server;
  readonly isSecure: boolean;
}

const PLAIN: Transport = { createServer, isSecure: false };

export interface App {
  /** Not listening. */
  readonly server: Server;
  /** From now on every answer ends its connection. */
  setDraining(): void;
  /** Requests that have come and are not answered yet. */
  inFlight(): number;
  /** Pieces of work after their answers (`params.waitUntil`) that are under way. */
  pendingWork(): number;
  /** It is waited for no longer, and what has not ended is told in the log. */
  giveUpWork(): void;
  /**
   * For an `uncaughtException` listener: the request whose operation led to the throw gets its 500 now, unless it has its
   * answer. No other request is touched.
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
  const targets: Record<RouteTarget, Gateway> = {
    'gateway.index': createGateway({ groups, credentials, admission, dispatcher, respond }),
    'identity.signin': explicit('signin', identity.signin),
    'identity.register': explicit('register', identity.register),
    'docs.openapi': documented('openapi', docs.openapi),
    'docs.page': documented('page', docs.page),
  };
  const isMeasured = requestLog !== undefined || observer !== undefined;
  let inFlight = 0;

  function explicit(name: string, handler: ExplicitHandler): Gateway {
    const answer: Call['answer'] = (exchange, result) =>
      respond.secret(exchange, (result as ExplicitAnswer).status, (result as ExplicitAnswer).body);
    const operation = {
      name,
      controller: identity,
      method: handler,
      settings: NO_SETTINGS,
      guards: undefined,
      depth: 0,
      check: undefined,
    };
    return (exchange, match) => {
      exchange.page = match.page;
      exchange.operation = name;
      admission.caller(exchange);
      dispatcher.call(exchange, { operation, byName: false, answer });
    };
  }

  /** An operation of no group. Whether it needs a credential is its own business. */
  function documented(name: string, method: OperationMethod): Gateway {
    const operation = { name, controller: docs, method, settings: NO_SETTINGS, depth: 0, guards: undefined, check: undefined };
    const call: Call = { operation, byName: false, answer: respond.result };
    return (exchange, match) => {
      const { authorization } = exchange.head;
      exchange.page = match.page;
      exchange.operation = name;
      if (authorization === undefined) {
        admission.caller(exchange);
        return dispatcher.call(exchange, call);
      }
      Promise.resolve(credentials.identify(authorization))
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
    // Another one on its connection has not had its answer.
    if (response.socket === null) connections.defer(response, () => start(request, response, expectation));
    else start(request, response, expectation);
  }

  function start(request: Request, response: ServerResponse, expectation: 'continue' | 'unknown' | undefined): void {
    const exchange = new Exchange(request, response, isMeasured ? performance.now() : 0);
    if (!connections.begin(exchange)) return;
    inFlight++;
    exchange.requestId = requestIds.of(exchange.head.requestId);
    exchange.expectsContinue = expectation === 'continue';
    // Node's parser drops what has come behind such a request.
    if (exchange.head.hasUpgrade) response.shouldKeepAlive = false;
    if (request.broken !== undefined) respond.fail(exchange, refusal(request.broken));
    else if (expectation === 'unknown') respond.fail(exchange, refusal('EXPECTATION_FAILED'));
    else serve(exchange);
  }

  /** An upload that is not complete is no request yet: it costs bytes, which the budget counts, and no operation. */
  function isFull(): boolean {
    return inFlight - budget.uploads() > maxInFlight;
  }

  /** What a connection is long busy with is bounded by the connections, and not by MAX_IN_FLIGHT; its body is of no use any more. */
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
      // Node checks every 30 s unless it is told to here.
      connectionsCheckingInterval: 1000,
      // connections.ts ends what idles.
      keepAliveTimeout: 0,
      // A request without a body is no stream that has to be run dry first; Node before 24 does not know it.
      optimizeEmptyRequests: true,
      // Node refuses a head that may take longer than the request it begins.
      headersTimeout: Math.min(settings.headersTimeout, settings.requestTimeout),
      requestTimeout: settings.requestTimeout,
      // Ours is checked in head.ts: Node's answer would be without envelope and CORS.
      requireHostHeader: false,
    },
    (request, response) => begin(request as Request, response),
  );
  // No limit that drops lines in silence; head.ts counts them.
  server.maxHeadersCount = 0;
  server.on('checkContinue', (request: Request, response: ServerResponse) => begin(request, response, 'continue'));
  server.on('checkExpectation', (request: Request, response: ServerResponse) => begin(request, response, 'unknown'));
  const { keepAliveTimeout, requestTimeout: readTimeout, maxConnections } = settings;
  // With TLS a request's socket is not what was accepted, but what stands on it once the handshake is done.
  const event = transport.isSecure ? 'secureConnection' : 'connection';
  const connections = trackConnections(server, { keepAliveTimeout, readTimeout, maxUnread: bodyBudget, maxConnections, event });
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

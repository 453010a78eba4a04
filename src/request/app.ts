// Serves one request, from top to bottom: `serve` refuses bad requests, finds the row of routes.ts, and then runs the
// steps (steps.ts) of that row. A request is in flight from its start until its answer is complete, or until a streamed
// answer begins. This file reads no environment variable. The caller of createApp() makes the server listen.
import type { ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { maxConnections } from '../base/descriptors.ts';
import { type ErrorCode, type HttpErrorOptions, refusal } from '../base/errors.ts';
import type { RequestIds } from '../base/events.ts';
import { FALLBACK } from '../base/group-name.ts';
import { idsOf, type LineSink, type Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { addressOf, networkOf, parseTrustedProxies } from '../callers/access/address.ts';
import type { CallerTable } from '../callers/access/key-check.ts';
import { createStreamWatch } from '../callers/access/open-streams.ts';
import { createRateLimiter, type RateLimiter } from '../callers/rates/rate-limiter.ts';
import type { ServiceState } from '../live/load/registry.ts';
import { createAccessLog } from './access-log.ts';
import type { CapturedAnswer } from './answer/answer-state.ts';
import { answerClientErrors } from './answer/client-error.ts';
import type { RequestObserver } from './answer/report.ts';
import { Responder } from './answer/response.ts';
import { createBackgroundWork } from './background.ts';
import { overloaded } from './body/body.ts';
import { createBodyBudget, defaultBodyBudget } from './body/budget.ts';
import { StreamedUploads } from './body/streamed-uploads.ts';
import { createConnections } from './connections/connections.ts';
import { defer } from './connections/pipelining.ts';
import { Exchange, type Step, type ToolCall } from './exchange.ts';
import { createExchangeContexts } from './exchange-contexts.ts';
import type { PublicFiles } from './files/public-files.ts';
import { checkHead, createRequestIds, type Request } from './head.ts';
import { type EventSettings, routeOf, serveAndPublish } from './request-event.ts';
import { createRouter, firstMatch, type ResolvedPath, type RouteMatch } from './router.ts';
import { FILE, routeOutside, routeTable } from './routes.ts';
import { createRequestServer, type Expectation, PLAIN, type Transport } from './server.ts';
import { prepareSteps, type TargetParts } from './steps.ts';
import { checkBytes } from './target.ts';
import { createCallExchange, type ToolServer } from './tool-calls.ts';

export interface AppParts extends TargetParts {
  readonly settings: Settings;
  readonly log: Log;
  /** Receives a line for each request; undefined when requests are not logged. */
  readonly requestLog?: LineSink | undefined;
  readonly credentials: CallerTable;
  /** The files of PUBLIC_DIR; undefined when it is not set. */
  readonly files?: PublicFiles | undefined;
  /** Undefined when MCP is off. */
  readonly tools?: ToolServer | undefined;
  readonly observer?: RequestObserver | undefined;
  /** Default: a limiter that counts the calls of this process alone. */
  readonly limiter?: Pick<RateLimiter, 'check' | 'giveBack'> | undefined;
  readonly transport?: Transport | undefined;
  /** The highest descriptor that a connection may have (base/descriptors.ts). */
  readonly maxDescriptor?: number | undefined;
  /** Notes the operation that begins, by its verb and route, for the case that it never ends. */
  readonly noteBegin?: ((operation: string, requestId: string) => void) | undefined;
  /** Returns the number of requests that wait for a new generation of workers. They do not count as in flight. */
  readonly waitingForGroups?: (() => number) | undefined;
}

export type App = ReturnType<typeof createApp>;

export function createApp(parts: AppParts) {
  const { settings, log, requestLog, groups, credentials, identity, observer, docs, files, tools } = parts;
  const { noteBegin, limiter = createRateLimiter(), transport = PLAIN, waitingForGroups = () => 0 } = parts;
  const { bodyLimit, bodyBudget = defaultBodyBudget(bodyLimit), maxInFlight, basePath } = settings;
  const router = createRouter(routeTable(settings.docs, basePath, tools && settings.mcp), basePath);
  const connections = createConnections({
    keepAliveTimeout: settings.keepAliveTimeout,
    readTimeout: settings.requestTimeout,
    maxUnread: bodyBudget,
    maxConnections: maxConnections(settings.maxConnections),
    maxDescriptor: parts.maxDescriptor,
  });
  const contexts = createExchangeContexts(
    noteBegin && ((exchange) => noteBegin(`${exchange.verb} ${routeOf(exchange, basePath) ?? ''}`, exchange.requestId)),
  );
  const respond = new Responder({
    ...{ log, observer, basePath, bodyLimit, contexts },
    accessLog: requestLog && createAccessLog(requestLog),
    showsCauses: settings.development,
    ...{ isSecure: transport.isSecure, compresses: settings.compression === 'on' },
    ...{ onAnswered: finish, onStreaming: leaveFlight },
    watchStream: createStreamWatch(credentials),
  });
  const budget = createBodyBudget({
    limit: bodyBudget,
    exchanges: connections.exchanges,
    evict: (exchange) => respond.fail(exchange, overloaded()),
  });
  const background = createBackgroundWork(log, contexts.leaveContext);
  const proxies = parseTrustedProxies(settings.trustedProxies);
  const streamedUploads = new StreamedUploads({
    limit: maxInFlight,
    networkOf: (exchange) => networkOf(addressOf(exchange, proxies)),
  });
  const newRequestId = createRequestIds();
  const eventSettings: EventSettings = { proxies, basePath };
  const isMeasured = requestLog !== undefined || observer !== undefined;
  const startTime = () => (isMeasured ? performance.now() : 0);
  let inFlight = 0;

  const createSteps = prepareSteps({
    ...{ groups, credentials, identity, docs, files, tools, callTool, toolAccess: settings.mcp, limiter, proxies, log },
    ...{ background, basePath, contexts, respond, resume: advance },
    ...{ bodyLimit, domains: settings.domains, port: settings.port, isSecure: transport.isSecure },
    ...{ addressRate: settings.rateLimit, operationTimeout: settings.operationTimeout },
    ...{ processLimits: { budget, streamedUploads, isFull }, publicOrigins: settings.publicOrigin },
  });

  /** Serves one request. The comment at the end of a line names the statuses with which the line refuses. */
  function serve(exchange: Exchange): void {
    try {
      const { earlyError } = exchange.request;
      if (earlyError !== undefined) throw refusal(earlyError); // 400, 408, 417
      if (fault) throw refusal('SERVICE_NOT_LOADABLE', undefined, fault); // 500
      checkHead(exchange.request, exchange.head); // 400, 501, 505
      if (asksAboutServer(exchange)) return respond.preflight(exchange);
      readTarget(exchange); //                       400
      const match = findMatch(exchange); //          404
      const isAsked = match.route !== FILE && isPreflight(exchange);
      if (isAsked && !groups.ownsCors()) return respond.preflight(exchange);
      if (isFull()) throw overloaded(); //           503
      exchange.groupInUrl = match.groupInUrl;
      exchange.slugs = match.slugs;
      exchange.steps = stepsByTarget[isAsked ? 'gateway.preflight' : match.route.target];
    } catch (error) {
      return respond.fail(exchange, error);
    }
    advance(exchange);
  }

  /**
   * Serves a tool call of the Model Context Protocol (MCP). The request that brings the call, `outer`, has passed
   * `serve` and counts as in flight. So the exchange of the call does not count.
   */
  function callTool(outer: Exchange, call: ToolCall): Promise<CapturedAnswer> {
    return new Promise((resolve) => {
      const exchange = createCallExchange(outer, call, tools as ToolServer, startTime());
      exchange.answer.capture = resolve;
      exchange.steps = [findCalledRow, ...stepsByTarget['mcp.call']];
      serveAndPublish(exchange, outer.event, eventSettings, advance);
    });
  }

  function findCalledRow(exchange: Exchange): undefined {
    readTarget(exchange);
    const { route, groupInUrl, slugs } = findMatch(exchange);
    if (route.target !== 'gateway.index') throw refusal('ROUTE_NOT_FOUND');
    Object.assign(exchange, { groupInUrl, slugs });
  }

  let stepsByTarget = createSteps(undefined);
  /** Set while the service file is broken. Only development has the cause, because each request logs it. */
  let fault: HttpErrorOptions | undefined;

  /** Runs the remaining steps, until one of them waits for something or has answered the request. */
  function advance(exchange: Exchange): void {
    const { steps } = exchange;
    try {
      while (exchange.stepsBegun < steps.length && !exchange.answer.isComplete) {
        const step = steps[exchange.stepsBegun++] as Step;
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
    const queryMark = target.indexOf('?');
    if (queryMark >= 0) {
      checkBytes(target, queryMark + 1);
      exchange.queryText = target.slice(queryMark + 1);
    }
    exchange.resolvedPath = router.resolve(queryMark < 0 ? target : target.slice(0, queryMark));
  }

  /** @param exchange one for which `readTarget` has been called */
  function findMatch({ resolvedPath, verb }: Exchange): RouteMatch {
    const { matches, path } = resolvedPath as ResolvedPath;
    const match = firstMatch(matches, verb);
    if (match !== undefined) return match;
    const route = routeOutside(files !== undefined, groups.find(FALLBACK) !== undefined);
    if (route === undefined) throw refusal('NOT_FOUND', `Nothing is served outside ${basePath}`);
    return { route, groupInUrl: FALLBACK, slugs: path.segments, isPartOfSegment: false };
  }

  function startInTurn(request: Request, response: ServerResponse, expectation: Expectation): void {
    // A response has no socket until the earlier requests on its connection have their answers.
    if (response.socket === null) defer(response, () => start(request, response, expectation));
    else start(request, response, expectation);
  }

  function start(request: Request, response: ServerResponse, expectation: Expectation): void {
    const exchange = new Exchange(request, response, startTime());
    if (!connections.begin(exchange)) return;
    inFlight++;
    exchange.requestId = newRequestId(exchange.head.requestId);
    exchange.body.expectsContinue = expectation === 'continue';
    // Node's parser drops the bytes that follow a request with `Upgrade`, so the connection ends after the answer.
    if (exchange.head.upgrade !== undefined) response.shouldKeepAlive = false;
    if (expectation === 'unknown') request.earlyError ??= 'EXPECTATION_FAILED';
    serveAndPublish(exchange, undefined, eventSettings, serve);
  }

  /** Says whether over MAX_IN_FLIGHT requests are in flight, without those that wait for bytes or for a group. */
  function isFull(): boolean {
    const excess = inFlight - budget.uploadCount() - maxInFlight;
    return excess > 0 && excess > streamedUploads.waitingCount() + waitingForGroups();
  }

  /** Called when the answer is complete, or streams: MAX_CONNECTIONS limits streams, and MAX_IN_FLIGHT does not. */
  function leaveFlight(exchange: Exchange): void {
    inFlight--;
    exchange.body.received = undefined;
    exchange.input = undefined;
    budget.release(exchange);
  }

  function finish(exchange: Exchange): void {
    // A tool call does not count as in flight, and the request that brought the call still uses the connection.
    if (exchange.answer.capture !== undefined) return budget.release(exchange);
    if (!exchange.answer.isStreaming) leaveFlight(exchange);
    streamedUploads.end(exchange);
    connections.end(exchange);
  }

  const server = createRequestServer(transport, settings, startInTurn);
  // With TLS, the socket of a request is the one that Node makes after the handshake, and not the accepted one.
  connections.watch(server, transport.isSecure ? 'secureConnection' : 'connection');
  answerClientErrors(server, respond, newRequestId);

  return {
    server,
    /** Uses this state of the service file from now on. When the service file is broken, every request gets a 500. */
    useService(state: ServiceState): void {
      const service = state.kind === 'loaded' ? state.service : undefined;
      fault = state.kind === 'broken' ? { cause: settings.development ? state.cause : undefined } : undefined;
      stepsByTarget = createSteps(service);
      respond.useService(service);
    },
    /** Returns the text of a whole HTTP response, for a connection whose bytes are not a valid request. */
    rawRefusal: (code: ErrorCode) => respond.rawRefusal(refusal(code), newRequestId()),
    /** Makes every answer from now on end its connection. */
    setDraining: () => respond.setDraining(),
    inFlight: () => inFlight,
    refusedConnections: connections.refused,
    /** Returns the number of pending promises that were given to `params.waitUntil`. Their work outlasts the answer. */
    pendingWork: background.pending,
    giveUpWork(): void {
      for (const exchange of connections.lostExchanges) respond.complete(exchange, 499, 0);
      background.giveUp();
    },
    /** Called for an `uncaughtException`. If the author's code threw, the answer is a 500, or a stream is cut. */
    failCurrentRequest(thrown: unknown): void {
      const exchange = contexts.current();
      if (exchange === undefined || exchange.answer.isComplete) return;
      respond.fail(exchange, thrown);
      exchange.abort(new Error('the request has failed'));
    },
    /** Returns, for the log, the ids of the request whose operation led to the throw; undefined when there is none. */
    currentRequestIds(): RequestIds | undefined {
      const exchange = contexts.current();
      return exchange && idsOf(exchange);
    },
  };
}

/** Recognises `OPTIONS *`, which asks about the whole server and has no path (RFC 9110, 9.3.7). */
function asksAboutServer({ request, verb }: Exchange): boolean {
  return request.url === '*' && verb === 'OPTIONS';
}

function isPreflight({ head, verb }: Exchange): boolean {
  return verb === 'OPTIONS' && head.authorization === undefined;
}

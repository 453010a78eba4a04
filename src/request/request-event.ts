// The public diagnostics channels of a request, which tracing tools subscribe to. Without a subscriber, a request costs
// one check (five checks before Node 20.13), and no event is made.
//
// tracingChannel('gatefold:request')     the request, from its head to the last byte of its answer
// tracingChannel('gatefold:background')  a promise given to `params.waitUntil`
// channel('gatefold:operation')          for tools that bind an AsyncLocalStorage to it (`bindStore`): code of a
//                                        controller or of the service file runs within their stores
import { channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BackgroundEvent, RequestEvent, Trace } from '../api/controller/trace.ts';
import { FALLBACK, pathOfGroup, servingPage } from '../base/group-name.ts';
import { splitRouteName } from '../base/route-name.ts';
import { addressOf } from '../callers/access/address.ts';
import type { Operation } from '../groups/operations.ts';
import type { Exchange } from './exchange.ts';
import type { Choice } from './operation-choice.ts';
import type { ParamsParts } from './params.ts';
import { firstMatch, type ResolvedPath, type RouteMatch } from './router.ts';

const requestChannel: TracingChannel<object> = tracingChannel('gatefold:request');
const backgroundChannel: TracingChannel<object> = tracingChannel('gatefold:background');
const operationChannel = channel('gatefold:operation');
const PHASES = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

export type EventSettings = Pick<ParamsParts, 'proxies' | 'basePath'>;

/** The event of a request. Most properties are getters, so a request pays only for those that a tool reads. */
export class ExchangeEvent implements RequestEvent {
  status = 0;
  bytes = 0;
  error: unknown;
  readonly parent: RequestEvent | undefined;
  readonly #exchange: Exchange;
  readonly #settings: EventSettings;

  constructor(exchange: Exchange, parent: RequestEvent | undefined, settings: EventSettings) {
    this.#exchange = exchange;
    this.#settings = settings;
    this.parent = parent;
  }

  get request(): IncomingMessage {
    return this.#exchange.request;
  }

  get response(): ServerResponse {
    return this.#exchange.response;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get verb(): string {
    return this.#exchange.verb;
  }

  get path(): string {
    return this.#exchange.resolvedPath?.path.raw ?? (this.#exchange.request.url as string).replace(/\?.*$/s, '');
  }

  get route(): string | undefined {
    return routeOf(this.#exchange, this.#settings.basePath);
  }

  get page(): string {
    return this.#exchange.groupInUrl;
  }

  get operation(): string {
    return this.#exchange.operation;
  }

  get address(): string {
    return addressOf(this.#exchange, this.#settings.proxies);
  }

  get tool(): string | undefined {
    return this.#exchange.toolCall?.name;
  }

  get trace(): Trace | undefined {
    return this.#exchange.trace;
  }

  set trace(trace: Trace | undefined) {
    this.#exchange.trace = trace;
  }
}

/** Says whether a tool has subscribed. Before Node 20.13, only the five channels of a TracingChannel show this. */
function hasFollower(tracing: TracingChannel<object>): boolean {
  return tracing.hasSubscribers ?? PHASES.some((phase) => tracing[phase].hasSubscribers);
}

/**
 * Serves a request, and publishes its events when a tool follows requests. If the answer is sent before `serve`
 * returns, `asyncStart` and `asyncEnd` are still published after `end`, which is Node's order.
 */
export function serveAndPublish(
  exchange: Exchange,
  parent: RequestEvent | undefined,
  settings: EventSettings,
  serve: (exchange: Exchange) => void,
): void {
  if (parent !== undefined) exchange.trace = parent.trace;
  if (!hasFollower(requestChannel)) return serve(exchange);
  const event = new ExchangeEvent(exchange, parent, settings);
  exchange.event = event;
  requestChannel.start.runStores(event, serve, undefined, exchange);
  requestChannel.end.publish(event);
  if (event.status !== 0) publishAnswer(event);
  else exchange.returnedBeforeAnswer = true;
}

/**
 * Stores the status and the size in the event, when the last byte is sent or the client has left. Publishes the event
 * if `serve` has returned already. Otherwise, `serveAndPublish` publishes the event once `serve` has returned.
 */
export function endEvent(exchange: Exchange, status: number, bytes: number): void {
  const { request, socket, event, returnedBeforeAnswer } = exchange;
  if (event === undefined) return;
  // A tool reads the address of the client there, also where a stream of Node has destroyed the request.
  request.socket ??= socket;
  event.status = status;
  event.bytes = bytes;
  if (returnedBeforeAnswer) publishAnswer(event);
}

function publishAnswer(event: ExchangeEvent): void {
  requestChannel.asyncStart.publish(event);
  requestChannel.asyncEnd.publish(event);
}

/** Publishes that the answer is a 5xx. */
export function failEvent({ event }: Exchange, thrown: unknown): void {
  if (event === undefined) return;
  event.error = thrown;
  requestChannel.error.publish(event);
}

/** Calls code of a controller or of the service file, within the AsyncLocalStorage stores that tools have bound. */
export function runFollowed<T>(event: ExchangeEvent, work: () => T): T {
  return operationChannel.runStores(event, work) as T;
}

export function followBackground({ event: requestEvent }: Exchange, work: Promise<unknown>): void {
  if (requestEvent === undefined || !hasFollower(backgroundChannel)) return;
  const event: BackgroundEvent = { request: requestEvent };
  // A rejection is ignored here, because background.ts logs it.
  backgroundChannel.tracePromise(() => work, event).catch(() => {});
}

/** Key: an operation. Value: the path template of its last request. Nearly all requests of an operation share one. */
const cachedTemplates = new WeakMap<Operation, { depth: number; template: string }>();

/** Returns the template of the request's path, such as `/api/order/{id}`; undefined when no operation was found. */
export function routeOf(exchange: Exchange, basePath: string): string | undefined {
  const { operation, resolvedPath, verb, caller, slugs, choice } = exchange;
  if (operation === '') return undefined;
  if (exchange.group === FALLBACK) return '/{path*}';
  // A request for which an operation was found has a row.
  const { route } = firstMatch((resolvedPath as ResolvedPath).matches, verb) as RouteMatch;
  if (route.target !== 'gateway.index') return route.path;
  // The caller's credential has a handler: one group that serves all its requests, whatever the path is.
  if (caller.row?.handler !== undefined) return `${basePath}/{params}`;
  const cached = cachedTemplates.get(choice.operation);
  if (cached?.depth === slugs.length) return cached.template;
  const template = pathOfGroup(basePath, servingPage(exchange)) + templateBelow(choice, slugs.length) || '/';
  cachedTemplates.set(choice.operation, { depth: slugs.length, template });
  return template;
}

/** Returns the part of a template below the group. @param depth the number of segments there */
function templateBelow({ operation: { name }, isByName }: Choice, depth: number): string {
  if (isByName) return `/${name}${depth > 1 ? '/{params}' : ''}`;
  const route = splitRouteName(name);
  if (route === undefined) return depth > 0 ? '/{params}' : '';
  return route.pattern === undefined ? '' : `/${route.pattern}`;
}

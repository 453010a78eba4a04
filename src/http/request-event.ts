// The public channels of a request, by which tools that trace follow it. This file publishes, and subscribes to
// nothing: without a subscriber a request costs one check, and no object is made.
//
// tracingChannel('gatefold:request')     the request, from its head to the last byte of its answer
// tracingChannel('gatefold:background')  a promise given to `params.waitUntil`
// channel('gatefold:operation')          runs the code of a controller or of the service file: bind a store to it
import { channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { splitRouteName } from '../base/route-name.ts';
import type { BackgroundEvent, RequestEvent, Trace } from '../controller/trace.ts';
import type { Operation } from '../groups/operations.ts';
import { addressOf, type TrustedProxies } from './address.ts';
import type { Exchange } from './exchange.ts';
import type { Choice } from './operation-choice.ts';
import { firstFit } from './router.ts';

const requests: TracingChannel<object> = tracingChannel('gatefold:request');
const backgrounds: TracingChannel<object> = tracingChannel('gatefold:background');
const operations = channel('gatefold:operation');

export interface EventParts {
  readonly proxies: TrustedProxies;
  /** BASE_PATH, which is empty when the service is at the root. */
  readonly base: string;
}

/**
 * The event of a request. The facts of the request are getters, so that a request pays only for those that are read.
 */
export class ExchangeEvent implements RequestEvent {
  status = 0;
  bytes = 0;
  error: unknown;
  readonly parent: RequestEvent | undefined;
  readonly #exchange: Exchange;
  readonly #parts: EventParts;

  constructor(exchange: Exchange, parent: RequestEvent | undefined, parts: EventParts) {
    this.#exchange = exchange;
    this.#parts = parts;
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
    return this.#exchange.resolved?.path.raw ?? (this.#exchange.request.url as string).split('?', 1)[0] ?? '';
  }

  get route(): string | undefined {
    return routeOf(this.#exchange, this.#parts.base);
  }

  get page(): string {
    return this.#exchange.page;
  }

  get operation(): string {
    return this.#exchange.operation;
  }

  get address(): string {
    return addressOf(this.#exchange, this.#parts.proxies);
  }

  get tool(): string | undefined {
    return this.#exchange.tool?.name;
  }

  get trace(): Trace | undefined {
    return this.#exchange.trace;
  }

  set trace(trace: Trace | undefined) {
    this.#exchange.trace = trace;
  }
}

/**
 * Says whether a tool follows requests. Node before 20.13 cannot answer for all five channels at once, so two of them
 * are asked.
 */
function isFollowed({ hasSubscribers, start, asyncEnd }: TracingChannel<object>): boolean {
  return hasSubscribers ?? (start.hasSubscribers || asyncEnd.hasSubscribers);
}

/** Serves a request, and publishes its events when a tool follows requests. */
export function serveFollowed(
  exchange: Exchange,
  parent: RequestEvent | undefined,
  parts: EventParts,
  serve: (exchange: Exchange) => void,
): void {
  if (parent !== undefined) exchange.trace = parent.trace;
  if (!isFollowed(requests)) return serve(exchange);
  const event = new ExchangeEvent(exchange, parent, parts);
  exchange.event = event;
  requests.start.runStores(event, serve, undefined, exchange);
  requests.end.publish(event);
  if (event.status !== 0) publishAnswer(event);
  else exchange.hasReturned = true;
}

/** Publishes that the last byte of the answer is out, or that the client has left. */
export function endEvent({ event, hasReturned }: Exchange, status: number, bytes: number): void {
  if (event === undefined) return;
  event.status = status;
  event.bytes = bytes;
  if (hasReturned) publishAnswer(event);
}

function publishAnswer(event: ExchangeEvent): void {
  requests.asyncStart.publish(event);
  requests.asyncEnd.publish(event);
}

/** Publishes that the request has failed. @param thrown the cause of a 5xx */
export function failEvent({ event }: Exchange, thrown: unknown): void {
  if (event === undefined) return;
  event.error = thrown;
  requests.error.publish(event);
}

/** Calls code of the service's author, within the AsyncLocalStorage stores that tools have bound. */
export function runFollowed<T>(event: ExchangeEvent, work: () => T): T {
  return operations.runStores(event, work) as T;
}

/** Publishes a piece of work that continues after the answer. */
export function followBackground({ event: request }: Exchange, work: PromiseLike<unknown>): void {
  if (request === undefined || !isFollowed(backgrounds)) return;
  const event: BackgroundEvent = { request };
  const finish = (): void => {
    backgrounds.asyncStart.publish(event);
    backgrounds.asyncEnd.publish(event);
  };
  backgrounds.start.publish(event);
  backgrounds.end.publish(event);
  Promise.resolve(work).then(finish, (error: unknown) => {
    event.error = error;
    backgrounds.error.publish(event);
    finish();
  });
}

/** A cache of the last path template of each operation. Nearly all requests of an operation have the same template. */
const keptRoutes = new WeakMap<Operation, { page: string; depth: number; route: string }>();

/** Returns the template of the path by which an operation was found. The result is undefined when none was found. */
function routeOf(exchange: Exchange, base: string): string | undefined {
  const { operation, resolved, verb, caller, page, slugs, choice } = exchange;
  if (operation === '') return undefined;
  const row = firstFit(resolved?.matches ?? [], verb)?.route;
  if (row !== undefined && row.target !== 'gateway.index') return row.path;
  // The row of the key has chosen the group, whatever the path is.
  if (caller?.handler !== undefined) return `${base}/{params}`;
  const kept = keptRoutes.get(choice.operation);
  if (kept !== undefined && kept.page === page && kept.depth === slugs.length) return kept.route;
  const group = page === '' ? base || '/' : `${base}/${page}`;
  const route = group + templateBelow(choice, slugs.length);
  keptRoutes.set(choice.operation, { page, depth: slugs.length, route });
  return route;
}

/** @param depth the number of segments below the group */
function templateBelow({ operation: { name }, byName }: Choice, depth: number): string {
  if (byName) return `/${name}${depth > 1 ? '/{params}' : ''}`;
  const route = splitRouteName(name);
  if (route === undefined) return depth > 0 ? '/{params}' : '';
  return route.pattern === undefined ? '' : `/${route.pattern}`;
}

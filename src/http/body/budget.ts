// How many bytes of bodies the process holds at once, and who may go on when they are too many. It counts; the bytes are with
// the exchanges. A body that comes in one piece, as nearly all do, costs two additions; it is never refused and never waits, and
// neither is a small one in several.
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /** Bytes; when one body is larger than a quarter of it, one may pass it. */
  readonly limit: number;
  readonly bodyLimit: number;
  /** Whose bodies may be on their way: the last one of each connection. Looked through once a second while room is short. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Ends an upload that does not move, to make room for those that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export interface BodyBudget {
  /** Bodies that are not complete. */
  uploads(): number;
  /** A body is going to be read. */
  begin(exchange: Exchange): void;
  /**
   * So many bytes more are held, and the rest is still to come; the exchange may be stopped until there is room.
   *
   * @returns false when there is no room for the first of them that UPLOAD_COST does not cover
   */
  take(exchange: Exchange, bytes: number): boolean;
  /** So many bytes more are held. */
  add(exchange: Exchange, bytes: number): void;
  /** The body is complete; its bytes count until the request has its answer. */
  complete(exchange: Exchange): void;
  /** It has its answer. */
  release(exchange: Exchange): void;
  /** Does the work at once, or when fewer are at it: what inflates grows in memory that nobody has counted. */
  inflate(work: (done: () => void) => void): void;
}

/** Bytes that an upload is counted with from its beginning: its socket, its objects, and as much of its body. */
const UPLOAD_COST = 16 * 1024;
/** Bytes that a connection brings in one read. */
const READ = 64 * 1024;
/** While room is short, an upload that brings less than so many bytes in so many milliseconds makes room. */
const SLOWEST_UPLOAD = 4 * 1024;
const STALLED = 1000;
const MOST_INFLATING = 8;
const MOST_BY_DEFAULT = 256 * 1024 * 1024;

/** Where BODY_BUDGET is not set. Never less than two bodies. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MOST_BY_DEFAULT));
}

export function createBodyBudget({ limit, bodyLimit, exchanges, evict }: BodyBudgetOptions): BodyBudget {
  /** Kept for as many bodies as fit into it whole: beyond the other three quarters only they go on, so some always come to an end. */
  const reserve = limit / 4;
  const mostFinishing = Math.max(1, Math.floor(reserve / bodyLimit));
  let held = 0;
  let uploads = 0;
  let inflating = 0;
  const inflations: ((done: () => void) => void)[] = [];
  /** Uploads that use the reserve, and those that have been stopped. */
  const finishing = new Set<Exchange>();
  const stopped = new Set<Exchange>();
  let timer: NodeJS.Timeout | undefined;

  function room(): number {
    return limit - held - uploads * UPLOAD_COST;
  }

  function stop(exchange: Exchange): void {
    exchange.request.pause();
    exchange.request.socket.pause();
    stopped.add(exchange);
  }

  function goOn(exchange: Exchange): void {
    stopped.delete(exchange);
    exchange.request.resume();
    exchange.request.socket.resume();
    // What has come while it was stopped is there after two turns of the event loop.
    if (exchange.heldBefore === exchange.held) setImmediate(setImmediate, evictUnmoved, exchange);
    else exchange.heldBefore = -1;
  }

  function mayPass(exchange: Exchange): boolean {
    if (finishing.size < mostFinishing) finishing.add(exchange);
    return finishing.has(exchange);
  }

  /** As many as there is room for a read of each, in the order in which they were stopped. */
  function makeMove(): void {
    for (const exchange of stopped) {
      if (room() < reserve + READ && !mayPass(exchange)) break;
      goOn(exchange);
    }
  }

  function isShort(): boolean {
    return stopped.size > 0 || room() < reserve;
  }

  function watch(): void {
    timer ??= setInterval(evictStalled, STALLED).unref();
  }

  /** Who may send and does not is to blame. Who is stopped may have sent: that is seen when it goes on. */
  function evictStalled(): void {
    if (!isShort()) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const stalled: Exchange[] = [];
    for (const exchange of exchanges()) {
      if (!exchange.isUploading) continue;
      const { held, heldBefore } = exchange;
      if (heldBefore >= 0 && held - heldBefore < SLOWEST_UPLOAD && !stopped.has(exchange)) stalled.push(exchange);
      exchange.heldBefore = held;
    }
    for (const exchange of stalled) evict(exchange);
  }

  /** It has been stopped for longer than a tick, and has sent nothing in that time. */
  function evictUnmoved(exchange: Exchange): void {
    if (exchange.isUploading && exchange.held === exchange.heldBefore && !stopped.has(exchange)) evict(exchange);
  }

  function add(exchange: Exchange, bytes: number): void {
    exchange.held += bytes;
    held += bytes;
  }

  function leave(exchange: Exchange): void {
    if (!exchange.isUploading) return;
    exchange.isUploading = false;
    uploads--;
    if (exchange.held <= UPLOAD_COST) return;
    finishing.delete(exchange);
    stopped.delete(exchange);
  }

  function runInflations(): void {
    while (inflations.length > 0 && inflating < MOST_INFLATING && (inflating === 0 || room() > 0)) {
      inflating++;
      inflations.shift()?.(() => {
        inflating--;
        runInflations();
      });
    }
  }

  return {
    uploads: () => uploads,
    begin(exchange) {
      exchange.isUploading = true;
      uploads++;
    },
    take(exchange, bytes) {
      const before = exchange.held;
      if (before + bytes > UPLOAD_COST && before <= UPLOAD_COST && room() < bytes) {
        watch();
        return false;
      }
      add(exchange, bytes);
      if (exchange.held <= UPLOAD_COST || room() >= reserve) return true;
      watch();
      if (!mayPass(exchange)) stop(exchange);
      return true;
    },
    add,
    complete(exchange) {
      leave(exchange);
      if (stopped.size > 0) makeMove();
    },
    release(exchange) {
      if (!exchange.isUploading && exchange.held === 0) return;
      leave(exchange);
      held -= exchange.held;
      exchange.held = 0;
      if (stopped.size > 0) makeMove();
      if (inflations.length > 0) runInflations();
    },
    inflate(work) {
      inflations.push(work);
      runInflations();
    },
  };
}

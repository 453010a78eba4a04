// The budget for bytes of bodies that the process holds at once, and the order in which uploads continue when it is
// short. This file counts; the exchanges hold the bytes. Nearly every body comes in one piece and costs two additions.
// Such a body, and a small body in several pieces, is never refused and never waits.
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /** Bytes. When one body is larger than a quarter of the limit, one body may exceed the limit. */
  readonly limit: number;
  readonly bodyLimit: number;
  /** The last exchange of each connection, whose body may be under way. Read once a second while room is short. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Ends an upload that sends nothing, to make room for uploads that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export interface BodyBudget {
  /** The number of bodies that are not complete. */
  uploads(): number;
  /** Called before a body is read. */
  begin(exchange: Exchange): void;
  /**
   * Counts bytes of a body that is not complete, and may stop the upload until there is room.
   *
   * @returns false when the body outgrows UPLOAD_COST and there is no room for it
   */
  take(exchange: Exchange, bytes: number): boolean;
  /** Counts bytes that are held beside those of `take`. */
  add(exchange: Exchange, bytes: number): void;
  /** Called when the body is complete. Its bytes count until the request has its answer. */
  complete(exchange: Exchange): void;
  /** Called when the request has its answer. */
  release(exchange: Exchange): void;
  /**
   * Runs the work at once, or when fewer bodies inflate: the memory that inflating takes is not counted before its end.
   */
  inflate(work: (done: () => void) => void): void;
}

/** Bytes that an upload counts for from its beginning: its socket, its objects, and the first 16 KiB of its body. */
const UPLOAD_COST = 16 * 1024;
/** Bytes that one read of a connection brings. */
const READ = 64 * 1024;
/** While room is short, an upload that brings less than SLOWEST_UPLOAD bytes in STALLED milliseconds is ended. */
const SLOWEST_UPLOAD = 4 * 1024;
const STALLED = 1000;
const MOST_INFLATING = 8;
const MOST_BY_DEFAULT = 256 * 1024 * 1024;

/** The budget where BODY_BUDGET is not set: never less than two bodies. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MOST_BY_DEFAULT));
}

export function createBodyBudget({ limit, bodyLimit, exchanges, evict }: BodyBudgetOptions): BodyBudget {
  /**
   * Room for the uploads in `finishing`. Only they continue when the other three quarters are used, so that some always
   * end.
   */
  const reserve = limit / 4;
  const mostFinishing = Math.max(1, Math.floor(reserve / bodyLimit));
  let held = 0;
  let uploads = 0;
  let inflating = 0;
  const inflations: ((done: () => void) => void)[] = [];
  /** Uploads that may use the reserve. */
  const finishing = new Set<Exchange>();
  /** Uploads that wait, in the order in which they were stopped. */
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

  function resume(exchange: Exchange): void {
    stopped.delete(exchange);
    exchange.request.resume();
    exchange.request.socket.resume();
    // Bytes that came while the upload was stopped arrive within two turns of the event loop.
    if (exchange.heldBefore === exchange.held) setImmediate(setImmediate, evictSilent, exchange);
    else exchange.heldBefore = -1;
  }

  function mayFinish(exchange: Exchange): boolean {
    if (finishing.size < mostFinishing) finishing.add(exchange);
    return finishing.has(exchange);
  }

  /** Continues as many uploads as there is room for a read of each. */
  function resumeStopped(): void {
    for (const exchange of stopped) {
      if (room() < reserve + READ && !mayFinish(exchange)) break;
      resume(exchange);
    }
  }

  function isShort(): boolean {
    return stopped.size > 0 || room() < reserve;
  }

  function watch(): void {
    timer ??= setInterval(evictStalled, STALLED).unref();
  }

  /** Ends uploads that may send and do not. A stopped upload may have sent bytes, which are seen when it continues. */
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

  /** Ends an upload that was stopped for longer than a tick and has sent nothing in that time. */
  function evictSilent(exchange: Exchange): void {
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
      if (!mayFinish(exchange)) stop(exchange);
      return true;
    },
    add,
    complete(exchange) {
      leave(exchange);
      if (stopped.size > 0) resumeStopped();
    },
    release(exchange) {
      if (!exchange.isUploading && exchange.held === 0) return;
      leave(exchange);
      held -= exchange.held;
      exchange.held = 0;
      if (stopped.size > 0) resumeStopped();
      if (inflations.length > 0) runInflations();
    },
    inflate(work) {
      inflations.push(work);
      runInflations();
    },
  };
}

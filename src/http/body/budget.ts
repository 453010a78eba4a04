// Limits how many bytes of request bodies the process holds at once. An upload is a body that is not complete yet. When
// room is short, uploads wait. A quarter of the limit is reserved for a few of the uploads, so that some always
// complete. This file only counts: the exchanges hold the bytes.
// Two kinds of small bodies are never refused and never wait:
// - a body in one chunk, which costs only two additions
// - a body of up to UPLOAD_COST bytes in several chunks
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /**
   * The budget in bytes. When BODY_LIMIT is more than a quarter of the budget, one upload at a time may exceed the
   * budget.
   */
  readonly limit: number;
  readonly bodyLimit: number;
  /** Returns the latest exchange of each connection. Called once a second while room is short. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Ends an upload that sends too little, to make room for uploads that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export interface BodyBudget {
  /** Returns the number of bodies that are not complete. */
  uploads(): number;
  /** Called before a body is read. */
  begin(exchange: Exchange): void;
  /**
   * Counts bytes of a body that is not complete, and may pause the upload until there is room.
   *
   * @returns false when the body outgrows UPLOAD_COST and there is no room for it
   */
  reserve(exchange: Exchange, bytes: number): boolean;
  /** Counts bytes that the exchange holds in addition to those of `reserve`, such as the inflated body. */
  add(exchange: Exchange, bytes: number): void;
  /** Called when the body is complete. The bytes of the body still count until the request has its answer. */
  complete(exchange: Exchange): void;
  /** Frees the bytes of the request. Called when the request has its answer. */
  release(exchange: Exchange): void;
  /**
   * Runs the work now, or later when too many bodies are being inflated. The bytes of an inflated body can be counted
   * only after inflating. Until then, the limit on the number of inflations protects the memory.
   */
  inflate(work: (done: () => void) => void): void;
}

/**
 * Bytes that the budget counts for each upload from its start: for its socket, its objects and the first 16 KiB of its
 * body.
 */
const UPLOAD_COST = 16 * 1024;
/** Maximum bytes that one read of a connection brings. */
const READ_SIZE = 64 * 1024;
/** Bytes that an upload must send in each STALL_INTERVAL while room is short. A slower upload is ended. */
const SLOWEST_UPLOAD = 4 * 1024;
/** Milliseconds between two checks for uploads that send too little. */
const STALL_INTERVAL = 1000;
/** Maximum bodies that are inflated at the same time. */
const MAX_INFLATING = 8;
/** Maximum bytes of the default budget, unless two bodies of maximum size need more. */
const MAX_DEFAULT_BUDGET = 256 * 1024 * 1024;

/** Returns the budget in bytes when BODY_BUDGET is not set. Two bodies of maximum size always fit in this budget. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MAX_DEFAULT_BUDGET));
}

export function createBodyBudget({ limit, bodyLimit, exchanges, evict }: BodyBudgetOptions): BodyBudget {
  /** Bytes of the limit that only the uploads in `finishing` may use. */
  const finishingRoom = limit / 4;
  const maxFinishing = Math.max(1, Math.floor(finishingRoom / bodyLimit));
  /** Bytes that all exchanges hold. */
  let totalHeld = 0;
  let uploads = 0;
  let inflating = 0;
  const waitingInflations: ((done: () => void) => void)[] = [];
  /** Uploads that may use `finishingRoom`. */
  const finishing = new Set<Exchange>();
  /** Uploads that wait for room, in the order in which they were paused. */
  const paused = new Set<Exchange>();
  let timer: NodeJS.Timeout | undefined;

  function room(): number {
    return limit - totalHeld - uploads * UPLOAD_COST;
  }

  function pause(exchange: Exchange): void {
    exchange.request.pause();
    exchange.request.socket.pause();
    paused.add(exchange);
  }

  function resume(exchange: Exchange): void {
    paused.delete(exchange);
    exchange.request.resume();
    exchange.request.socket.resume();
    // After a pause that is longer than a check interval, an upload that has sent nothing is ended. Bytes that came
    // during the pause arrive within two turns of the event loop, so the check waits for two turns.
    if (exchange.lastHeldBytes === exchange.heldBytes) setImmediate(setImmediate, evictSilent, exchange);
    else exchange.lastHeldBytes = -1;
  }

  /** Adds the upload to `finishing` when there is a place. @returns whether the upload is in `finishing` now */
  function claimFinishing(exchange: Exchange): boolean {
    if (finishing.size < maxFinishing) finishing.add(exchange);
    return finishing.has(exchange);
  }

  /**
   * Resumes the paused uploads, the oldest pause first, while each has room for one more read or a place in
   * `finishing`.
   */
  function resumePaused(): void {
    for (const exchange of paused) {
      if (room() < finishingRoom + READ_SIZE && !claimFinishing(exchange)) break;
      resume(exchange);
    }
  }

  function startTimer(): void {
    timer ??= setInterval(evictStalled, STALL_INTERVAL).unref();
  }

  /** Ends uploads that are not paused and send too little. `resume` checks those that were paused. */
  function evictStalled(): void {
    if (paused.size === 0 && room() >= finishingRoom) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const stalled: Exchange[] = [];
    for (const exchange of exchanges()) {
      if (!exchange.isUploading) continue;
      const { heldBytes, lastHeldBytes } = exchange;
      if (lastHeldBytes >= 0 && heldBytes - lastHeldBytes < SLOWEST_UPLOAD && !paused.has(exchange))
        stalled.push(exchange);
      exchange.lastHeldBytes = heldBytes;
    }
    for (const exchange of stalled) evict(exchange);
  }

  /** Ends an upload that has sent nothing during its pause, when the pause was longer than a check interval. */
  function evictSilent(exchange: Exchange): void {
    if (exchange.isUploading && exchange.heldBytes === exchange.lastHeldBytes && !paused.has(exchange)) evict(exchange);
  }

  function add(exchange: Exchange, bytes: number): void {
    exchange.heldBytes += bytes;
    totalHeld += bytes;
  }

  function endUpload(exchange: Exchange): void {
    if (!exchange.isUploading) return;
    exchange.isUploading = false;
    uploads--;
    if (exchange.heldBytes <= UPLOAD_COST) return;
    finishing.delete(exchange);
    paused.delete(exchange);
  }

  function runInflations(): void {
    while (waitingInflations.length > 0 && inflating < MAX_INFLATING && (inflating === 0 || room() > 0)) {
      inflating++;
      waitingInflations.shift()?.(() => {
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
    reserve(exchange, bytes) {
      const heldBytes = exchange.heldBytes;
      if (heldBytes + bytes > UPLOAD_COST && heldBytes <= UPLOAD_COST && room() < bytes) {
        startTimer();
        return false;
      }
      add(exchange, bytes);
      if (exchange.heldBytes <= UPLOAD_COST || room() >= finishingRoom) return true;
      startTimer();
      if (!claimFinishing(exchange)) pause(exchange);
      return true;
    },
    add,
    complete(exchange) {
      endUpload(exchange);
      if (paused.size > 0) resumePaused();
    },
    release(exchange) {
      if (!exchange.isUploading && exchange.heldBytes === 0) return;
      endUpload(exchange);
      totalHeld -= exchange.heldBytes;
      exchange.heldBytes = 0;
      if (paused.size > 0) resumePaused();
      if (waitingInflations.length > 0) runInflations();
    },
    inflate(work) {
      waitingInflations.push(work);
      runInflations();
    },
  };
}

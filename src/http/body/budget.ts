// Limits how many bytes of request bodies the process holds at once. An upload is a body that is not complete yet. When
// room is short, uploads wait: the server does not read from their connections. A quarter of the limit is reserved for
// a few privileged uploads, so that some uploads always complete. Two kinds of bodies are never refused and never wait:
// - a body that comes in one chunk, whose bytes are not counted
// - a body of up to SMALL_BODY bytes in several chunks
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /** The budget in bytes. When BODY_LIMIT is more than a quarter of it, one upload at a time can exceed the budget. */
  readonly limit: number;
  readonly bodyLimit: number;
  /** Returns the last exchange (request with its answer) of each connection. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Refuses an upload that sends too little, to make room for uploads that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export interface BodyBudget {
  /** Returns the number of bodies that are not complete. */
  uploads(): number;
  /** Called before a body is read. */
  begin(exchange: Exchange): void;
  /**
   * Counts bytes of a body that is not complete, and pauses the upload when room is short.
   *
   * @returns false when the body outgrows SMALL_BODY and there is no room for it
   */
  reserve(exchange: Exchange, bytes: number): boolean;
  /** Counts bytes that the exchange holds in addition to those of `reserve`, such as the inflated body. */
  add(exchange: Exchange, bytes: number): void;
  /** Called when the body is complete. The bytes of the body still count until the request has its answer. */
  complete(exchange: Exchange): void;
  /** Stops counting the bytes of the request. Called when its answer is complete, or when its stream begins. */
  release(exchange: Exchange): void;
  /**
   * Runs the work now, or later if MAX_INFLATING bodies are being inflated. Only after inflating is the size of a body
   * known. Until then, MAX_INFLATING protects the memory.
   */
  inflate(work: (done: () => void) => void): void;
}

/** Bytes that the budget counts for each upload from its start, in addition to the bytes of its body that have come. */
const UPLOAD_COST = 16 * 1024;
/** Maximum bytes of a body that never waits. */
const SMALL_BODY = UPLOAD_COST;
/** Maximum bytes that one read of a connection brings. */
const READ_SIZE = 64 * 1024;
/** Minimum bytes that an upload must send in each STALL_INTERVAL while room is short. A slower upload is ended. */
const SLOWEST_UPLOAD = 4 * 1024;
/** Milliseconds between two checks for uploads that send too little. */
const STALL_INTERVAL = 1000;
/** Maximum bodies that are inflated at the same time. */
const MAX_INFLATING = 8;
/** Maximum bytes of the default budget. If two bodies of maximum size need more, the default budget is larger. */
const MAX_DEFAULT_BUDGET = 256 * 1024 * 1024;

/** Returns the budget in bytes when BODY_BUDGET is not set. Two bodies of maximum size always fit in this budget. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MAX_DEFAULT_BUDGET));
}

export function createBodyBudget({ limit, bodyLimit, exchanges, evict }: BodyBudgetOptions): BodyBudget {
  /** Bytes of the limit that only the uploads in `privileged` may use. */
  const reservedRoom = limit / 4;
  const maxPrivileged = Math.max(1, Math.floor(reservedRoom / bodyLimit));
  /** Bytes that all exchanges hold. */
  let totalHeld = 0;
  let uploads = 0;
  let inflating = 0;
  const waitingInflations: ((done: () => void) => void)[] = [];
  /** Uploads that may use `reservedRoom`. */
  const privileged = new Set<Exchange>();
  /** Uploads that wait for room, in the order in which they were paused. */
  const paused = new Set<Exchange>();
  let stallTimer: NodeJS.Timeout | undefined;

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
    // The counts are equal only if evictStalled() ran during the pause. Such an upload is ended if its client sent
    // nothing during the pause. Node delivers bytes that have come within two turns of the event loop.
    if (exchange.lastHeldBytes === exchange.heldBytes) setImmediate(setImmediate, evictSilent, exchange);
    else exchange.lastHeldBytes = -1;
  }

  /** Makes the upload privileged if there is a place. @returns whether the upload is privileged */
  function claimPrivilege(exchange: Exchange): boolean {
    if (privileged.size < maxPrivileged) privileged.add(exchange);
    return privileged.has(exchange);
  }

  /** Resumes paused uploads, the oldest pause first, while there is room for one more read or a privileged place. */
  function resumePaused(): void {
    for (const exchange of paused) {
      if (room() < reservedRoom + READ_SIZE && !claimPrivilege(exchange)) break;
      resume(exchange);
    }
  }

  function watchForStalls(): void {
    stallTimer ??= setInterval(evictStalled, STALL_INTERVAL).unref();
  }

  /** Ends uploads that send too little although they are not paused. `resume` checks the paused uploads. */
  function evictStalled(): void {
    if (paused.size === 0 && room() >= reservedRoom) {
      clearInterval(stallTimer);
      stallTimer = undefined;
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
    if (exchange.heldBytes <= SMALL_BODY) return;
    privileged.delete(exchange);
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
      if (heldBytes + bytes > SMALL_BODY && heldBytes <= SMALL_BODY && room() < bytes) {
        watchForStalls();
        return false;
      }
      add(exchange, bytes);
      if (exchange.heldBytes <= SMALL_BODY || room() >= reservedRoom) return true;
      watchForStalls();
      if (!claimPrivilege(exchange)) pause(exchange);
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

// Limits how many bytes of request bodies the process holds at once. An upload is a body that is not complete yet. When
// room is short, uploads wait: the server does not read from their connections. A quarter of the limit is reserved for
// a few privileged uploads, so that some uploads always complete. Two kinds of bodies are never refused and never wait:
// - a body that comes as one chunk with a Content-Length; body.ts does not count its bytes
// - a body of up to SMALL_BODY bytes
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /** The budget in bytes. If BODY_LIMIT is over a quarter of the budget, one upload at a time can exceed the budget. */
  readonly limit: number;
  readonly bodyLimit: number;
  /** Returns an exchange (request with its answer) for each connection: the last one. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Refuses an upload that sends too little, to make room for uploads that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export interface BodyBudget {
  uploadCount(): number;
  beginUpload(exchange: Exchange): void;
  /**
   * Counts bytes of a body that is not complete, and pauses the upload when room is short.
   *
   * @returns false, without counting, when these bytes make the body exceed SMALL_BODY and do not fit in the room
   */
  reserve(exchange: Exchange, bytes: number): boolean;
  /** Counts bytes that the exchange holds in addition to those of `reserve`: the inflated body. */
  hold(exchange: Exchange, bytes: number): void;
  /** Called when the body is complete. The bytes of the body still count until the request has its answer. */
  completeUpload(exchange: Exchange): void;
  /** Stops counting the bytes of the request. Called when its answer is complete, or when a streamed answer begins. */
  release(exchange: Exchange): void;
  /**
   * Runs `work` now, or later if room is short or MAX_INFLATING bodies are being inflated. The inflated body has been
   * counted when `work` calls `done`. Until then, MAX_INFLATING protects the memory.
   */
  whenMayInflate(work: (done: () => void) => void): void;
}

/** Bytes that the budget counts for each upload until it completes, in addition to the bytes that have come. */
const UPLOAD_COST = 16 * 1024;
/** Maximum bytes of a body that is never refused and never waits, whatever its chunks are. */
const SMALL_BODY = UPLOAD_COST;
/** Maximum bytes that one read of a connection brings. */
const READ_SIZE = 64 * 1024;
/** Minimum bytes that an upload must send in each STALL_INTERVAL while room is short. A slower upload is refused. */
const MIN_UPLOAD_PROGRESS = 4 * 1024;
/** Milliseconds between two checks for uploads that send too little. */
const STALL_INTERVAL = 1000;
const MAX_INFLATING = 8;
/** Maximum bytes of the default budget, unless two bodies of BODY_LIMIT need more. */
const MAX_DEFAULT_BUDGET = 256 * 1024 * 1024;

/** Returns the budget in bytes when BODY_BUDGET is not set. Two bodies of BODY_LIMIT always fit. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MAX_DEFAULT_BUDGET));
}

export function createBodyBudget({ limit, bodyLimit, exchanges, evict }: BodyBudgetOptions): BodyBudget {
  /** Bytes of the limit that only the uploads in `privilegedUploads` may use. */
  const reservedRoom = limit / 4;
  const maxPrivileged = Math.max(1, Math.floor(reservedRoom / bodyLimit));
  /** The sum of `heldBytes` of all exchanges. */
  let totalHeld = 0;
  let uploadCount = 0;
  let inflatingCount = 0;
  const waitingInflations: ((done: () => void) => void)[] = [];
  /** Uploads that may use `reservedRoom`. */
  const privilegedUploads = new Set<Exchange>();
  /** Uploads that wait for room, in the order in which they were paused. */
  const pausedUploads = new Set<Exchange>();
  let stallTimer: NodeJS.Timeout | undefined;

  /** Returns the free bytes of the limit. The result is negative when small bodies have exceeded the limit. */
  function room(): number {
    return limit - totalHeld - uploadCount * UPLOAD_COST;
  }

  function pause(exchange: Exchange): void {
    exchange.request.pause();
    exchange.request.socket.pause();
    pausedUploads.add(exchange);
  }

  function resume(exchange: Exchange): void {
    pausedUploads.delete(exchange);
    exchange.request.resume();
    exchange.request.socket.resume();
    // The counts are equal only if evictStalled() ran during the pause. Node delivers bytes that came during the pause
    // within two turns of the event loop. If none came by then, the upload is refused.
    if (exchange.lastHeldBytes === exchange.heldBytes) setImmediate(setImmediate, evictSilent, exchange);
    else exchange.lastHeldBytes = -1;
  }

  /** Makes the upload privileged if fewer than `maxPrivileged` are. @returns whether the upload is privileged */
  function claimPrivilege(exchange: Exchange): boolean {
    if (privilegedUploads.size < maxPrivileged) privilegedUploads.add(exchange);
    return privilegedUploads.has(exchange);
  }

  /** Resumes paused uploads, the oldest pause first, while each has room for one more read or becomes privileged. */
  function resumePaused(): void {
    for (const exchange of pausedUploads) {
      if (room() < reservedRoom + READ_SIZE && !claimPrivilege(exchange)) break;
      resume(exchange);
    }
  }

  function watchForStalls(): void {
    stallTimer ??= setInterval(evictStalled, STALL_INTERVAL).unref();
  }

  /** Refuses uploads that send too little although they are not paused. `resume` checks the paused uploads. */
  function evictStalled(): void {
    if (pausedUploads.size === 0 && room() >= reservedRoom) {
      clearInterval(stallTimer);
      stallTimer = undefined;
      return;
    }
    const stalledUploads: Exchange[] = [];
    for (const exchange of exchanges()) {
      if (!exchange.isUploading) continue;
      const { heldBytes, lastHeldBytes } = exchange;
      if (lastHeldBytes >= 0 && heldBytes - lastHeldBytes < MIN_UPLOAD_PROGRESS && !pausedUploads.has(exchange))
        stalledUploads.push(exchange);
      exchange.lastHeldBytes = heldBytes;
    }
    for (const exchange of stalledUploads) evict(exchange);
  }

  function evictSilent(exchange: Exchange): void {
    const { isUploading, heldBytes, lastHeldBytes } = exchange;
    if (isUploading && heldBytes === lastHeldBytes && !pausedUploads.has(exchange)) evict(exchange);
  }

  function hold(exchange: Exchange, bytes: number): void {
    exchange.heldBytes += bytes;
    totalHeld += bytes;
  }

  function endUpload(exchange: Exchange): void {
    if (!exchange.isUploading) return;
    exchange.isUploading = false;
    uploadCount--;
    // An upload of up to SMALL_BODY bytes is neither privileged nor paused.
    if (exchange.heldBytes <= SMALL_BODY) return;
    privilegedUploads.delete(exchange);
    pausedUploads.delete(exchange);
  }

  /** Runs the inflations that may run. One runs even without room, because otherwise none might ever make room. */
  function runInflations(): void {
    while (waitingInflations.length > 0 && inflatingCount < MAX_INFLATING && (inflatingCount === 0 || room() > 0)) {
      inflatingCount++;
      waitingInflations.shift()?.(() => {
        inflatingCount--;
        runInflations();
      });
    }
  }

  return {
    uploadCount: () => uploadCount,
    beginUpload(exchange) {
      exchange.isUploading = true;
      uploadCount++;
    },
    reserve(exchange, bytes) {
      const { heldBytes } = exchange;
      if (heldBytes + bytes > SMALL_BODY && heldBytes <= SMALL_BODY && room() < bytes) {
        watchForStalls();
        return false;
      }
      hold(exchange, bytes);
      if (exchange.heldBytes <= SMALL_BODY || room() >= reservedRoom) return true;
      watchForStalls();
      if (!claimPrivilege(exchange)) pause(exchange);
      return true;
    },
    hold,
    completeUpload(exchange) {
      endUpload(exchange);
      if (pausedUploads.size > 0) resumePaused();
    },
    release(exchange) {
      if (!exchange.isUploading && exchange.heldBytes === 0) return;
      endUpload(exchange);
      totalHeld -= exchange.heldBytes;
      exchange.heldBytes = 0;
      if (pausedUploads.size > 0) resumePaused();
      if (waitingInflations.length > 0) runInflations();
    },
    whenMayInflate(work) {
      waitingInflations.push(work);
      runInflations();
    },
  };
}

// Limits how many bytes of request bodies the process holds at once. An upload is a body that is not complete yet. When
// room is short, uploads wait: the server does not read from their connections. A quarter of the limit is reserved for
// a few privileged uploads, so that some uploads always complete. Room is claimed before it is used: an upload is only
// read while there is room for its next read. So the bodies never exceed the limit, except for these:
// - a body that comes as one chunk with a Content-Length; body.ts does not count its bytes
// - a body of up to SMALL_BODY bytes, which is never refused and never waits
// - bodies that are being inflated, MAX_INFLATING at most
// - one privileged upload, if its operation accepts more than a quarter of the limit
import { getHeapStatistics } from 'node:v8';
import type { Exchange } from '../exchange.ts';

export interface BodyBudgetOptions {
  /** The budget in bytes. */
  readonly limit: number;
  /** Returns the last exchange of each connection. */
  readonly exchanges: () => Iterable<Exchange>;
  /** Refuses an upload that sends too little, to make room for uploads that wait. */
  readonly evict: (exchange: Exchange) => void;
}

export type BodyBudget = ReturnType<typeof createBodyBudget>;

/** Bytes that the budget counts for each upload until it completes, in addition to the bytes that have come. */
const UPLOAD_COST = 16 * 1024;
/** Maximum bytes of a body that is never refused and never waits, whatever its chunks are. */
const SMALL_BODY = UPLOAD_COST;
/** Maximum bytes that one read of a connection brings. */
const READ_SIZE = 64 * 1024;
/** Minimum bytes that an upload must send in each STALL_INTERVAL while room is short. A slower upload is refused. */
export const MIN_UPLOAD_PROGRESS = 4 * 1024;
/** Milliseconds between two checks for uploads that send too little. */
const STALL_INTERVAL = 1000;
const MAX_INFLATING = 8;
/** Maximum bytes of the default budget, unless two bodies of BODY_LIMIT need more. */
const MAX_DEFAULT_BUDGET = 256 * 1024 * 1024;

/** Returns the budget in bytes when BODY_BUDGET is not set. Two bodies of BODY_LIMIT always fit. */
export function defaultBodyBudget(bodyLimit: number): number {
  return Math.max(2 * bodyLimit, Math.min(getHeapStatistics().heap_size_limit / 4, MAX_DEFAULT_BUDGET));
}

export function createBodyBudget({ limit, exchanges, evict }: BodyBudgetOptions) {
  /** Bytes of the limit that only the uploads in `privilegedUploads` may use. */
  const reservedRoom = limit / 4;
  let totalHeld = 0;
  let uploadCount = 0;
  let inflatingCount = 0;
  const waitingInflations: ((done: () => void) => void)[] = [];
  /** Uploads that may use `reservedRoom`, each with the bytes that it may add. */
  const privilegedUploads = new Map<Exchange, number>();
  let privilegedBytes = 0;
  /** Other uploads beyond SMALL_BODY that are read, in the order of their last reads. READ_SIZE is claimed for each. */
  const readUploads = new Set<Exchange>();
  /** Uploads that wait for room, in the order in which they were paused, each with `checkCount` at that time. */
  const pausedUploads = new Map<Exchange, number>();
  let stallTimer: NodeJS.Timeout | undefined;
  /** The number of calls of `evictStalled`. */
  let checkCount = 0;

  /** Returns the free bytes of the limit that no read has claimed. Small bodies can make the result negative. */
  function room(): number {
    return limit - totalHeld - uploadCount * UPLOAD_COST - readUploads.size * READ_SIZE;
  }

  function isShort(): boolean {
    return pausedUploads.size > 0 || room() < reservedRoom + READ_SIZE;
  }

  function pause(exchange: Exchange): void {
    readUploads.delete(exchange);
    exchange.request.pause();
    exchange.socket.pause();
    pausedUploads.set(exchange, checkCount);
    watchForStalls();
  }

  function resume(exchange: Exchange, pausedAt: number): void {
    pausedUploads.delete(exchange);
    exchange.request.resume();
    exchange.socket.resume();
    exchange.body.lastHeldBytes = -1;
    // During two checks, the client had a whole STALL_INTERVAL to send. Node delivers bytes that came during the pause
    // within two turns of the event loop. If none came by then, the upload is refused.
    if (checkCount - pausedAt > 1) setImmediate(setImmediate, evictSilent, exchange, exchange.body.heldBytes);
  }

  /** Makes the upload privileged if `reservedRoom` has room for all of it. One upload always can be privileged. */
  function claimPrivilege(exchange: Exchange): boolean {
    if (privilegedUploads.has(exchange)) return true;
    const bytes = exchange.body.maxUploadBytes - exchange.body.heldBytes;
    if (privilegedUploads.size > 0 && privilegedBytes + bytes > reservedRoom) return false;
    privilegedUploads.set(exchange, bytes);
    privilegedBytes += bytes;
    return true;
  }

  /** Claims room for the next read of the upload. @returns false when the upload must wait */
  function claimRead(exchange: Exchange): boolean {
    readUploads.delete(exchange);
    if (!privilegedUploads.has(exchange) && room() >= reservedRoom + READ_SIZE) {
      readUploads.add(exchange);
      return true;
    }
    return claimPrivilege(exchange);
  }

  /** Resumes paused uploads, the oldest pause first, while each can claim a read. */
  function resumePaused(): void {
    for (const [exchange, pausedAt] of pausedUploads) {
      if (!claimRead(exchange)) break;
      resume(exchange, pausedAt);
    }
  }

  /** Admits an upload that exceeds SMALL_BODY. Uploads that are being read wait, if their claims take its room. */
  function admit(exchange: Exchange, bytes: number): boolean {
    if (room() + readUploads.size * READ_SIZE < reservedRoom + bytes) return claimPrivilege(exchange);
    for (const other of readUploads) {
      if (room() >= reservedRoom + bytes) break;
      if (claimPrivilege(other)) readUploads.delete(other);
      else pause(other);
    }
    return true;
  }

  /** After a busy turn, timers run before the bytes that came meanwhile are read. `setImmediate` runs after that. */
  function watchForStalls(): void {
    stallTimer ??= setInterval(() => setImmediate(evictStalled), STALL_INTERVAL).unref();
  }

  /** Refuses uploads that send too little although they are not paused. `resume` checks the paused uploads. */
  function evictStalled(): void {
    checkCount++;
    if (!isShort()) {
      clearInterval(stallTimer);
      stallTimer = undefined;
      return;
    }
    const stalledUploads: Exchange[] = [];
    for (const exchange of exchanges()) {
      if (!exchange.body.isUploading) continue;
      const { heldBytes, lastHeldBytes } = exchange.body;
      if (lastHeldBytes >= 0 && heldBytes - lastHeldBytes < MIN_UPLOAD_PROGRESS && !pausedUploads.has(exchange))
        stalledUploads.push(exchange);
      exchange.body.lastHeldBytes = heldBytes;
    }
    for (const exchange of stalledUploads) evict(exchange);
  }

  function evictSilent(exchange: Exchange, heldBytes: number): void {
    if (exchange.body.isUploading && exchange.body.heldBytes === heldBytes && !pausedUploads.has(exchange) && isShort())
      evict(exchange);
  }

  /** Counts bytes that the exchange holds in addition to those of `reserve`: the inflated body. */
  function hold(exchange: Exchange, bytes: number): void {
    exchange.body.heldBytes += bytes;
    totalHeld += bytes;
  }

  function endUpload(exchange: Exchange): void {
    if (!exchange.body.isUploading) return;
    exchange.body.isUploading = false;
    uploadCount--;
    // An upload of up to SMALL_BODY bytes is in none of the collections.
    if (exchange.body.heldBytes <= SMALL_BODY) return;
    privilegedBytes -= privilegedUploads.get(exchange) ?? 0;
    privilegedUploads.delete(exchange);
    readUploads.delete(exchange);
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
    /** @param maxBytes the bytes that the client announces, or else the limit of the body */
    beginUpload(exchange: Exchange, maxBytes: number): void {
      exchange.body.isUploading = true;
      exchange.body.maxUploadBytes = maxBytes;
      uploadCount++;
    },
    /**
     * Counts bytes of a body that is not complete, and pauses the upload when room is short.
     *
     * @returns false, without counting, when these bytes make the body exceed SMALL_BODY and do not fit in the room
     */
    reserve(exchange: Exchange, bytes: number): boolean {
      const { heldBytes } = exchange.body;
      const isLarge = heldBytes + bytes > SMALL_BODY;
      if (isLarge && heldBytes <= SMALL_BODY && !admit(exchange, bytes)) {
        watchForStalls();
        return false;
      }
      hold(exchange, bytes);
      if (isLarge && !claimRead(exchange)) pause(exchange);
      return true;
    },
    hold,
    /** Called when the body is complete. The bytes of the body still count until the request has its answer. */
    completeUpload(exchange: Exchange): void {
      endUpload(exchange);
      if (pausedUploads.size > 0) resumePaused();
    },
    /** Stops counting the bytes of a request. Called when its answer is complete, or a streamed answer begins. */
    release(exchange: Exchange): void {
      if (!exchange.body.isUploading && exchange.body.heldBytes === 0) return;
      endUpload(exchange);
      totalHeld -= exchange.body.heldBytes;
      exchange.body.heldBytes = 0;
      if (pausedUploads.size > 0) resumePaused();
      if (waitingInflations.length > 0) runInflations();
    },
    /**
     * Runs `work` now, or later if room is short or MAX_INFLATING bodies are being inflated. The inflated body has been
     * counted when `work` calls `done`. Until then, MAX_INFLATING protects the memory.
     */
    whenMayInflate(work: (done: () => void) => void): void {
      waitingInflations.push(work);
      runInflations();
    },
  };
}

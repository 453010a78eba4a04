// How long a worker may take for each order. Every wait of the supervisor ends with one of these limits.

/**
 * A worker is killed after this many pings, one a second, without a message from it. The limit is a count, not a time,
 * so that no worker is killed after the machine was suspended.
 */
export const MAX_UNANSWERED_PINGS = 5;
/** The same limit while a worker boots or loads: compiling controllers may block the event loop for longer. */
export const MAX_UNANSWERED_WHILE_LOADING = 10;

/** Time limits in milliseconds. */
export const LIMITS = {
  /**
   * One step of booting, or one file of the folder. A worker gives a file up after 10 s, and may take 5 s more to find
   * the mistake in it.
   */
  step: 30_000,
  /** Until a worker listens. */
  listen: 10_000,
  /** Until a worker has imported a new group; a worker that hangs must not delay the first answer for long. */
  importGroup: 2000,
  /** Until a worker has ended, after an order or after it closed its channel. */
  end: 2000,
  /** Until the controllers of a worker that served have closed what they hold. */
  dispose: 5000,
  /** Until a worker that loads has ended: it may be in an endless loop, which would keep a core busy. */
  endWhileLoading: 200,
  /** Until the last messages of a worker have arrived, after its exit. */
  lastMessages: 200,
};

// How long the supervisor waits for a worker in each case.

/**
 * Number of pings, one a second, after which a worker that sends no message is killed. The limit is a count and not a
 * time, so that no worker is killed after the machine was suspended.
 */
export const MAX_UNANSWERED_PINGS = 5;

/** Time limits in milliseconds. */
export const LIMITS = {
  /**
   * Time for one step, beside that of LoadClock: to boot, to begin to load, or to load one file of the folder. A worker
   * can need 5 s to find the mistake in a file.
   */
  step: 20_000,
  /** Time until a worker listens. */
  listen: 10_000,
  /** Time until a worker has imported a new group. A worker that hangs must not delay the first answer for long. */
  importGroup: 2000,
  /** Time until a worker has ended, after an order or after the end of its channel. */
  end: 2000,
  /** Time until a worker that served has disposed of its controllers, 5 s, and then run `close` of the service, 5 s. */
  dispose: 10_000,
  /** Time until a worker that loads has ended. The worker may be in an endless loop, which would keep a core busy. */
  endWhileLoading: 200,
  /** Time until the last messages of a worker have arrived, after its exit. */
  lastMessages: 200,
};

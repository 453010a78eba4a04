// How long the supervisor waits for a worker in each case.

/** Pings, one a second, until a silent worker is killed. A time would kill workers after a pause of the machine. */
export const MAX_UNANSWERED_PINGS = 5;

/** Time limits in milliseconds. */
export const LIMITS = {
  /** To boot, to begin to load, or to load one file, beside LoadClock. To find the mistake in a file can take 5 s. */
  step: 20_000,
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

// How long a worker may take for what it is asked: every wait of the supervisor has an end, and the ends stand here.

/** Unanswered pings in a row, each counted at a tick of ours, so that a machine that was suspended kills nobody. */
export const STUCK_AFTER = 5;
/** Starting a process and compiling controllers block the event loop for longer than serving ever may. */
export const STUCK_WHILE_LOADING = 10;

/**
 * Milliseconds that a worker may take. A worker gives up a file after 10 s, and may take 5 s more to find the mistake
 * in it.
 */
export const LIMITS = {
  /** From one step of its start, or one file of the folder, to the next. */
  step: 30_000,
  listen: 10_000,
  /** One worker that hangs must not hold up the first answer of a new group for long. */
  importGroup: 2000,
  /** To end when it is told to, or when it has closed its channel. */
  end: 2000,
  /** For its controllers to close what they hold, when it has served. */
  dispose: 5000,
  /** The same while it imports: it may be in an endless loop, and would keep a core busy for nothing. */
  endWhileLoading: 200,
  /** Its last messages, to arrive after its exit. */
  lastWords: 200,
};

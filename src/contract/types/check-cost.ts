// Limits on the cost of checking one request. A request that exceeds a limit is refused, and the limit is reported as a
// mistake of the request.

/** Maximum number of steps of all checks of a request (CheckRun). They take up to 0.3 s. */
const MAX_STEPS = 1_000_000;

export const LIMITS = {
  /** Maximum number of mistakes in an answer. A request with more mistakes gets the first ones. */
  mistakes: 50,
  /** Maximum depth at which the values of a recursive type are nested. */
  depth: 100,
  properties: 10_000,
  /** Maximum number of estimated steps of one regular expression on one text (pattern.ts). */
  patternSteps: 300_000,
  steps: MAX_STEPS,
} as const;

// Limits on the cost of checking one request. A request beyond a limit is refused as a mistake; the check never waits.

export const LIMITS = {
  mistakes: 50,
  /** Nesting of values of a recursive type. */
  depth: 100,
  properties: 10_000,
  /** Attempts to match a part of a union, for one request. */
  tries: 200_000,
  /** Estimated steps of regular expressions, for one request. */
  patternSteps: 1e8,
} as const;

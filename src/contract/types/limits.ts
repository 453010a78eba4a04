// Limits on the cost of checking one request. A request that exceeds a limit is refused at once, and the limit is
// reported as a mistake of the request.

export const LIMITS = {
  mistakes: 50,
  /** The deepest nesting of the values of a recursive type. */
  depth: 100,
  properties: 10_000,
  /** The most attempts to match a part of a union, for one request. */
  tries: 200_000,
  /** The most estimated steps of regular expressions, for one request. */
  patternSteps: 1e8,
} as const;

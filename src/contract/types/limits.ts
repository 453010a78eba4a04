// Limits on the cost of checking one request. A request that exceeds a limit is refused, and the limit is reported as a
// mistake of the request. Only `mistakes` is no such limit: the answer names at most so many mistakes.

export const LIMITS = {
  mistakes: 50,
  /** The deepest nesting of the values of a recursive type. */
  depth: 100,
  /** The most fields of one object. */
  properties: 10_000,
  /** The most attempts to match a part of a union. The body, the query and the path are counted apart. */
  tries: 200_000,
  /** The most estimated steps of regular expressions. The body, the query and the path are counted apart. */
  patternSteps: 1e8,
} as const;

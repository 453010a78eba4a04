// How much one request may cost its check. What goes beyond is a mistake of the request, never a wait.

export const LIMITS = {
  mistakes: 50,
  /** Of values of a recursive type. */
  depth: 100,
  properties: 10_000,
  /** Parts of unions that are tried for one request. */
  tries: 200_000,
  /** Steps of regular expressions for one request, estimated. */
  patternSteps: 1e8,
} as const;

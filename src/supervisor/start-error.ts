// The one error that a start may end with. Thrown by whoever finds out, printed by serve.ts; it knows no reasons itself.

/** The service cannot start; the message is one line for the person who started it. */
export class StartError extends Error {}

// Reads and writes the header `traceparent` of W3C Trace Context, in the version 00 and in later ones.

/** The span of the caller, as its header names it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** The flags SAMPLED and RANDOM_ID, each as one bit. */
  readonly flags: number;
}

/** The flag SAMPLED means that the caller may have recorded its span. */
export const SAMPLED = 1;
/** The flag RANDOM_ID means that the last 7 bytes of the trace id are random (Trace Context Level 2). */
export const RANDOM_ID = 2;

/** Version ff and ids of zeros are invalid. Version 00 ends with its flags, and a later one may have more fields. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;
const VERSION_00_LENGTH = 55;

/** Parses the header. @returns undefined when the header is malformed, so that the request begins a new trace */
export function parseTraceparent(text: string): TraceContext | undefined {
  if (!TRACEPARENT.test(text) || (text.length > VERSION_00_LENGTH && text.startsWith('00'))) return undefined;
  // The other six bits are reserved, and must be zero in a header that is sent on.
  const flags = Number.parseInt(text.slice(53, VERSION_00_LENGTH), 16) & (SAMPLED | RANDOM_ID);
  return { traceId: text.slice(3, 35), spanId: text.slice(36, 52), flags };
}

/** Returns the header in version 00. `flags` is 3 at most, so one digit is enough. */
export function formatTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-0${flags}`;
}

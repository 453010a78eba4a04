export const TIME_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Returns Unix time in whole seconds. @param now Unix time in milliseconds */
export function unixTime(now = Date.now()): number {
  return Math.floor(now / 1000);
}

/** Returns the milliseconds that the header Retry-After asks for: seconds or a date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  const value = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(value) ? Math.max(0, value) : undefined;
}

/** Stops the whole thread, also its event loop, for the given time. */
export function blockThread(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/**
 * Waits for `work`. After the time limit the wait ends, but the work continues.
 *
 * @param limit milliseconds
 * @throws the error of `work`, or after the time limit the error that `createError` returns
 */
export async function withTimeLimit<T>(work: PromiseLike<T>, limit: number, createError: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(createError()), limit);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

// Unix time, and waits with a time limit.

/** Returns whole seconds since 1970. */
export function unixTime(now = Date.now()): number {
  return Math.floor(now / 1000);
}

/**
 * Waits for `work`. After the time limit the wait ends, but the work does not.
 *
 * @param limit milliseconds
 * @throws the error that `createError` returns, when the limit is over
 */
export async function withTimeLimit<T>(work: Promise<T>, limit: number, createError: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(createError()), limit);
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

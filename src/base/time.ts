// Times as answers, and waits that end.

/** Returns whole seconds since 1970. */
export function unixTime(now = Date.now()): number {
  return Math.floor(now / 1000);
}

/** @throws what `late` returns, after so many milliseconds; the work itself cannot be ended */
export async function withTimeLimit<T>(work: Promise<T>, limit: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), limit);
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

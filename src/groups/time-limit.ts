// How long the import of a controller may take: a top-level `await` may never settle.

export class HungLoad extends Error {}

/** @throws HungLoad after so many milliseconds; the import itself cannot be ended */
export async function withTimeLimit<T>(work: Promise<T>, limit: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new HungLoad(`it did not finish loading within ${limit} ms: does a top-level await never settle?`)),
      limit,
    );
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

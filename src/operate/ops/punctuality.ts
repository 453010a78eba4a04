// Watches whether the timers of this process fire on time. After a pause of the whole machine, every report of a worker
// is old, and no worker is to blame.

/** Milliseconds between two ticks. */
const TICK = 500;
/** Milliseconds for which a tick that was late counts. In this time, workers that are well have reported again. */
const MEMORY = 3000;

/** @returns a function that says whether all ticks of the last seconds were on time */
export function watchPunctuality(now: () => number = () => performance.now()): () => boolean {
  let lastTick = now();
  let lateUntil = lastTick;
  setInterval(() => {
    if (now() - lastTick > 2 * TICK) lateUntil = now() + MEMORY;
    lastTick = now();
  }, TICK).unref();
  return () => now() >= lateUntil && now() - lastTick <= 2 * TICK;
}

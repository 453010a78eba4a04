// Measures how late a timer fires ten times a second. Node's own monitorEventLoopDelay costs six times as much, and a
// reset for each report would lose a delay that lasts beyond it.
import { createHistogram, observe, takeDelta } from './histogram.ts';

export type LoopDelay = ReturnType<typeof createLoopDelay>;

/** The upper bounds of the buckets, in seconds. A new request waits as long as this delay. */
export const DELAY_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const MEASURE_INTERVAL = 100;

export function createLoopDelay(now: () => number = () => performance.now()) {
  const delays = createHistogram(DELAY_BOUNDS);
  let longestDelay = 0;
  let dueAt = now() + MEASURE_INTERVAL;
  const timer = setInterval(() => {
    const delay = Math.max(0, now() - dueAt) / 1000;
    dueAt = now() + MEASURE_INTERVAL;
    observe(delays, delay);
    longestDelay = Math.max(longestDelay, delay);
  }, MEASURE_INTERVAL);
  timer.unref();
  return {
    /** Returns the delays since the last call, in seconds. Without any delay yet, `longestDelay` is 0. */
    take() {
      const taken = { delays: takeDelta(delays), longestDelay };
      longestDelay = 0;
      return taken;
    },
    close: () => clearInterval(timer),
  };
}

const TICK_MS = 500;
/** Milliseconds for which a tick that was late counts. In this time, workers that are well have reported again. */
const MEMORY = 3000;

/**
 * Watches whether the timers of this process fire on time. After a pause of the whole machine, every report is old.
 *
 * @returns a function that says whether all ticks of the last seconds were on time
 */
export function watchPunctuality(now: () => number = () => performance.now()): () => boolean {
  let lastTick = now();
  let lateUntil = lastTick;
  setInterval(() => {
    if (now() - lastTick > 2 * TICK_MS) lateUntil = now() + MEMORY;
    lastTick = now();
  }, TICK_MS).unref();
  return () => now() >= lateUntil && now() - lastTick <= 2 * TICK_MS;
}

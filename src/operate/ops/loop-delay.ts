// Measures how late a timer fires ten times a second. Node's own monitorEventLoopDelay costs six times as much, and a
// reset for each report would lose a delay that lasts beyond it.
import { createHistogram, observe, takeDelta } from './histogram.ts';
import { DELAY_BOUNDS } from './report.ts';

export type LoopDelay = ReturnType<typeof createLoopDelay>;

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

/** Milliseconds between two ticks. */
const TICK = 500;
/** Milliseconds for which a tick that was late counts. In this time, workers that are well have reported again. */
const MEMORY = 3000;

/**
 * Watches whether the timers of this process fire on time. After a pause of the whole machine, every report of a worker
 * is old, and no worker is to blame.
 *
 * @returns a function that says whether all ticks of the last seconds were on time
 */
export function watchPunctuality(now: () => number = () => performance.now()): () => boolean {
  let lastTick = now();
  let lateUntil = lastTick;
  setInterval(() => {
    if (now() - lastTick > 2 * TICK) lateUntil = now() + MEMORY;
    lastTick = now();
  }, TICK).unref();
  return () => now() >= lateUntil && now() - lastTick <= 2 * TICK;
}

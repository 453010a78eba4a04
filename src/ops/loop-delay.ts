// The event loop delay: how late a timer is that is due ten times a second. perf_hooks' monitorEventLoopDelay has to be
// reset to tell one second from the next, loses what blocks the loop across a reset, and costs six times as much.
import { createHistogram, type HistogramPiece, observe, takePiece } from './histogram.ts';
import { DELAY_BOUNDS } from './report.ts';

export interface LoopDelay {
  /** What was seen since the last time, in seconds. */
  take(): { readonly delays: HistogramPiece; readonly longestDelay: number };
  close(): void;
}

const INTERVAL = 100;

export function createLoopDelay(now: () => number = () => performance.now()): LoopDelay {
  const delays = createHistogram(DELAY_BOUNDS);
  let longestDelay = 0;
  let due = now() + INTERVAL;
  const timer = setInterval(() => {
    const delay = Math.max(0, now() - due) / 1000;
    due = now() + INTERVAL;
    observe(delays, delay);
    longestDelay = Math.max(longestDelay, delay);
  }, INTERVAL);
  timer.unref();
  return {
    take() {
      const taken = { delays: takePiece(delays), longestDelay };
      longestDelay = 0;
      return taken;
    },
    close: () => clearInterval(timer),
  };
}

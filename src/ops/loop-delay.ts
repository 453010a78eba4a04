// Measures the event loop delay: how late a timer fires that is due ten times a second. monitorEventLoopDelay of
// perf_hooks costs six times as much. It must be reset for each report, and it loses a delay that spans the reset.
import { createHistogram, type HistogramPiece, observe, takePiece } from './histogram.ts';
import { DELAY_BOUNDS } from './report.ts';

export interface LoopDelay {
  /** Returns the delays since the last call, in seconds. */
  take(): { readonly delays: HistogramPiece; readonly longestDelay: number };
  close(): void;
}

/** Milliseconds between two measurements. */
const MEASURE_INTERVAL = 100;

export function createLoopDelay(now: () => number = () => performance.now()): LoopDelay {
  const delays = createHistogram(DELAY_BOUNDS);
  let longestDelay = 0;
  let due = now() + MEASURE_INTERVAL;
  const timer = setInterval(() => {
    const delay = Math.max(0, now() - due) / 1000;
    due = now() + MEASURE_INTERVAL;
    observe(delays, delay);
    longestDelay = Math.max(longestDelay, delay);
  }, MEASURE_INTERVAL);
  timer.unref();
  return {
    take() {
      const piece = { delays: takePiece(delays), longestDelay };
      longestDelay = 0;
      return piece;
    },
    close: () => clearInterval(timer),
  };
}

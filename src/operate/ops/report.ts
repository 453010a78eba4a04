// A worker's report to the supervisor once a second: counts since the last report, and its state now. The supervisor
// adds the counts up, so the totals stay right when a worker ends.
import type { WorkerMetrics } from './worker-metrics.ts';

/** The upper bounds of the buckets for the event loop delay, in seconds. A new request waits as long as this delay. */
export const DELAY_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** The fields that are plain numbers, and count since the last report. */
export const COUNTERS = [
  'credentialReloads',
  'credentialReloadFailures',
  'identityKeyFetches',
  'identityKeyFailures',
  'logLinesDropped',
  'spansExported',
  'spansDropped',
  'connectionsRefused',
  'channelDelivered',
  'channelTooSlow',
] as const;

export type Counters = Record<(typeof COUNTERS)[number], number>;

export type WorkerReport = Readonly<ReturnType<WorkerMetrics['takeReport']>>;

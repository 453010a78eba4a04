// A worker's report to the supervisor once a second: counts since the last report, and its state now. The supervisor
// adds the counts up, so the totals stay right when a worker ends.
import type { QuarantinedRow } from '../../callers/credentials/table/table.ts';
import type { LimitKind } from '../../callers/rates/rate-limiter.ts';
import type { HistogramDelta } from './histogram.ts';
import type { CredentialCount, OperationDelta } from './request-counts.ts';

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

export interface WorkerReport extends Readonly<Counters> {
  // The next fields also cover the time since the last report:
  readonly requestsByOperation: readonly OperationDelta[];
  readonly requestsByCredential: readonly CredentialCount[];
  readonly delays: HistogramDelta;
  readonly longestDelay: number;
  readonly cpuSeconds: number;
  readonly rateLimited: Readonly<Record<LimitKind, number>>;
  // The fields below are the state now:
  readonly inFlight: number;
  readonly rateLimitCallers: number;
  readonly memoryBytes: number;
  readonly heapUsed: number;
  readonly heapLimit: number;
  readonly openDescriptors: number;
  /** 0 when there is no limit, or none is known. */
  readonly maxDescriptors: number;
  readonly credentialRows: number;
  readonly quarantinedRows: number;
  /** The names of the first 20 quarantined rows at most, and why these rows are invalid. */
  readonly quarantineReasons: readonly Pick<QuarantinedRow, 'name' | 'reason'>[];
  /** The reason why the worker still uses an older credentials table; '' when its table is the latest. */
  readonly credentialsFailure: string;
  readonly providers: number;
  readonly refusedProviderRows: number;
}

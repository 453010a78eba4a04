// The report that a worker sends to the supervisor once a second: counts since the report before, and the worker's
// state now. The supervisor adds the counts up, so its totals stay correct when a worker ends.
import type { QuarantinedRow } from '../credentials/table/table.ts';
import type { LimitKind } from '../limits/rate-limiter.ts';
import type { HistogramPiece } from './histogram.ts';
import type { CredentialPiece, OperationPiece } from './request-counts.ts';

/** The upper bounds of the buckets for the event loop delay, which is how long a new request waits, in seconds. */
export const DELAY_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** The counts that are plain numbers. */
export const COUNTERS = [
  'cpuSeconds',
  'credentialReloads',
  'credentialReloadFailures',
  'keyFetches',
  'keyFailures',
  'logLinesDropped',
  'spansExported',
  'spansDropped',
] as const;

export interface WorkerReport extends Readonly<Record<(typeof COUNTERS)[number], number>> {
  // Counts since the last report, in addition to COUNTERS:
  readonly requests: readonly OperationPiece[];
  readonly credentials: readonly CredentialPiece[];
  readonly delays: HistogramPiece;
  readonly rateLimited: Readonly<Record<LimitKind, number>>;
  // The current state:
  readonly inFlight: number;
  /** The number of callers whose requests are counted against a rate limit. */
  readonly limitedCallers: number;
  readonly memoryBytes: number;
  /** The longest of `delays`, in seconds. */
  readonly longestDelay: number;
  readonly credentialRows: number;
  readonly quarantinedRows: number;
  /** The first of the quarantined (invalid) rows of the credentials table. */
  readonly quarantined: readonly Pick<QuarantinedRow, 'name' | 'reason'>[];
  /** The reason why the worker still uses an older credentials table; '' when it does not. */
  readonly credentialsFailure: string;
  /** The number of identity providers in use. */
  readonly providers: number;
  /** The number of invalid rows in the file of the identity providers. */
  readonly refusedProviders: number;
}

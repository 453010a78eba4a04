// What a worker reports to the supervisor once a second: counts since the last report, and the state now. Counts are
// differences, so that a counter survives the end of its worker.
import type { Quarantined } from '../credentials/table/table.ts';
import type { LimitKind } from '../limits/rate-limiter.ts';
import type { HistogramPiece } from './histogram.ts';
import type { CredentialPiece, OperationPiece } from './request-counts.ts';

/** Seconds. What a request that comes now waits for its turn. */
export const DELAY_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export interface WorkerReport {
  // Since the last report.
  readonly requests: readonly OperationPiece[];
  readonly credentials: readonly CredentialPiece[];
  readonly delays: HistogramPiece;
  readonly cpuSeconds: number;
  readonly credentialReloads: number;
  readonly credentialReloadFailures: number;
  readonly keyFetches: number;
  readonly keyFailures: number;
  readonly rateLimited: Readonly<Record<LimitKind, number>>;
  readonly logLinesDropped: number;
  // Now.
  readonly inFlight: number;
  /** Whose calls are counted because they have a limit. */
  readonly limitedCallers: number;
  readonly memoryBytes: number;
  /** The longest of `delays`, in seconds. */
  readonly longestDelay: number;
  readonly credentialRows: number;
  readonly quarantinedRows: number;
  /** The first of them. */
  readonly quarantined: readonly Pick<Quarantined, 'name' | 'reason'>[];
  /** Why the table as it stands is not live; '' when it is. */
  readonly credentialsFailure: string;
  readonly providers: number;
  readonly refusedProviders: number;
}

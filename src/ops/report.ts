// What a worker tells the supervisor about itself once a second: what was counted since the last report, and how things
// are now. Pieces and not totals, so that a counter goes on when its worker ends. It knows the shape, and checks it:
// controllers share the channel.
import { type HistogramPiece, isPiece } from './histogram.ts';
import { DURATION_BOUNDS, isCell, type OperationPiece } from './request-counts.ts';

/** Seconds. What a request that comes now waits for its turn. */
export const DELAY_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export interface Quarantined {
  readonly name: string;
  readonly reason: string;
}

export interface WorkerReport {
  // Since the last report.
  readonly requests: readonly OperationPiece[];
  readonly delays: HistogramPiece;
  readonly cpuSeconds: number;
  readonly credentialReloads: number;
  readonly credentialReloadFailures: number;
  readonly keyFetches: number;
  readonly keyFailures: number;
  readonly logLinesDropped: number;
  // Now.
  readonly inFlight: number;
  readonly memoryBytes: number;
  /** The longest of `delays`, in seconds. */
  readonly longestDelay: number;
  readonly credentialRows: number;
  readonly quarantinedRows: number;
  /** The first of them. */
  readonly quarantined: readonly Quarantined[];
  /** Why the table as it stands is not live; '' when it is. */
  readonly credentialsFailure: string;
  readonly providers: number;
  readonly refusedProviders: number;
}

type Fields = Readonly<Record<string, unknown>>;

const FIELDS: Readonly<Record<keyof WorkerReport, (value: unknown) => boolean>> = {
  requests: (value) => Array.isArray(value) && value.every(isOperationPiece),
  delays: (value) => isPiece(value, DELAY_BOUNDS),
  cpuSeconds: isAmount,
  credentialReloads: isAmount,
  credentialReloadFailures: isAmount,
  keyFetches: isAmount,
  keyFailures: isAmount,
  logLinesDropped: isAmount,
  inFlight: isAmount,
  memoryBytes: isAmount,
  longestDelay: isAmount,
  credentialRows: isAmount,
  quarantinedRows: isAmount,
  quarantined: (value) => Array.isArray(value) && value.every((row) => isFields(row) && isText(row.name) && isText(row.reason)),
  credentialsFailure: isText,
  providers: isAmount,
  refusedProviders: isAmount,
};

/** Undefined for anything else. */
export function parseReport(value: unknown): WorkerReport | undefined {
  if (!isFields(value)) return undefined;
  for (const [name, isSound] of Object.entries(FIELDS)) if (!isSound(value[name])) return undefined;
  return value as unknown as WorkerReport;
}

function isOperationPiece(value: unknown): boolean {
  return (
    isFields(value) &&
    isText(value.page) &&
    isText(value.operation) &&
    isAmount(value.bytes) &&
    isPiece(value.seconds, DURATION_BOUNDS) &&
    Array.isArray(value.cells) &&
    value.cells.every((cell: unknown) => Array.isArray(cell) && cell.length === 2 && isCell(cell[0]) && isAmount(cell[1]))
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** A counter never goes down. */
function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
}

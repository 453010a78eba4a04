// What the operations port knows of the service: the supervisor's status and the workers' reports, added up. What it
// means is readiness.ts and metrics.ts.

import type { CertificateStatus } from '../https/certificates.ts';
import type { LimitKind } from '../limits/rate-limiter.ts';
import type { SupervisorStatus as OwnStatus } from '../supervisor/status.ts';
import { addPiece, createHistogram, type Histogram } from './histogram.ts';
import { DELAY_BOUNDS, type WorkerReport } from './report.ts';
import { createRequestCounts, type RequestCounts } from './request-counts.ts';

/** What the supervisor tells about itself, and of the certificate: `undefined` without HTTPS. */
export type SupervisorStatus = OwnStatus & { readonly certificate?: CertificateStatus | undefined };

/** A worker that has reported and is alive. */
export interface ReportingWorker {
  readonly pid: number;
  /**
   * A number that is free again when the worker is gone, so that the series of a metric do not grow with every edit.
   */
  readonly slot: number;
  /** The last one. */
  readonly report: WorkerReport;
  /** Seconds since then. */
  readonly reportAge: number;
  /** Seconds: the longest of the last minute. */
  readonly longestDelay: number;
}

/** Of all workers that there ever were, those that died and those of earlier generations included. */
export interface Totals {
  readonly requests: RequestCounts;
  readonly delays: Histogram;
  cpuSeconds: number;
  credentialReloads: number;
  credentialReloadFailures: number;
  keyFetches: number;
  keyFailures: number;
  readonly rateLimited: Record<LimitKind, number>;
  logLinesDropped: number;
}

export interface ServiceStatus {
  /** Undefined before there is a supervisor. */
  readonly supervisor: SupervisorStatus | undefined;
  readonly isStopping: boolean;
  readonly totals: Totals;
  readonly workers: readonly ReportingWorker[];
  /** The last report of any worker: all of them read the same tables. */
  readonly latest: WorkerReport | undefined;
}

export interface ServiceWatch {
  status(): ServiceStatus;
  /**
   * @param report as it came over the channel, whose envelope tells it from a controller's messages; `undefined`: none
   * yet
   */
  reported(pid: number, report: unknown): void;
  stopping(): void;
}

/** Reports, so seconds. */
const DELAYS_KEPT = 60;

export function createServiceWatch(
  supervisor: () => SupervisorStatus | undefined,
  now: () => number = () => performance.now(),
): ServiceWatch {
  const workers = new Map<number, { slot: number; report: WorkerReport; at: number; delays: number[] }>();
  const totals: Totals = {
    requests: createRequestCounts(),
    delays: createHistogram(DELAY_BOUNDS),
    cpuSeconds: 0,
    credentialReloads: 0,
    credentialReloadFailures: 0,
    keyFetches: 0,
    keyFailures: 0,
    rateLimited: { credential: 0, address: 0, operation: 0 },
    logLinesDropped: 0,
  };
  let latest: WorkerReport | undefined;
  let isStopping = false;

  return { status, reported, stopping };

  function stopping(): void {
    isStopping = true;
  }

  function status(): ServiceStatus {
    const known = supervisor();
    forgetGone(known);
    const reporting = Array.from(workers, ([pid, { slot, report, at, delays }]) => {
      return { pid, slot, report, reportAge: (now() - at) / 1000, longestDelay: Math.max(...delays) };
    });
    return { supervisor: known, isStopping, totals, workers: reporting.sort((a, b) => a.slot - b.slot), latest };
  }

  function reported(pid: number, value: unknown): void {
    const report = value as WorkerReport | undefined;
    if (report === undefined) return;
    addToTotals(report);
    latest = report;
    if (!workers.has(pid)) forgetGone(supervisor());
    const { slot, delays } = workers.get(pid) ?? { slot: freeSlot(), delays: [] as number[] };
    delays.push(report.longestDelay);
    if (delays.length > DELAYS_KEPT) delays.shift();
    workers.set(pid, { slot, report, at: now(), delays });
  }

  function addToTotals(report: WorkerReport): void {
    for (const piece of report.requests) totals.requests.add(piece);
    for (const [id, requests] of report.credentials) totals.requests.countCredential(id, requests);
    addPiece(totals.delays, report.delays);
    totals.cpuSeconds += report.cpuSeconds;
    totals.credentialReloads += report.credentialReloads;
    totals.credentialReloadFailures += report.credentialReloadFailures;
    totals.keyFetches += report.keyFetches;
    totals.keyFailures += report.keyFailures;
    for (const [kind, refusals] of Object.entries(report.rateLimited))
      totals.rateLimited[kind as LimitKind] += refusals;
    totals.logLinesDropped += report.logLinesDropped;
  }

  function freeSlot(): number {
    const taken = new Set(Array.from(workers.values(), ({ slot }) => slot));
    for (let slot = 0; ; slot++) if (!taken.has(slot)) return slot;
  }

  /** The last report of a worker may come after its end; what it counted is in the totals by then. */
  function forgetGone(known: SupervisorStatus | undefined): void {
    const alive = new Set(known?.workers.map(({ pid }) => pid));
    for (const pid of workers.keys()) if (!alive.has(pid)) workers.delete(pid);
  }
}

// The state of the service for the operations port: the supervisor's status, and the sums of the workers' reports.

import type { Settings } from '../../base/settings.ts';
import type { LimitKind } from '../../callers/rates/rate-limiter.ts';
import type { SupervisorStatus as WorkersStatus } from '../../live/supervisor/status.ts';
import type { CertificateStatus } from '../https/certificates.ts';
import type { StoreStatus } from '../store/link.ts';
import { addDelta, createHistogram, type Histogram } from './histogram.ts';
import { DELAY_BOUNDS } from './loop-delay.ts';
import { createRequestCounts, type RequestCounts } from './request-counts.ts';
import type { WorkerReport } from './worker-metrics.ts';

export type SupervisorStatus = WorkersStatus & {
  readonly certificate?: CertificateStatus | undefined;
  readonly store?: StoreStatus | undefined;
};

export type ServiceStatus = ReturnType<ReturnType<typeof createServiceWatch>['status']>;
export type ReportingWorker = ServiceStatus['workers'][number];

type Counters = Record<keyof WorkerReport['counters'], number>;

/** Sums over all workers since the start, also over workers that have ended. No counter is there before a report. */
export interface Totals extends Partial<Counters> {
  readonly requests: RequestCounts;
  readonly delays: Histogram;
  readonly rateLimited: Record<LimitKind, number>;
  /** CPU time of all workers that have had a number, by this number. */
  readonly cpuSeconds: number[];
}

/** Maximum number of delays in `recentDelays`: the longest of each report. Sixty reports cover one minute. */
const MAX_DELAYS = 60;

export function createServiceWatch(
  supervisor: () => SupervisorStatus | undefined,
  now: () => number = () => performance.now(),
  { ready = 'some' as Settings['ready'], isPunctual = (): boolean => true } = {},
) {
  const workers = new Map<number, { slot: number; report: WorkerReport; reportedAt: number; recentDelays: number[] }>();
  const totals: Totals = {
    requests: createRequestCounts(),
    delays: createHistogram(DELAY_BOUNDS),
    rateLimited: { credential: 0, address: 0, operation: 0 },
    cpuSeconds: [],
  };
  /** The last report of any worker, for data that all workers share: the tables of credentials and providers. */
  let latestReport: WorkerReport | undefined;
  let isStopping = false;

  function status() {
    const supervisorStatus = supervisor();
    removeEnded(supervisorStatus);
    const reportingWorkers = Array.from(workers, ([pid, { slot, report, reportedAt, recentDelays }]) => {
      // `longestDelay` is that of the last minute, in seconds.
      return { pid, slot, report, reportAge: (now() - reportedAt) / 1000, longestDelay: Math.max(...recentDelays) };
    });
    reportingWorkers.sort((a, b) => a.slot - b.slot);
    return {
      supervisor: supervisorStatus,
      isStopping,
      ready,
      /** Whether the timers of this process were on time lately. */
      isPunctual: isPunctual(),
      totals,
      workers: reportingWorkers,
      latestReport,
    };
  }

  function addReport(pid: number, value: unknown): void {
    const report = value as WorkerReport | undefined;
    if (report === undefined) return;
    addToTotals(report);
    latestReport = report;
    if (!workers.has(pid)) removeEnded(supervisor());
    const { slot, recentDelays } = workers.get(pid) ?? { slot: freeSlot(), recentDelays: [] as number[] };
    totals.cpuSeconds[slot] = (totals.cpuSeconds[slot] ?? 0) + report.cpuSeconds;
    recentDelays.push(report.longestDelay);
    if (recentDelays.length > MAX_DELAYS) recentDelays.shift();
    workers.set(pid, { slot, report, reportedAt: now(), recentDelays });
  }

  function addToTotals(report: WorkerReport): void {
    for (const delta of report.requestsByOperation) totals.requests.add(delta);
    for (const [id, requests] of report.requestsByCredential) totals.requests.countCredential(id, requests);
    addDelta(totals.delays, report.delays);
    for (const [name, growth] of Object.entries(report.counters) as [keyof Counters, number][])
      totals[name] = (totals[name] ?? 0) + growth;
    for (const [kind, refusals] of Object.entries(report.rateLimited))
      totals.rateLimited[kind as LimitKind] += refusals;
  }

  /** Returns a worker's number in the metrics. A new worker gets that of an ended one, so there are few series. */
  function freeSlot(): number {
    const slotsInUse = new Set(Array.from(workers.values(), ({ slot }) => slot));
    for (let slot = 0; ; slot++) if (!slotsInUse.has(slot)) return slot;
  }

  /** Removes workers that have ended. Their counts stay in `totals`. */
  function removeEnded(supervisorStatus: SupervisorStatus | undefined): void {
    const livePids = new Set(supervisorStatus?.workers.map(({ pid }) => pid));
    for (const pid of workers.keys()) if (!livePids.has(pid)) workers.delete(pid);
  }

  function setStopping(): void {
    isStopping = true;
  }

  return { status, addReport, setStopping };
}

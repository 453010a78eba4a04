// Decides whether the service is ready, and describes its state for /readyz. A supervisor that answers /livez is alive.
import { SERVICE } from '../../base/group-name.ts';
import { lacksGroups } from '../../base/ready-groups.ts';
import { unixTime } from '../../base/time.ts';
import type { GroupLoad } from '../../live/load/group-load.ts';
import type { StoreStatus } from '../store/link.ts';
import type { ServiceStatus } from './service-status.ts';
import type { WorkerReport } from './worker-metrics.ts';

/** The states in which a worker answers requests. A faulty worker does so until its replacement serves. */
const SERVING_STATES: ReadonlySet<string> = new Set(['serving', 'faulty']);

/** Seconds. A worker reports once a second. One that is silent for longer is stuck, and is killed after 5 s. */
const MAX_REPORT_AGE = 3;

/** Returns one of the states that docs/OPERATING.md explains. */
export function readinessOf(service: ServiceStatus) {
  const { supervisor, isStopping, ready } = service;
  if (isStopping) return 'stopping';
  if (supervisor === undefined || supervisor.generation === 0) return 'starting';
  if (supervisor.notLoadable.some(({ group }) => group === SERVICE)) return 'service-not-loadable';
  if (lacksGroups(supervisor, ready)) return 'groups-not-loadable';
  if (supervisor.store?.isTooOld) return 'store-too-old';
  if (!supervisor.workers.some(({ state }) => SERVING_STATES.has(state))) return 'no-worker';
  return areStuck(service) ? 'workers-stuck' : 'ready';
}

/** A supervisor whose own timer was late cannot judge: the whole machine may have been suspended. */
function areStuck({ supervisor, workers, isPunctual }: ServiceStatus): boolean {
  const ages = new Map(workers.map(({ pid, reportAge }) => [pid, reportAge]));
  const serving = supervisor?.workers.filter(({ state }) => SERVING_STATES.has(state)) ?? [];
  return isPunctual && serving.every(({ pid }) => (ages.get(pid ?? 0) ?? 0) > MAX_REPORT_AGE);
}

/** Builds the body of /readyz. A field without a value is `null`, except `store`, which is left out without STORE. */
export function describeReadiness(service: ServiceStatus, now: Date = new Date()): object {
  const { supervisor, workers: reportingWorkers, latestReport } = service;
  const slots = new Map(reportingWorkers.map(({ pid, slot }) => [pid, slot]));
  return {
    status: readinessOf(service),
    timestamp: unixTime(now.getTime()),
    generation: supervisor?.generation ?? 0,
    serving_since: supervisor?.servingSince?.toISOString() ?? null,
    workers: (supervisor?.workers ?? []).map(({ pid, generation, state }) => ({
      pid,
      worker: pid === undefined ? null : (slots.get(pid) ?? null),
      generation,
      state,
    })),
    rejected: describeRejection(supervisor?.rejected),
    not_loadable: (supervisor?.notLoadable ?? []).map(describeFailure),
    ...(supervisor?.store === undefined ? {} : { store: describeStore(supervisor.store) }),
    credentials: latestReport === undefined ? null : describeCredentials(latestReport),
    identity: latestReport ? { providers: latestReport.providers, refused: latestReport.refusedProviderRows } : null,
  };
}

function describeStore({ state: { awayReason: reason, machines }, ageSeconds }: StoreStatus): object {
  return { state: reason === null ? 'connected' : 'away', reason, age_seconds: ageSeconds, machines };
}

function describeRejection(rejected: NonNullable<ServiceStatus['supervisor']>['rejected']): object | null {
  if (rejected === undefined) return null;
  const { generation, at, error, failures } = rejected;
  return { generation, at: at.toISOString(), error: error ?? null, groups: failures.map(describeFailure) };
}

function describeFailure({ group, file, error, at }: GroupLoad): object {
  return { group, file, error: error ?? null, at: at ?? null };
}

function describeCredentials(report: WorkerReport) {
  const { credentialRows: rows, quarantinedRows: quarantined_rows, quarantineReasons: quarantined } = report;
  return { rows, quarantined_rows, quarantined, failure: report.credentialsFailure || null };
}

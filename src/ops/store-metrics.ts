// The metrics of the store, the database that machines share. Without STORE, these metrics have no samples.
import type { StoreStatus } from '../store/link.ts';
import type { MetricRow } from './metrics.ts';

export const STORE_METRICS: readonly MetricRow[] = [
  row('gatefold_store_up', 'gauge', '1 while the store answers', ({ state }) => Number(state.away === null)),
  row(
    'gatefold_store_age_seconds',
    'gauge',
    'Seconds since the credentials table was proven complete',
    ({ ageSeconds }) => ageSeconds ?? Number.POSITIVE_INFINITY,
  ),
  row('gatefold_store_full_reads_total', 'counter', 'Times that all rows were read', ({ state }) => state.fullReads),
  row(
    'gatefold_store_missed_bells_total',
    'counter',
    'Changes of the store that no notification announced',
    ({ state }) => state.missedBells,
  ),
  row('gatefold_machines', 'gauge', 'Machines that have reported lately', ({ state }) => state.machines),
];

function row(name: string, type: MetricRow['type'], help: string, measure: (store: StoreStatus) => number): MetricRow {
  return {
    ...{ name, type, help },
    samples: ({ supervisor }) => (supervisor?.store === undefined ? [] : [{ value: measure(supervisor.store) }]),
  };
}

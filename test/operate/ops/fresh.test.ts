// The metrics of a service that nobody has asked anything. An alert on a counter must not see what did not happen.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scrape, startWatched, until } from '../../support/ops-client.ts';
import { total } from '../../support/prometheus-text.ts';

/** Names of metrics that the machine decides. */
const OF_THE_MACHINE = /^(?:process_|nodejs_|gatefold_event_loop_delay|.*_(?:age|time)_seconds)/;

it('a service that has only started counts nothing but its start', async (test) => {
  const { ops } = await startWatched(test, { env: { WORKERS: '1' } });
  // The first report of the worker brings both.
  const metrics = await until(
    () => scrape(ops),
    (seen) =>
      seen.get('http_server_active_requests')?.samples.length === 1 &&
      total(seen, 'gatefold_event_loop_delay_seconds_count') > 0,
  );
  const samples = [...metrics.values()].flatMap(({ samples }) => samples);
  const counted = samples.filter(({ name, value }) => value !== 0 && !OF_THE_MACHINE.test(name));
  assert.deepEqual(
    counted.map(({ name, labels, value }) => [name, labels.state, value]),
    [
      ['gatefold_build_info', undefined, 1],
      ['gatefold_ready', undefined, 1],
      ['gatefold_workers', 'serving', 1],
      ['gatefold_workers_wanted', undefined, 1],
      ['gatefold_generation', undefined, 1],
      ['gatefold_generations_total', undefined, 1],
    ],
  );
  const zeros = samples.filter(({ name, value }) => value === 0 && name.endsWith('_total'));
  assert.ok(zeros.length >= 18, `${zeros.map(({ name }) => name)}`);
});

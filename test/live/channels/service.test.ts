// Tests channels of the built service, with real processes. test/slow/channels.slow.ts has kills and more edits.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { test } from 'node:test';
import { ask } from '../../support/cluster-client.ts';
import { createFolder, startService, write } from '../../support/cluster-server.ts';
import { followEvents } from '../../support/event-source.ts';
import { livePage } from '../../support/live-page.ts';
import { freePorts } from '../../support/ports.ts';

test('events reach pages on all workers in one order, and an edit loses none', async (t) => {
  const [opsPort] = await freePorts(1);
  const dir = createFolder(t, { 'LiveController.mjs': livePage(1) });
  const service = await startService(t, {
    dir,
    env: { OPS_PORT: String(opsPort) },
  });
  const url = `http://127.0.0.1:${service.port}/api/live`;
  const stop = new AbortController();
  t.after(() => stop.abort());
  setMaxListeners(0, stop.signal);
  const pages = Array.from({ length: 4 }, () => ({ seen: [] as number[], workers: new Set<unknown>() }));
  let wake = () => {};
  const following = Promise.all(
    pages.map(({ seen, workers }) =>
      followEvents(
        `${url}/page`,
        stop.signal,
        ({ data }) => {
          seen.push((JSON.parse(data) as { n: number }).n);
          wake();
        },
        ({ headers }) => {
          workers.add(headers['x-worker']);
          wake();
        },
      ),
    ),
  );
  const until = async (isDone: () => boolean) => {
    while (!isDone()) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([woken, following]);
    }
  };
  await until(() => pages.every(({ workers }) => workers.size === 1));
  let published = 0;
  const publish = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const answer = await ask(service.port, `/api/live/publish?n=${++published}`);
      assert.equal(answer.status, 200, answer.body);
    }
  };
  await publish(12);
  write(service.dir, 'LiveController.mjs', livePage(2));
  await publish(12);
  await service.logged('generation-serving', ({ generation }) => generation === 2);
  await until(() => pages.every(({ workers }) => workers.size === 2));
  await publish(12);
  await until(() => pages.every(({ seen }) => seen.length >= 36));
  stop.abort();
  await following;
  const all = Array.from({ length: 36 }, (_, i) => i + 1);
  for (const { seen } of pages) assert.deepEqual(seen, all);
  const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  assert.match(metrics, /^gatefold_channel_published_total 36$/m);
  assert.match(metrics, /^gatefold_channel_kept_bytes [1-9]\d{3,}$/m);
  assert.match(metrics, /^gatefold_channel_too_slow_total 0$/m);
  assert.deepEqual(
    service.lines.filter(({ level, event }) => level === 'error' || event === 'channels-of-one-machine'),
    [],
  );
});

// Publishes to a channel while workers are replaced by edits and killed, and checks that each page gets every event that
// was confirmed, once and in the same order as the other pages.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, json } from './cluster-client.ts';
import { startService, write } from './cluster-server.ts';
import { followEvents } from './event-source.ts';
import { livePage } from './live-page.ts';

export interface ChannelRun {
  /** The fewest events to confirm. */
  readonly events: number;
  readonly edits: number;
  readonly kills: number;
  readonly pages: number;
  readonly node?: string;
}

/** Confirmed by one request at most. */
const BATCH = 25;
/** More than are published while a page reconnects. */
const KEEP = 20_000;

export async function runChannel(t: TestContext, { events, edits, kills, pages, node }: ChannelRun): Promise<string> {
  const service = await startService(t, {
    files: { 'LiveController.mjs': livePage(0, KEEP) },
    env: { LOG_LEVEL: 'info', DRAIN_TIMEOUT: '5s' },
    ...(node !== undefined && { node }),
  });
  const { port } = service;
  const stop = new AbortController();
  t.after(() => stop.abort());
  setMaxListeners(0, stop.signal);
  const seen = Array.from({ length: pages }, (): number[] => []);
  const connects: string[][] = Array.from({ length: pages }, () => []);
  const following = seen.map((list, page) =>
    followEvents(
      `http://127.0.0.1:${port}/api/live/page`,
      stop.signal,
      ({ data }) => {
        const event = JSON.parse(data) as { n: number } | null;
        assert.ok(event !== null, 'no page gets a reset');
        list.push(event.n);
      },
      ({ headers }) => void connects[page]?.push(String(headers['x-worker'])),
      true,
    ),
  );
  const failed = Promise.all(following);
  const until = async (isDone: () => boolean) => {
    while (!isDone()) await Promise.race([sleep(10), failed]);
  };
  await until(() => connects.every((list) => list.length > 0));

  const confirmed = new Set<number>();
  let next = 0;
  let isOver = false;
  /** The process that answered last, of the newest code. */
  let pid = 0;
  const publish = async () => {
    while (!isOver) {
      const from = next;
      next += BATCH;
      // A killed worker answers nothing. Its events may be published, but none is confirmed.
      const answer = await ask(port, `/api/live/batch?from=${from}&to=${next}`).catch(() => undefined);
      if (answer?.status !== 200) continue;
      const body = json(answer) as { confirmed: number[]; pid: number; version: number; error?: string };
      for (const n of body.confirmed) confirmed.add(n);
      if (body.version === edited) pid = body.pid;
      if (body.error !== undefined) await sleep(100);
    }
  };
  const part = events / (edits + kills + 1);
  let [edited, killed] = [0, 0];
  t.after(() => {
    isOver = true;
  });
  const publishing = Promise.all([publish(), publish()]);
  for (let step = 1; step <= edits + kills; step++) {
    await until(() => confirmed.size >= step * part);
    if (killed * edits < edited * kills) {
      killed++;
      pid = 0;
      await until(() => pid !== 0);
      const replaced = service.lines.filter(({ event }) => event === 'worker-replaced').length;
      process.kill(pid, 'SIGKILL');
      await until(() => service.lines.filter(({ event }) => event === 'worker-replaced').length > replaced);
    } else {
      write(service.dir, 'LiveController.mjs', livePage(++edited, KEEP));
      await until(() => service.lines.filter(({ event }) => event === 'generation-serving').length > edited);
    }
  }
  await until(() => confirmed.size >= events);
  isOver = true;
  await publishing;
  const last = next;
  // A worker publishes no more than 500 events a second (CHANNEL_BUSY), and may have done so just before.
  const publishLast = async () =>
    json(await ask(port, `/api/live/batch?from=${last}&to=${last + 1}`)) as { confirmed: number[] };
  while ((await publishLast()).confirmed.length === 0) await sleep(100);
  await until(() => seen.every((list) => list.at(-1) === last));
  stop.abort();
  await failed;
  for (const list of seen) {
    assert.equal(new Set(list).size, list.length, 'no event comes twice');
    assert.deepEqual(list, seen[0], 'all pages have one order');
    const have = new Set(list);
    assert.deepEqual(
      [...confirmed].filter((n) => !have.has(n)),
      [],
      'no event is lost',
    );
  }
  assert.equal(service.lines.filter(({ event }) => event === 'stream-failed').length, 0);
  const reconnects = connects.reduce((sum, list) => sum + list.length - 1, 0);
  return `${confirmed.size} events confirmed, ${edited} edits, ${killed} kills, ${reconnects} reconnects of ${pages} pages`;
}

// The follower of a store, with a store and a replica in memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFollower, type FollowerOptions } from '../../../src/operate/store/follower.ts';
import { StoreAway } from '../../../src/operate/store/store.ts';
import { retryWhileAway } from '../../../src/operate/store/update.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

test('announces the changes that come during the pause between two writes of the file', async (t) => {
  // The pause ends only when the test says so.
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const events: string[] = [];
  let asks = 0;
  let failure: StoreAway | undefined;
  const waiting: [string, string | undefined][] = [];
  const rows = new Map([['old', '{"id":"old"}']]);
  const store = {
    async since() {
      asks++;
      if (failure !== undefined) throw failure;
      return { changes: waiting.splice(0), version: '1', isComplete: true };
    },
  } as unknown as FollowerOptions['store'];
  const replica = {
    version: () => '1',
    rows: () => rows,
    age: () => 0,
    apply: () => {},
    lostChanges: () => [],
    markComplete: () => {},
    publish() {
      events.push('written');
      // The pause is a multiple of the processor time of a write.
      const begunAt = process.cpuUsage();
      while (process.cpuUsage(begunAt).user < 50_000);
      return true;
    },
  } as unknown as FollowerOptions['replica'];
  const follower = createFollower({
    ...{ store, replica, log: createMemoryLog().log, onPublished() {}, onLook() {} },
    onChanged: ({ revoked, added }) => events.push(`-${revoked} +${added}`),
  });
  t.after(() => follower.close());
  const settle = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  const ring = async (name: string, row?: string) => {
    const before = asks;
    waiting.push([name, row]);
    follower.onBell();
    while (asks === before) await settle();
    await settle();
  };
  await follower.look();
  assert.deepEqual(events.splice(0), ['written']);
  await ring('new', '{"id":"new"}');
  await ring('old', '{"id":"old","revoked_at":"2026-01-01T00:00:00Z"}');
  await ring('gone');
  // Other changes of a row, and rows without an id of their own, wait for the file.
  await ring('old', '{"id":"old"}');
  await ring('~made', '{"id":"x"}');
  assert.deepEqual(events.splice(0), ['- +{"id":"new"}', '-old +', '-gone +']);
  // The store is away in the pause. The changes that the machine has seen are written all the same.
  failure = new StoreAway('it is away');
  follower.onBell();
  for (let turn = 0; turn < 100 && events.length === 0; turn++) await settle();
  assert.deepEqual(events.splice(0), ['written']);
  failure = undefined;
  now = 1e9;
  t.mock.timers.tick(1e9);
  while (events.length === 0) await settle();
  assert.equal(events[0], 'written');
});

test('writes the changes that the store has lost, and names each', async (t) => {
  const stored = { same: '{"id":"same"}', rotated: '{"id":"rotated"}', revoked: '{"id":"revoked"}' };
  const REVOKED = '{"id":"revoked","revoked_at":"2026-01-01T00:00:00Z"}';
  const written: unknown[] = [];
  const store = {
    since: async () => ({ changes: [], version: '1', isComplete: true }),
    read: async () => ({
      entries: new Map(Object.entries(stored).map(([name, value]) => [name, { version: '7', value }])),
    }),
    async write(_space: string, changes: readonly { name: string; expectedVersion: string; value: string }[]) {
      written.push(...changes.map(({ name, expectedVersion, value }) => [name, expectedVersion, value]));
      return true;
    },
  } as unknown as FollowerOptions['store'];
  const replica = {
    ...{ version: () => '1', rows: () => new Map(), age: () => 0, apply() {}, markComplete() {}, publish: () => false },
    lostChanges: () => Object.keys(stored),
    restore: (name: string, row: string) =>
      name === 'rotated' ? '{"id":"rotated","hash":"new"}' : name === 'revoked' ? REVOKED : row,
  } as unknown as FollowerOptions['replica'];
  const { log, lines } = createMemoryLog();
  const follower = createFollower({ store, replica, log, onPublished() {}, onLook() {}, onChanged() {} });
  t.after(() => follower.close());
  await follower.look();
  assert.deepEqual(written, [
    ['rotated', '7', '{"id":"rotated","hash":"new"}'],
    ['revoked', '7', REVOKED],
  ]);
  assert.deepEqual(lines, [
    { event: 'store-rotation-restored', id: 'rotated' },
    { event: 'store-revocation-restored', id: 'revoked' },
  ]);
});

test('logs each reason why the store is away once, also where reasons alternate', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let reason: string | undefined;
  const store = {
    async since() {
      if (reason !== undefined) throw new StoreAway(reason);
      return { changes: [], version: '1', isComplete: true };
    },
  } as unknown as FollowerOptions['store'];
  const replica = {
    ...{ version: () => '1', age: () => 0, apply() {}, lostChanges: () => [], markComplete() {}, publish: () => false },
  } as unknown as FollowerOptions['replica'];
  const { log, lines } = createMemoryLog();
  const follower = createFollower({ store, replica, log, onPublished() {}, onLook() {}, onChanged() {} });
  t.after(() => follower.close());
  for (reason of ['it was closed', 'it was reset', 'it was closed', 'it was reset', undefined, 'it was reset']) {
    await follower.look().catch(() => {});
    assert.equal(follower.status().awayReason, reason ?? null);
  }
  assert.deepEqual(
    lines.map(({ event, reason }) => reason ?? event),
    ['it was closed', 'it was reset', 'store-back', 'it was reset'],
  );
});

test('retryWhileAway repeats a call until its patience is over, unless a retry is useless', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const attempt = async (error: (attempt: number) => Error | undefined, patience = 0) => {
    now = 0;
    let attempts = 0;
    const work = async () => {
      const failure = error(++attempts);
      now = attempts - 1;
      if (failure !== undefined) throw failure;
      return 'done';
    };
    const outcome = await retryWhileAway(work, patience).catch(({ message }: Error) => message);
    return [outcome, attempts];
  };
  assert.deepEqual(await attempt(() => new StoreAway('away')), ['away', 2]);
  assert.deepEqual(await attempt((count) => (count < 3 ? new StoreAway('away') : undefined), 5), ['done', 3]);
  assert.deepEqual(await attempt(() => new StoreAway('no user', { needsOperator: true })), ['no user', 1]);
  assert.deepEqual(await attempt(() => new Error('a mistake')), ['a mistake', 1]);
});

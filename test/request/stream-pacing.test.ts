// The share of a turn of the event loop that streams may have, to the byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { countSent, maySendMore } from '../../src/request/answer/stream-pacing.ts';

const KB = 1024;

test('a stream waits when a turn has cost 256 KiB, if its pieces have cost more than 128 KiB', async () => {
  await turn();
  assert.equal(countSent(240 * KB - 1), 256 * KB - 1);
  assert.equal(maySendMore(1e9), true);
  countSent(1 - 16 * KB);
  assert.deepEqual([128 * KB, 128 * KB + 1].map(maySendMore), [true, false]);
  await turn();
  assert.equal(maySendMore(1e9), true);
});

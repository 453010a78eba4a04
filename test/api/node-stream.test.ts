// `toNodeStream` gives Node's libraries the body of a request: all of its bytes, and its failure.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toNodeStream } from '../../src/api/controller.ts';

test('toNodeStream reads all pieces in their order', async () => {
  let sent = 0;
  const data = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (++sent > 3) return controller.close();
      controller.enqueue(new Uint8Array(10).fill(sent));
    },
  });
  assert.deepEqual(
    Buffer.concat(await toNodeStream(data).toArray()),
    Buffer.concat([1, 2, 3].map((value) => Buffer.alloc(10, value))),
  );
});

test('toNodeStream fails as the body does', async () => {
  const data = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('too large')) });
  await assert.rejects(toNodeStream(data).toArray(), /too large/);
});

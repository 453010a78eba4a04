// How many connections a process can have with the descriptors that it has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  defaultConnections,
  maxConnections,
  maxDescriptor,
  maxSupervisorConnections,
} from '../../src/base/descriptors.ts';

for (const [name, wanted, limit, most] of [
  ['plenty of descriptors', 10_000, 1_048_576, 10_000],
  ['the usual descriptor limit of a shell', 10_000, 1024, 896],
  ['64 descriptors', 10_000, 64, 32],
  ['20 descriptors', 10_000, 20, 1],
  ['more descriptors than connections', 5, 1024, 5],
] as const) {
  test(`maxConnections allows ${most} of ${wanted} connections with ${name}`, () =>
    assert.equal(maxConnections(wanted, limit), most));
}

for (const [name, wanted, limit, most] of [
  ['plenty of descriptors', 1000, 1_048_576, 1000],
  ['the usual descriptor limit of a shell', 1000, 1024, 224],
  ['64 descriptors', 1000, 64, 8],
  ['20 descriptors', 1000, 20, 1],
  ['more descriptors than connections', 100, 1024, 100],
] as const) {
  test(`maxSupervisorConnections allows ${most} of ${wanted} connections with ${name}`, () => {
    assert.equal(maxSupervisorConnections(wanted, limit), most);
  });
}

test('by default, a connection has 96 KiB of the heap beyond 32 MiB, and a worker has 100 to 10,000 connections', () => {
  const heaps = [4096, 970, 512, 128, 33].map((megabytes) => megabytes * 2 ** 20);
  assert.deepEqual(heaps.map(defaultConnections), [10_000, 10_000, 5120, 1024, 100]);
});

test('maxConnections uses the descriptor limit of this process by default', () => {
  assert.equal(maxConnections(1), 1);
  const most = maxConnections(Number.MAX_SAFE_INTEGER);
  assert.ok(most > 0 && (process.platform !== 'linux' || most < Number.MAX_SAFE_INTEGER), String(most));
});

test('maxDescriptor leaves the last sixteen descriptors free', () => {
  const limits = [1024, 33, 32, 20];
  assert.deepEqual(
    limits.map((limit) => maxDescriptor(limit)),
    [1008, 17, 16, 16],
  );
});

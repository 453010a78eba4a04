// The disposal of controllers: which ones are disposed, how failures are logged, and that none delays the end of the
// process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import type { Group } from '../../../src/groups/operations.ts';
import { closeService, disposeOf } from '../../../src/live/load/disposal.ts';

function createMemory() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => void lines.push(JSON.parse(line)), flush() {} } });
  return { lines, log };
}

test('disposeOf disposes each controller, and logs one that throws or takes too long', async () => {
  const { lines, log } = createMemory();
  const closed: string[] = [];
  const controllers: Record<string, object> = {
    Plain: {},
    Later: {
      async [Symbol.asyncDispose]() {
        await null;
        closed.push('later');
      },
      [Symbol.dispose]: () => closed.push('not this one'),
    },
    Now: new (class {
      pool = 'now';
      [Symbol.dispose]() {
        closed.push(this.pool);
      }
    })(),
    Throws: {
      [Symbol.dispose]() {
        throw new Error('no pool');
      },
    },
    Hangs: { [Symbol.asyncDispose]: () => new Promise(() => {}) },
  };
  const groups = Object.entries(controllers).map(([name, controller]) => ({ name, controller }) as Group);
  await disposeOf(groups, log, 20);
  assert.deepEqual(closed.sort(), ['later', 'now']);
  assert.deepEqual(
    lines.map(({ level, event, group, error }) => [level, event, group, error]),
    [
      ['warn', 'controller-not-disposed', 'Throws', 'no pool'],
      ['warn', 'controller-not-disposed', 'Hangs', 'it took longer than 20 ms'],
    ],
  );
});

test('closeService waits for close of the service file, and logs a close that fails or takes too long', async () => {
  const { lines, log } = createMemory();
  let isClosed = false;
  const close = async () => {
    await null;
    isClosed = true;
  };
  const fail = () => {
    throw new Error('no pool');
  };
  for (const work of [close, fail, () => new Promise(() => {})]) await closeService(work, log, 20);
  assert.ok(isClosed);
  assert.deepEqual(
    lines.map(({ level, event, error }) => [level, event, error]),
    [
      ['warn', 'service-not-closed', 'no pool'],
      ['warn', 'service-not-closed', 'it took longer than 20 ms'],
    ],
  );
});

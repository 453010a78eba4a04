// The disposal of controllers: which ones are disposed, how failures are logged, and that none delays the end of the
// process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { disposeOf } from '../../src/groups/disposal.ts';
import type { Group } from '../../src/groups/operations.ts';

test('disposeOf closes what can be closed, and waits for nothing longer than its time', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => void lines.push(JSON.parse(line)), flush() {} } });
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

// The parts of a worker, built in this process and without a supervisor.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSettings } from '../../../src/base/config.ts';
import { createLog } from '../../../src/base/log.ts';
import { createWorkerParts } from '../../../src/live/worker/parts.ts';
import { createFolder } from '../../support/folder.ts';

test('the parts look at no file of the data folder after close', async (t) => {
  /** The timers that wait, and their pauses in milliseconds. */
  const waiting = new Map<unknown, number>();
  const { setTimeout, clearTimeout } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (use: () => void, pause: number) => {
    const fire = () => {
      waiting.delete(timer);
      use();
    };
    const timer = setTimeout(fire, pause);
    waiting.set(timer, pause);
    return timer;
  });
  t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
    waiting.delete(timer);
    clearTimeout(timer);
  });
  const dir = createFolder(t);
  const settings = parseSettings({ CONTROLLERS_DIR: dir, DATA_DIR: dir }, [], { cores: 1 });
  const sink = { write() {}, flush() {} };
  const parts = await createWorkerParts({ settings, log: createLog({ level: 'error', sink }), sink });
  // The credentials table and the identity providers.
  assert.deepEqual([...waiting.values()].sort(), [250, 300]);
  parts.close();
  assert.deepEqual([...waiting.values()], []);
});

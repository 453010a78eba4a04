// The parts of a worker, built in this process and without a supervisor.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createParams } from '../../../src/api/controller/create-params.ts';
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

test('in development, a result that does not match its type is logged', async (t) => {
  const dir = createFolder(t, {
    'UserController.ts':
      'export default class UserController { index(): { id: string } { return { id: 7 } as never; } }',
  });
  const settings = parseSettings({ CONTROLLERS_DIR: dir, DATA_DIR: dir, NODE_ENV: 'development' }, [], { cores: 1 });
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)), flush() {} };
  const { groups, close } = await createWorkerParts({ settings, log: createLog({ level: 'warn', sink }), sink });
  t.after(close);
  const operation = (await groups.find('user'))?.operations.get('index');
  await operation?.method.call(operation.controller, {}, createParams({}));
  assert.deepEqual(
    lines.map(({ event, group, operation: name, pointer, message }) => [event, group, name, pointer, message]),
    [['result-type-mismatched', 'User', 'index', '/id', 'must be a string']],
  );
});

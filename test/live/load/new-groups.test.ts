// New groups in a worker: how long a request waits for one. A test sets the clock, and no file is imported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createNewGroups, type NewGroupsOptions } from '../../../src/live/load/new-groups.ts';
import { createFolder } from '../../support/folder.ts';

const FOUND = { fileOf: () => 'NewController.ts', brokenReason: () => undefined, published: () => undefined };

test('a group without a file is absent, and a file that ended another worker is not imported', async () => {
  const groupsOf = (options: object) => createNewGroups({ ...FOUND, ...options } as unknown as NewGroupsOptions);
  const absent = groupsOf({ fileOf: () => undefined });
  assert.deepEqual([await absent.find('New'), await absent.importNew('New')], [undefined, undefined]);
  assert.equal(await groupsOf({ dir: '/nowhere' }).importNew('New'), undefined);
  const broken = groupsOf({
    brokenReason: () => 'it ended its worker',
    admit: () => assert.fail('it is not asked for'),
  });
  await assert.rejects(broken.find('New'), (error: Error & { code?: string }) => {
    const { message } = error.cause as Error;
    return error.code === 'GROUP_NOT_LOADABLE' && message === 'NewController.ts: it ended its worker';
  });
});

test('no new group is loaded beside a file that is likely meant as the service file', async (t) => {
  const dir = createFolder(t, { 'NewController.ts': '' });
  const lines: string[] = [];
  const { importNew } = createNewGroups({
    ...{ ...FOUND, dir, findStray: async () => ({ file: 'Service.ts', reason: 'call it service.ts' }) },
    log: createLog({ level: 'info', sink: { write: (line) => void lines.push(JSON.parse(line).event) } }),
  } as unknown as NewGroupsOptions);
  const error = 'Service.ts: call it service.ts';
  const load = { group: 'New', file: 'NewController.ts', ok: false, code: 'INVALID_SERVICE_FILE', error };
  assert.deepEqual([await importNew('New'), lines], [load, ['group-not-loadable']]);
});

test('a request stops asking for a group whose import hangs, and asks again where it failed at once', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const asksWithin = async (seconds: number) => {
    let asks = 0;
    const { find } = createNewGroups({
      ...FOUND,
      async admit() {
        asks++;
        now += seconds * 1000;
        return 'failed';
      },
    } as unknown as NewGroupsOptions);
    await assert.rejects(find('New'), { code: 'GROUP_LOADING' });
    return asks;
  };
  assert.equal(await asksWithin(14), 2);
  assert.equal(await asksWithin(20), 1);
  assert.equal(await asksWithin(0.1), 4);
});

// New groups in a worker: how long a request waits for one. A test sets the clock, and no file is imported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNewGroups, type NewGroupsOptions } from '../../../src/live/load/new-groups.ts';

test('a request stops asking for a group whose import hangs, and asks again where it failed at once', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const asksWithin = async (seconds: number) => {
    let asks = 0;
    const { find } = createNewGroups({
      ...{ fileOf: () => 'NewController.ts', brokenReason: () => undefined, published: () => undefined },
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
  assert.equal(await asksWithin(0.1), 4);
});

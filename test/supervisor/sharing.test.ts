// Tests new groups: every worker imports the group, and no worker answers for it before all have reported.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createNewGroups } from '../../src/supervisor/new-groups.ts';
import type { WorkerHandle, WorkerState } from '../../src/supervisor/workers/worker-handle.ts';

function create(...states: WorkerState[]) {
  const told: string[] = [];
  const answers: (() => void)[] = [];
  const workers = states.map((state, id) => {
    const send = ({ kind, group }: { kind: string; group?: string }) => void told.push(`${id}: ${kind} ${group}`);
    const importGroup = (group: string) => {
      told.push(`${id}: import ${group}`);
      return new Promise<void>((resolve) => (answers[id] = resolve));
    };
    return { state, send, importGroup } as unknown as WorkerHandle;
  });
  return { workers, told, answer: (id: number) => answers[id]?.(), groups: createNewGroups(() => workers) };
}

describe('createNewGroups', () => {
  it('orders every other worker to import, and shares the group after the last report', async () => {
    const { workers, told, answer, groups } = create('serving', 'serving', 'loaded', 'draining', 'standby');
    const [first, second] = workers as [WorkerHandle, WorkerHandle];
    groups.imported(first, 'New');
    assert.deepEqual(told.splice(0), ['1: import New', '2: import New']);
    groups.imported(second, 'New');
    answer(1);
    await turn();
    assert.deepEqual(told, []);
    assert.ok(groups.isPending('New'));
    answer(2);
    await turn();
    assert.deepEqual(
      told,
      [0, 1, 2, 3, 4].map((id) => `${id}: shared New`),
      'a draining worker may hold requests, too',
    );
    assert.ok(!groups.isPending('New'));
  });

  it('shares the group at once when there is only one worker', async () => {
    const { workers, told, groups } = create('serving');
    groups.imported(workers[0] as WorkerHandle, 'New');
    await turn();
    assert.deepEqual(told, ['0: shared New']);
  });
});

// New groups, whose files come after the load: who may serve them (may-serve.ts), and in which order workers import them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { GroupLoad } from '../../../src/live/load/group-load.ts';
import { type Situation, whyNotServe } from '../../../src/live/supervisor/may-serve.ts';
import { createNewGroups } from '../../../src/live/supervisor/new-groups.ts';
import type { WorkerState } from '../../../src/live/supervisor/workers/worker-events.ts';
import type { WorkerHandle } from '../../../src/live/supervisor/workers/worker-handle.ts';

const LOAD: GroupLoad = { group: 'New', file: 'NewController.js', ok: true };

describe('whyNotServe', () => {
  const CALM = { generation: 2, isGenerationDue: false, isRejected: false, change: undefined };
  const cases: readonly [name: string, situation: Partial<Record<keyof typeof CALM, unknown>>, reason: unknown][] = [
    ['the folder is what the generation has loaded', {}, undefined],
    ['the worker is of an older generation', { generation: 1 }, 'a newer generation serves'],
    ['a generation is due', { isGenerationDue: true }, 'a generation is due'],
    ['the newest generation was rejected', { isRejected: true }, 'the newest generation was rejected'],
    ['a file has changed', { change: '/x/service.ts' }, '/x/service.ts has changed'],
  ];
  for (const [name, differences, reason] of cases) {
    it(name, () => {
      const { generation, change, ...facts } = { ...CALM, ...differences } as typeof CALM & { change?: string };
      const table = { current: { generation: 2, groups: new Map(), since: undefined } };
      const situation: Situation = { table, watch: { changeSinceLoad: () => change }, ...facts };
      assert.equal(whyNotServe({ generation }, undefined, situation), reason);
    });
  }

  it('compares the file that a worker has imported', () => {
    const table = { current: { generation: 1, groups: new Map(), since: undefined } };
    const files: unknown[] = [];
    const watch = { changeSinceLoad: (file?: string) => void files.push(file) };
    whyNotServe({ generation: 1 }, 'XController.js', { table, watch, isGenerationDue: false, isRejected: false });
    assert.deepEqual(files, ['XController.js']);
  });
});

describe('createNewGroups', () => {
  function create(...states: WorkerState[]) {
    const told: string[] = [];
    const answers: ((load?: GroupLoad) => void)[] = [];
    const verdicts: boolean[] = [];
    const workers = states.map((state, id) => {
      const send = ({ kind, group, answer }: { kind: string; group?: string; answer?: string }) =>
        void told.push([`${id}:`, kind, group, answer].filter((word) => word !== undefined).join(' '));
      const importGroup = (group: string) => {
        told.push(`${id}: import ${group}`);
        return new Promise<GroupLoad | undefined>((resolve) => (answers[id] = resolve));
      };
      return { state, send, importGroup } as unknown as WorkerHandle;
    });
    const request = createNewGroups({
      workers: () => workers,
      mayServe: (_, load) => verdicts.shift() ?? assert.fail(`nobody may ask about ${load?.file}`),
      onAdmitted: ({ group }) => told.push(`admitted ${group}`),
    });
    const answer = async (id: number, load?: GroupLoad) => {
      answers[id]?.(load);
      await turn();
      return told.splice(0);
    };
    return { workers, told, answer, verdicts, request: (id: number) => request(workers[id] as WorkerHandle, 'New') };
  }

  it('lets the worker that asks import first, then the others, and asks again before the group answers', async () => {
    const { told, answer, verdicts, request } = create('serving', 'serving', 'loaded', 'draining', 'standby');
    verdicts.push(true);
    request(0);
    assert.deepEqual(told.splice(0), ['0: import New']);
    request(1);
    assert.deepEqual(told, [], 'the second request shares the imports');
    assert.deepEqual(await answer(0, LOAD), ['1: import New', '2: import New']);
    assert.deepEqual(await answer(1, LOAD), []);
    verdicts.push(true);
    assert.deepEqual(await answer(2), [
      'admitted New',
      ...[0, 1, 2].map((id) => `${id}: admitted New`),
      ...[3, 4].map((id) => `${id}: withheld New failed`),
    ]);
  });

  it('admits nothing that a worker has imported at an earlier question', async () => {
    const { workers, told, answer, verdicts, request } = create('serving', 'serving');
    verdicts.push(true, false);
    request(0);
    await answer(0, LOAD);
    await answer(1, LOAD);
    // The second worker drains now, so it does not import the next state of the file.
    (workers[1] as { state: WorkerState }).state = 'draining';
    verdicts.push(true, true);
    request(0);
    told.length = 0;
    assert.deepEqual(await answer(0, LOAD), ['admitted New', '0: admitted New', '1: withheld New failed']);
  });

  it('imports nothing when the worker may not serve', () => {
    const { told, verdicts, request } = create('serving', 'serving');
    verdicts.push(false);
    request(0);
    assert.deepEqual(told, ['0: withheld New changed']);
  });

  it('withholds a group from all workers when the folder has changed during the imports', async () => {
    const { told, answer, verdicts, request } = create('serving', 'serving');
    verdicts.push(true);
    request(0);
    told.length = 0;
    await answer(0, LOAD);
    verdicts.push(false);
    assert.deepEqual(await answer(1, LOAD), ['0: withheld New changed', '1: withheld New changed']);
    verdicts.push(true);
    request(1);
    assert.deepEqual(told, ['1: import New'], 'the next request asks anew');
  });

  for (const [name, load] of [
    ['does not load', { ...LOAD, ok: false, error: 'broken' }],
    ['has gone', undefined],
  ] as const) {
    it(`orders no other worker to import a file that ${name}`, async () => {
      const { told, answer, verdicts, request } = create('serving', 'serving');
      verdicts.push(true);
      request(0);
      told.length = 0;
      assert.deepEqual(await answer(0, load), ['0: withheld New failed', '1: withheld New failed']);
    });
  }
});

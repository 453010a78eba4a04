// A worker's side of the store. The test is the supervisor, and needs no database.
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { Registration } from '../../../src/callers/credentials/credentials.ts';
import type { Answer, ToWorkerStore, WorkerCall } from '../../../src/operate/store/messages.ts';
import { createSharedTable } from '../../../src/operate/store/worker.ts';

const REGISTRATION = { owner: { issuer: 'https://issuer.example', subject: 'somebody' }, name: 'an app' };

function createBench(test: TestContext, sharesSessionKey = false) {
  test.mock.timers.enable({ apis: ['setTimeout'] });
  const calls: WorkerCall[] = [];
  let receive = (_message: unknown) => {};
  const table = createSharedTable({
    sharesSessionKey,
    send: (message) => void calls.push((message as { gatefold: WorkerCall }).gatefold),
    onMessage(listener) {
      receive = listener;
    },
  });
  return {
    table,
    calls,
    hear: (message: unknown) => receive(message),
    tell: (message: object) => receive({ gatefold: { kind: 'store', ...message } as ToWorkerStore }),
    answer: (index: number, answer: Answer) =>
      receive({ gatefold: { kind: 'store', call: calls[index]?.call, answer } }),
    register: () => table.register({ id: 'a' }, REGISTRATION as Registration),
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Returns whether the promise has settled without an event from outside. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await turn();
  return settled;
}

it('a worker makes a call at its start, whose answer brings the first notice', (test) => {
  const { calls } = createBench(test);
  assert.deepEqual(
    calls.map(({ kind, request }) => [kind, request]),
    [['store', { kind: 'look' }]],
  );
});

it('a worker heeds each notice of its supervisor, and no message for another part', (test) => {
  const { table, hear, tell } = createBench(test);
  const heard: unknown[] = [];
  const early = { revoked: ['early'], added: [] };
  tell({ changed: early });
  tell({ isTooOld: true });
  assert.equal(table.isTooOld(), true);
  table.onChange(() => heard.push(table.isTooOld()));
  table.onRowsChanged((changed) => heard.push(changed));
  for (const other of [null, undefined, {}, { gatefold: { kind: 'ping', isTooOld: false } }]) hear(other);
  assert.deepEqual([heard, table.isTooOld()], [[early], true]);
  const changed = { revoked: ['a'], added: [] };
  tell({ changed });
  tell({ isTooOld: false });
  assert.deepEqual(heard, [early, changed, false]);
  assert.equal(table.isTooOld(), false);
});

it('a table is not too old before its first notice, and says whether the session key is shared', (test) => {
  for (const isShared of [true, false]) {
    const { table } = createBench(test, isShared);
    assert.deepEqual([table.isTooOld(), table.sharesSessionKey], [false, isShared]);
    test.mock.timers.reset();
  }
});

it('refreshes of one turn share a look, and a later refresh makes another look', async (test) => {
  const { table, calls, answer } = createBench(test);
  const heard: string[] = [];
  table.onChange(() => heard.push('notice'));
  const first = Promise.all([table.refresh(), table.refresh()]);
  await turn();
  const second = table.refresh();
  await turn();
  assert.deepEqual(
    calls.map(({ request }) => request),
    Array(3).fill({ kind: 'look' }),
  );
  assert.equal(new Set(calls.map(({ call }) => call)).size, 3);
  assert.equal(await isSettled(first), false);
  answer(1, {});
  await first;
  assert.equal(await isSettled(second), false);
  // A failed look is no error of the request: the table in memory decides.
  answer(2, { error: 'The store is away' });
  await second;
  assert.deepEqual(heard, []);
});

it('a refresh ends when the supervisor does not answer', async (test) => {
  const { table } = createBench(test);
  const refresh = table.refresh();
  assert.equal(await isSettled(refresh), false);
  test.mock.timers.tick(1500);
  await refresh;
});

it('a registration is the call of its row, and fails with the code or the error of its answer', async (test) => {
  const { calls, answer, register } = createBench(test);
  const outcomes = [register(), register(), register(), register()];
  assert.deepEqual(calls[1]?.request, { kind: 'register', row: { id: 'a' }, ...REGISTRATION });
  answer(1, {});
  answer(2, { error: 'ALREADY_REGISTERED', code: 'ALREADY_REGISTERED' });
  answer(3, { error: 'The store is away: it is read-only' });
  const [done, refused, failed, silent] = outcomes as [Promise<void>, Promise<void>, Promise<void>, Promise<void>];
  assert.equal(await done, undefined);
  await assert.rejects(refused, { code: 'ALREADY_REGISTERED' });
  await assert.rejects(failed, { message: 'The store is away: it is read-only' });
  assert.equal(await isSettled(silent), false);
  test.mock.timers.tick(15_000);
  await assert.rejects(silent, { message: 'The supervisor does not answer' });
});

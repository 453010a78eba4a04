// The agenda by itself, with the results of steps that the test makes up.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Agenda, type AgendaOptions } from '../../../src/live/supervisor/agenda.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

function createBench() {
  const made = { time: 0 };
  const { log, lines } = createMemoryLog();
  const groups = new Map();
  const options = {
    ...{ workerCount: 1, log, now: () => made.time },
    pool: { serving: () => [{ isFaulty: false }] },
    table: { newest: 2, current: { generation: 1, groups } },
  } as unknown as AgendaOptions;
  return { made, lines, agenda: new Agenda(options) };
}

const FAILED = { kind: 'failed', error: 'no' } as const;

describe('a generation that is outdated', () => {
  it('is due again at once, and counts as no failure', () => {
    const { made, agenda } = createBench();
    agenda.requestGeneration('AController.js');
    agenda.applyResult(agenda.takeNext() as never, FAILED, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 5000 });
    made.time = 5000;
    const retry = agenda.takeNext();
    assert.equal(retry.kind, 'generation');
    agenda.applyResult(retry as never, { kind: 'outdated' }, 0);
    assert.deepEqual(agenda.takeNext(), retry);
    agenda.applyResult(retry as never, FAILED, 0);
    // The second pause, and not the third.
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 10_000 });
  });

  it('gives way to a newer change', () => {
    const { agenda } = createBench();
    agenda.requestGeneration('AController.js');
    const step = agenda.takeNext();
    agenda.requestGeneration('BController.js');
    agenda.applyResult(step as never, { kind: 'outdated' }, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'generation', cause: 'BController.js' });
    assert.equal(agenda.takeNext().kind, 'wait');
  });
});

describe('a retry that changes nothing, or that is given up', () => {
  for (const kind of ['no-change', 'interrupted'] as const)
    it(`makes the next pause longer, but a replacement does not: ${kind}`, () => {
      const { made, agenda } = createBench();
      agenda.requestGeneration('AController.js');
      agenda.applyResult(agenda.takeNext() as never, FAILED, 0);
      made.time = 5000;
      agenda.applyResult({ kind: 'replacement', count: 1 }, { kind }, 0);
      const retry = agenda.takeNext();
      assert.equal(retry.kind, 'generation');
      agenda.applyResult(retry as never, { kind }, 0);
      assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 10_000 });
    });
});

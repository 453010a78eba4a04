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

/** An agenda of two workers. @param serving for each worker that serves: whether it is faulty */
function createPair(serving: boolean[], broken: string[] = []) {
  const made = { time: 1000, serving };
  const groups = new Map(broken.map((file) => [file, { ok: false, file }]));
  const { log, lines } = createMemoryLog();
  const options = {
    ...{ workerCount: 2, log, now: () => made.time },
    pool: { serving: () => made.serving.map((isFaulty) => ({ isFaulty })) },
    table: { newest: 3, current: { generation: 2, groups } },
  } as unknown as AgendaOptions;
  return { made, groups, lines, agenda: new Agenda(options) };
}

const NEVER = { kind: 'wait', duration: Number.POSITIVE_INFINITY };
const REPLACEMENT = { kind: 'replacement', count: 1 } as const;
const DIFFERS = { kind: 'differs', difference: 'other-load', groups: [] } as never;

describe('while no generation is due', () => {
  const rows: [what: string, serving: boolean[], step: object][] = [
    ['nothing is done with all workers', [false, false], NEVER],
    ['a worker that is gone is replaced', [false], REPLACEMENT],
    ['a faulty worker is replaced', [false, true], REPLACEMENT],
    ['two faulty workers are replaced', [true, true], { kind: 'replacement', count: 2 }],
    ['a new generation begins without a worker', [], { kind: 'generation', cause: 'no worker is left' }],
    ['a worker too many is left alone', [false, false, false], NEVER],
  ];
  for (const [what, serving, step] of rows)
    it(what, () => {
      const { agenda } = createPair(serving);
      assert.equal(agenda.isGenerationDue, false);
      assert.deepEqual(agenda.takeNext(), step);
    });

  it('the third loss of a worker has a pause, and none after 15 s without a loss', () => {
    const { made, agenda } = createPair([false]);
    agenda.planReplacement();
    agenda.planReplacement();
    assert.deepEqual(agenda.takeNext(), REPLACEMENT);
    agenda.planReplacement();
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 100 });
    made.serving = [];
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 100 });
    made.time += 15_001;
    agenda.planReplacement();
    assert.equal(agenda.takeNext().kind, 'generation');
  });

  it('a worker is replaced only after a rejected generation serves, unless no worker is left', () => {
    const { made, agenda } = createPair([false]);
    agenda.requestGeneration('AController.js');
    assert.ok(agenda.isGenerationDue);
    agenda.applyResult(agenda.takeNext() as never, { kind: 'groups-lost', failures: [] } as never, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 5000 });
    made.serving = [];
    assert.deepEqual(agenda.takeNext(), { kind: 'generation', cause: 'no worker is left' });
    made.serving = [false];
    agenda.applyResult({ kind: 'generation', cause: 'x' }, { kind: 'serving' } as never, 0);
    assert.equal(agenda.rejection, undefined);
    assert.deepEqual(agenda.takeNext(), REPLACEMENT);
  });

  it('a lost worker waits no longer than the retry of a rejected generation', () => {
    const { made, agenda } = createPair([false]);
    for (let losses = 0; losses < 10; losses++) agenda.planReplacement();
    agenda.requestGeneration('AController.js');
    agenda.applyResult(agenda.takeNext() as never, FAILED, 0);
    made.time += 4999;
    agenda.planReplacement();
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 1 });
    made.time += 1;
    assert.deepEqual(agenda.takeNext(), { kind: 'generation', cause: 'retry' });
  });

  it('a group that does not load gets trials, sooner when the list of such groups has changed', () => {
    const { made, groups, agenda } = createPair([false, false], ['AController.js']);
    const trial = { kind: 'generation', cause: 'retry', isTrial: true };
    for (const duration of [5000, 10_000]) {
      assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration });
      made.time += duration;
      const step = agenda.takeNext();
      assert.deepEqual(step, trial);
      agenda.applyResult(step as never, { kind: 'no-change' }, 0);
    }
    groups.set('BController.js', { ok: false, file: 'BController.js' });
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 5000 });
    groups.clear();
    assert.deepEqual(agenda.takeNext(), NEVER);
  });
});

describe('a replacement that loads something else', () => {
  it('waits, is logged once, and its wait ends when a replacement serves', () => {
    const { made, lines, agenda } = createPair([false]);
    for (const duration of [5000, 10_000]) {
      agenda.applyResult(REPLACEMENT, DIFFERS, 0);
      assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration });
      made.time += duration;
      assert.deepEqual(agenda.takeNext(), REPLACEMENT);
    }
    assert.deepEqual(
      lines.map(({ event, generation, effect }) => ({ event, generation, effect })),
      [
        {
          ...{ event: 'replacement-rejected', generation: 2 },
          effect: 'fewer workers serve until the folder loads again',
        },
      ],
    );
    agenda.applyResult(REPLACEMENT, { kind: 'replaced', count: 1 }, 0);
    assert.equal(agenda.tally.workersReplaced, 1);
    agenda.applyResult(REPLACEMENT, DIFFERS, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 5000 });
    assert.equal(lines.length, 2);
    made.serving = [];
    assert.equal(agenda.takeNext().kind, 'generation');
  });

  it('waits no longer when a generation serves', () => {
    const { agenda } = createPair([false]);
    agenda.applyResult(REPLACEMENT, DIFFERS, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 5000 });
    agenda.applyResult({ kind: 'generation', cause: 'a' }, { kind: 'serving', release: '/a' }, 0);
    assert.deepEqual(agenda.takeNext(), REPLACEMENT);
  });

  it('makes a generation due when the folder has other code', () => {
    const { agenda, lines } = createPair([false]);
    agenda.applyResult(REPLACEMENT, { kind: 'differs', difference: 'other-code', groups: [] } as never, 0);
    assert.deepEqual(agenda.takeNext(), { kind: 'generation', cause: 'the folder has changed' });
    assert.equal(lines[0]?.effect, 'the folder has changed meanwhile, so a generation loads it');
  });

  it('is repeated at once when a group came or went', () => {
    const { lines, agenda } = createPair([false]);
    agenda.applyResult(REPLACEMENT, { kind: 'differs', difference: 'group-missed', groups: [] } as never, 0);
    assert.deepEqual(agenda.takeNext(), REPLACEMENT);
    assert.equal(lines.length, 0);
  });
});

describe('a rejected generation', () => {
  it('is logged again only for another reason, and is in the tally each time', () => {
    const { made, lines, agenda } = createPair([false, false]);
    agenda.requestGeneration('AController.js');
    for (const error of ['no', 'no', 'other']) {
      agenda.applyResult(agenda.takeNext() as never, { kind: 'failed', error }, 60_000);
      made.time += 60_000;
    }
    const logged = lines.map(({ cause, error, effect }) => ({ cause, error, effect }));
    const effect = 'generation 2 serves on';
    assert.deepEqual(logged, [
      { cause: 'AController.js', error: 'no', effect },
      { cause: 'retry', error: 'other', effect },
    ]);
    assert.equal(agenda.tally.generationsRejected, 3);
    assert.deepEqual({ ...agenda.rejection, at: 0 }, { generation: 3, at: 0, failures: [], error: 'other' });
  });

  it('does not say that an older one serves when no worker is left', () => {
    const { lines, agenda } = createPair([]);
    agenda.applyResult(agenda.takeNext() as never, FAILED, 0);
    assert.deepEqual(
      lines.map(({ cause, effect }) => [cause, effect]),
      [['no worker is left', 'requests wait until a generation serves']],
    );
  });

  it('has a pause of 30 times the time that its load took', () => {
    const { agenda } = createPair([false, false]);
    agenda.requestGeneration('AController.js');
    agenda.applyResult(agenda.takeNext() as never, { kind: 'groups-lost', failures: [] } as never, 1000);
    assert.deepEqual(agenda.takeNext(), { kind: 'wait', duration: 30_000 });
  });
});

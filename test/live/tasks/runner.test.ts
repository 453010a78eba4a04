// Tests on which machine and when tasks run: with clocks that the test sets, and without processes.
import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import type { TaskEnd } from '../../../src/live/tasks/task-host.ts';
import {
  type Clocks,
  createMachine,
  createSharedCell,
  every,
  type FakeRun,
  type Machine,
  pass,
  settle,
} from '../../support/task-machines.ts';

const NOON = Date.parse('2026-11-24T12:00:00Z');

function createMachines(t: TestContext, count: number) {
  // The runner's own timer would call `step` beside the test.
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const clocks: Clocks = { wall: NOON, steady: 1_000_000 };
  const runs: FakeRun[] = [];
  const { cell, shared } = createSharedCell();
  const start = (name: string) => {
    const machine = createMachine(name, cell, clocks, runs);
    t.after(() => machine.runner.close());
    return machine;
  };
  const machines = Array.from({ length: count }, (_, i) => start(`m${i}`));
  return { clocks, runs, shared, machines, start, first: machines[0] as Machine };
}

function endAll(machines: readonly Machine[], end: Partial<TaskEnd> = {}): void {
  for (const machine of machines) for (const run of machine.open()) machine.end(run, end);
}

const dueTimes = (runs: readonly FakeRun[]) => runs.map(({ dueAt = 0 }) => (dueAt - NOON) / 1000);

test('a task with times runs at each of them, and never twice at once', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 10)]);
  await pass(35, clocks, [first], () => endAll([first]));
  assert.deepEqual(dueTimes(runs), [10, 20, 30]);
});

test('a time that comes during a run is skipped and counted, and logged once a run', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 10)]);
  await pass(45, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [10]);
  assert.equal([...first.runner.tasks.values()][0]?.skipped, 3);
  assert.equal(first.lines.filter(({ event }) => event === 'task-skipped').length, 1);
  first.end(runs[0] as FakeRun);
  await pass(10, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [10, 50]);
});

test('times that passed while nothing ran are made up for once', async (t) => {
  const { clocks, runs, first, start } = createMachines(t, 1);
  first.runner.serve([every('report', 10), every('fresh', 10, false)]);
  await pass(11, clocks, [first], () => endAll([first]));
  await first.runner.close();
  clocks.wall += 300_000;
  const second = start('m8');
  second.runner.serve([every('report', 10), every('fresh', 600, false)]);
  await pass(2, clocks, [second], () => endAll([second]));
  assert.deepEqual(dueTimes(second.mine()), [310]);
  assert.equal([...second.runner.tasks.values()][0]?.skipped, 29);
  assert.equal(runs.length, 3);
});

test('with catchUp: false, a time that passed more than a minute ago is skipped', async (t) => {
  const { clocks, first, start } = createMachines(t, 1);
  first.runner.serve([every('fresh', 600, false)]);
  await pass(2, clocks, [first]);
  await first.runner.close();
  clocks.wall += 700_000;
  const second = start('m7');
  second.runner.serve([every('fresh', 600, false)]);
  await pass(3, clocks, [second]);
  assert.deepEqual(second.mine(), []);
  assert.equal([...second.runner.tasks.values()][0]?.skipped, 1);
});

test('with catchUp: false, a run that an edit or a kill interrupts is made again within a minute', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('fresh', 600, false)]);
  await pass(601, clocks, [first]);
  first.roll();
  first.end(runs[0] as FakeRun, { aborted: true, failure: { error: 'aborted' } });
  await pass(10, clocks, [first]);
  first.kill(runs[1] as FakeRun);
  await pass(10, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [600, 600, 600]);
  await pass(60, clocks, [first]);
  first.kill(runs[2] as FakeRun);
  await pass(600, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [600, 600, 600, 1200]);
});

test('with catchUp: false, a time that passed exactly a minute ago runs, and an older one is skipped', async (t) => {
  const { clocks, first, start } = createMachines(t, 1);
  first.runner.serve([every('fresh', 600, false)]);
  await settle();
  await first.runner.close();
  for (const [name, wall, due] of [
    ['m7', NOON + 660_000, [600]],
    ['m8', NOON + 1_261_000, []],
  ] as const) {
    clocks.wall = wall;
    const machine = start(name);
    machine.runner.serve([every('fresh', 600, false)]);
    await settle();
    assert.deepEqual(dueTimes(machine.mine()), due);
    endAll([machine]);
    await settle();
    await machine.runner.close();
  }
});

test('failures count no longer after a run of more than a minute', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([{ name: 'consume', catchUp: true }]);
  for (const seconds of [0, 60, 61]) {
    const before = runs.length;
    while (runs.length === before) await pass(1, clocks, [first]);
    await pass(seconds, clocks, [first]);
    endAll([first], { failure: { error: 'boom' } });
  }
  const failures = first.lines.filter(({ event }) => event === 'task-failed');
  assert.deepEqual(
    failures.map(({ retry_in_ms }) => retry_in_ms),
    [1000, 2000, 1000],
  );
});

test('a clock that is set back by exactly an hour keeps the times that have run', async (t) => {
  const { clocks, first } = createMachines(t, 1);
  first.runner.serve([every('report', 60)]);
  await pass(60, clocks, [first], () => endAll([first]));
  const isLogged = () => first.lines.some(({ event }) => event === 'task-clock-set-back');
  clocks.wall -= 3_601_000;
  await pass(1, clocks, [first]);
  assert.equal(isLogged(), false);
  clocks.wall -= 1001;
  await pass(1, clocks, [first]);
  assert.equal(isLogged(), true);
});

test('an edit neither runs a time twice nor loses it', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 10)]);
  await pass(10, clocks, [first]);
  const [run] = runs as [FakeRun];
  first.roll();
  run.aborted = true;
  first.runner.serve([every('report', 10)]);
  await pass(3, clocks, [first]);
  assert.equal(runs.length, 1, 'the new workers wait for the end of the run');
  first.end(run);
  await pass(12, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [10, 20]);
  assert.notEqual(runs[0]?.pid, runs[1]?.pid);
});

test('a run that throws because of its signal, or whose worker is killed, is made again with its time', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 600)]);
  await pass(600, clocks, [first]);
  const [run] = runs as [FakeRun];
  first.roll();
  run.aborted = true;
  first.end(run, { failure: { error: 'aborted' } });
  await pass(1, clocks, [first]);
  first.kill(runs[1] as FakeRun);
  await pass(3, clocks, [first]);
  assert.deepEqual(dueTimes(runs), [600, 600, 600]);
  assert.equal(first.lines.filter(({ event }) => event === 'task-interrupted').length, 1);
  assert.equal([...first.runner.tasks.values()][0]?.failures, 0);
});

test('a run that fails is not made again before its next time, and comes at each time', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 10)]);
  await pass(85, clocks, [first], () => endAll([first], { failure: { error: 'boom' } }));
  assert.deepEqual(dueTimes(runs), [10, 20, 30, 40, 50, 60, 70, 80]);
  const [state] = first.runner.tasks.values();
  assert.deepEqual([state?.failures, state?.skipped], [8, 0]);
  assert.equal(first.lines.filter(({ event }) => event === 'task-failed').length, 8);
});

test('a task without times starts again after a pause that grows', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([{ name: 'consume', catchUp: true }]);
  await pass(600, clocks, [first], () => endAll([first]));
  assert.ok(runs.length >= 8 && runs.length <= 18, String(runs.length));
  const failures = first.lines.filter(({ event }) => event === 'task-failed');
  const pauses = failures.map(({ retry_in_ms }) => retry_in_ms);
  for (const { error } of failures) assert.equal(error, 'it has returned, and it has no times');
  assert.deepEqual(pauses.slice(0, 4), [1000, 2000, 4000, 8000]);
  assert.equal(Math.max(...(pauses as number[])), 60_000);
});

test('a clock that is set back by less than an hour repeats no time; by more, the times count anew', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  const end = () => endAll([first]);
  first.runner.serve([every('report', 60)]);
  await pass(121, clocks, [first], end);
  clocks.wall -= 1800_000;
  await pass(1790, clocks, [first], end);
  assert.deepEqual(dueTimes(runs), [60, 120]);
  await pass(120, clocks, [first], end);
  assert.deepEqual(dueTimes(runs), [60, 120, 180, 240 - 0].slice(0, runs.length));
  const before = runs.length;
  clocks.wall -= 86_400_000;
  await pass(130, clocks, [first], end);
  assert.equal(first.lines.filter(({ event }) => event === 'task-clock-set-back').length, 1);
  assert.ok(runs.length >= before + 2);
});

test('a clock that is set forward by a day makes one run', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 60)]);
  await pass(5, clocks, [first]);
  clocks.wall += 86_400_000;
  await pass(3, clocks, [first], () => endAll([first]));
  assert.equal(runs.length, 1);
  assert.equal([...first.runner.tasks.values()][0]?.skipped, 1439);
});

test('a new plan does not make up for times before it', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([every('report', 86_400)]);
  await pass(120, clocks, [first]);
  first.runner.serve([every('report', 60)]);
  await pass(2, clocks, [first]);
  assert.deepEqual(runs, []);
});

test('a task that the new code lacks ends, and nothing starts it again', async (t) => {
  const { clocks, runs, first } = createMachines(t, 1);
  first.runner.serve([{ name: 'consume', catchUp: true }]);
  await pass(1, clocks, [first]);
  first.roll();
  first.runner.serve([]);
  await pass(2, clocks, [first]);
  (runs[0] as FakeRun).aborted = true;
  first.end(runs[0] as FakeRun);
  await pass(60, clocks, [first]);
  assert.equal(runs.length, 1);
  assert.equal(first.runner.tasks.size, 0);
});

test('of three machines, one runs the tasks; another takes over 15 to 25 s after a kill', async (t) => {
  const { clocks, runs, machines } = createMachines(t, 3);
  for (const { runner } of machines) runner.serve([{ name: 'consume', catchUp: true }]);
  await pass(60, clocks, machines);
  assert.equal(runs.length, 1);
  const [run] = runs as [FakeRun];
  const others = machines.filter(({ name }) => name !== run.machine);
  await pass(14, clocks, others);
  assert.equal(runs.length, 1);
  await pass(12, clocks, others);
  assert.equal(runs.length, 2);
  assert.notEqual(runs[1]?.machine, run.machine);
});

test('where a supervisor hangs, its run is aborted before another machine may begin', async (t) => {
  const { clocks, runs, machines } = createMachines(t, 3);
  for (const { runner } of machines) runner.serve([{ name: 'consume', catchUp: true }]);
  await pass(60, clocks, machines);
  const [run] = runs as [FakeRun];
  assert.equal(run.aborted, false);
  const others = machines.filter(({ name }) => name !== run.machine);
  await pass(10, clocks, others);
  assert.deepEqual([run.aborted, runs.length], [true, 1]);
  await pass(16, clocks, others);
  assert.equal(runs.length, 2);
});

test('a machine that stops gives its lease back at once', async (t) => {
  const { clocks, runs, machines } = createMachines(t, 2);
  const [first, second] = machines as [Machine, Machine];
  for (const { runner } of machines) runner.serve([{ name: 'consume', catchUp: true }]);
  await pass(10, clocks, machines);
  const [run] = runs as [FakeRun];
  const owner = run.machine === first.name ? first : second;
  owner.setWorkers(0);
  run.aborted = true;
  owner.end(run);
  await owner.runner.close();
  await pass(
    6,
    clocks,
    machines.filter((machine) => machine !== owner),
  );
  assert.equal(runs.length, 2);
});

test('a machine without workers leaves the tasks to another', async (t) => {
  const { clocks, runs, machines } = createMachines(t, 2);
  for (const { runner } of machines) runner.serve([every('report', 10)]);
  await pass(16, clocks, machines, () => endAll(machines));
  const owner = machines.find(({ lease }) => lease.isHeld) as Machine;
  const other = machines.find((machine) => machine !== owner) as Machine;
  const own = owner.mine().length;
  owner.setWorkers(0);
  await pass(40, clocks, machines, () => endAll(machines));
  assert.equal(owner.mine().length, own);
  assert.ok(runs.length > own);
  // A machine that runs a task again knows when it last succeeded elsewhere.
  const { lastSuccessAt } = other.runner.tasks.get('report') ?? {};
  other.setWorkers(0);
  owner.setWorkers(1);
  await pass(30, clocks, machines);
  assert.ok(owner.mine().length > own);
  assert.equal(owner.runner.tasks.get('report')?.lastSuccessAt, lastSuccessAt);
});

test('without the database, no run begins and the signals are aborted before another machine may begin', async (t) => {
  const { clocks, runs, shared, machines } = createMachines(t, 3);
  for (const { runner } of machines) runner.serve([{ name: 'consume', catchUp: true }, every('report', 60)]);
  await pass(20, clocks, machines);
  shared.isAway = true;
  await pass(9, clocks, machines);
  const [run] = runs as [FakeRun];
  await pass(3, clocks, machines);
  assert.equal(run.aborted, true);
  const owner = machines.find(({ name }) => name === run.machine) as Machine;
  owner.end(run, { failure: { error: 'aborted' } });
  await pass(3600, clocks, machines);
  assert.equal(runs.length, 1);
  const paused = machines.flatMap(({ lines }) => lines.filter(({ event }) => event === 'tasks-paused'));
  assert.equal(paused.length, 6, 'one line a machine for each of two reasons');
  shared.isAway = false;
  await pass(20, clocks, machines);
  assert.deepEqual(
    runs
      .slice(1)
      .map(({ task }) => task)
      .sort(),
    ['consume', 'report'],
  );
});

test('a write whose answer is lost starts nothing twice', async (t) => {
  const { clocks, runs, shared, machines } = createMachines(t, 2);
  for (const { runner } of machines) runner.serve([every('report', 10)]);
  let writes = 0;
  shared.onWritten = () => {
    if (++writes % 3 === 0) throw new Error('no answer');
  };
  await pass(606, clocks, machines, () => endAll(machines));
  const times = dueTimes(runs);
  assert.equal(new Set(times).size, times.length);
  const skipped = machines.reduce((sum, { runner }) => sum + ([...runner.tasks.values()][0]?.skipped ?? 0), 0);
  assert.equal(times.length + skipped, 60);
});

test('over 600 times with edits, kills, promotions and an hour without the database, none is lost', async (t) => {
  const { clocks, runs, shared, machines } = createMachines(t, 3);
  const tasks = [every('report', 15), { name: 'consume', catchUp: true }];
  for (const { runner } of machines) runner.serve(tasks);
  let seconds = 0;
  /** Runs of one task at the same time. */
  let overlaps = 0;
  let explained = 0;
  const length = (run: FakeRun) => (run.run * 7) % 23;
  const begun = new Map<FakeRun, number>();
  await pass(9500, clocks, machines, () => {
    seconds++;
    for (const machine of machines) {
      if (seconds % 97 === 0 && machine === machines[seconds % 3]) {
        machine.roll();
        for (const run of machine.open()) run.aborted = true;
        machine.runner.serve(tasks);
      }
      for (const run of machine.open()) {
        if (!begun.has(run)) begun.set(run, seconds);
        if (run.aborted) {
          explained++;
          machine.end(run, { failure: { error: 'aborted' } });
        } else if (seconds % 211 === 0) {
          explained++;
          machine.kill(run);
        } else if (run.task === 'report' && seconds - (begun.get(run) ?? 0) >= length(run)) machine.end(run);
      }
    }
    if (seconds % 1501 === 0) {
      shared.promote(1);
      explained++;
    }
    if (seconds === 3000) shared.isAway = true;
    if (seconds === 3000 + 3600) shared.isAway = false;
    for (const name of ['report', 'consume'])
      if (runs.filter((run) => run.task === name && !run.ended && !run.aborted).length > 1) overlaps++;
  });
  for (const machine of machines) for (const run of machine.open()) machine.end(run);
  const reports = runs.filter(({ task }) => task === 'report');
  const times = dueTimes(reports);
  const last = Math.max(...times);
  const different = new Set(times).size;
  const skipped = machines.reduce((sum, { runner }) => sum + ([...runner.tasks.values()][0]?.skipped ?? 0), 0);
  t.diagnostic(
    `${last / 15} times: ${different} run, ${skipped} skipped, ${times.length - different} repeats, ${explained} reasons`,
  );
  assert.ok(last / 15 > 600);
  assert.equal(overlaps, 0);
  assert.ok(times.length - different <= explained);
  assert.ok(Math.abs(different + skipped - last / 15) <= explained, 'each time has run, or is counted as skipped');
  const gaps = [...new Set(times)].sort((a, b) => a - b).map((time, i, all) => time - (all[i - 1] ?? 0));
  assert.ok(gaps.filter((gap) => gap > 120).length === 1, 'the hour without the database is the only long gap');
});

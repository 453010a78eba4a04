// Counting without sockets: labels that no client can invent, caps, sums of deltas, checks of reports, and counters
// that never fall.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SERVICE } from '../../../src/base/group-name.ts';
import type { GroupLoad } from '../../../src/live/load/group-load.ts';
import type { WorkerStatus } from '../../../src/live/supervisor/status.ts';
import { createHistogram, totalCount } from '../../../src/operate/ops/histogram.ts';
import { createLoopDelay, DELAY_BOUNDS, watchPunctuality } from '../../../src/operate/ops/loop-delay.ts';
import { createMemoryReader } from '../../../src/operate/ops/memory.ts';
import { describeReadiness, readinessOf } from '../../../src/operate/ops/readiness.ts';
import {
  createRequestCounts,
  describeCell,
  MAX_CELLS,
  MAX_CREDENTIALS,
  MAX_OPERATIONS,
  OTHER,
} from '../../../src/operate/ops/request-counts.ts';
import { createServiceWatch, type SupervisorStatus } from '../../../src/operate/ops/service-status.ts';
import { createWorkerMetrics, type ReportedParts, type WorkerReport } from '../../../src/operate/ops/worker-metrics.ts';
import { supervisorStatus } from '../../support/supervisor-status.ts';

/** The number of requests by `page operation verb status`. */
function flat(counts: ReturnType<typeof createRequestCounts>): Record<string, number> {
  return Object.fromEntries(
    Array.from(counts.operations()).flatMap(({ page, operation, cells }) =>
      Array.from(cells, ([cell, durations]) => [
        [page, operation, ...Object.values(describeCell(cell)).slice(0, 2)].join(' '),
        totalCount(durations),
      ]),
    ),
  );
}

describe('createRequestCounts', () => {
  test('returns deltas that add up to all counted requests', () => {
    const worker = createRequestCounts();
    const sum = createRequestCounts();
    for (let round = 1; round <= 3; round++) {
      for (let i = 0; i < round; i++) worker.count(worker.countsFor('test', 'index', '/api/test'), 'GET', 200, 5, 1);
      worker.count(worker.countsFor('test', 'created', '/api/test'), 'POST', 413, 1, 2000);
      for (const delta of JSON.parse(JSON.stringify(worker.takeOperations()))) sum.add(delta);
    }
    assert.deepEqual(worker.takeOperations(), []);
    assert.deepEqual(flat(sum), { 'test index GET 200': 6, 'test created POST 413': 3 });
    const [index] = sum.operations();
    assert.equal(index?.bytes, 30);
    const [durations] = index?.cells.values() ?? [];
    assert.ok(Math.abs(Number(durations?.sum) - 0.006) < 1e-9);
  });

  test('counts all operations beyond the cap as one, also when deltas are added', () => {
    const counts = createRequestCounts();
    for (let i = 0; i < MAX_OPERATIONS + 50; i++)
      counts.count(counts.countsFor(`page${i}`, 'index', ''), 'GET', 200, 0, 1);
    const deltas = counts.takeOperations();
    assert.equal(deltas.length, MAX_OPERATIONS + 1);
    const [cell] = deltas.find(({ page }) => page === OTHER)?.cells ?? [];
    assert.deepEqual([cell?.[0], cell && totalCount(cell[1])], [200, 50]);
    const other = createRequestCounts();
    other.countsFor('another', 'index', '');
    for (const delta of deltas) other.add(delta);
    assert.equal(Array.from(other.operations()).length, MAX_OPERATIONS + 1);
  });

  test('counts verbs and statuses beyond the cap as one, and loses no request', () => {
    const counts = createRequestCounts();
    const asked = MAX_CELLS + 500;
    for (let i = 0; i < asked; i++)
      counts.count(counts.countsFor(`page${i % 40}`, 'index', ''), 'GET', 400 + Math.floor(i / 40), 0, 1);
    const cells = Array.from(counts.operations()).flatMap((operation) => [...operation.cells]);
    assert.ok(cells.length <= MAX_CELLS + 40);
    assert.equal(
      cells.reduce((total, [, durations]) => total + totalCount(durations), 0),
      asked,
    );
    assert.ok(Number(flat(counts)[`page0 index _OTHER ${OTHER}`]) > 0);
  });
});

function parts(change: { reloads?: number; quarantined?: number } = {}): ReportedParts {
  const { reloads = 0, quarantined = 0 } = change;
  const bad = Array.from({ length: quarantined }, (_, i) => ({
    name: `row ${i}`,
    reason: 'its hash is not one',
    secret: 'never sent',
  }));
  return {
    app: { inFlight: () => 3, refusedConnections: () => 0 },
    credentials: { status: () => ({ rows: 2, quarantined: bad, reloads, reloadFailures: 0 }) },
    identity: { status: () => ({ providers: ['a'], refusedRows: 1, keyFetches: reloads * 2, keyFailures: reloads }) },
    limiter: { status: () => ({ refused: { credential: 0, address: reloads, operation: 0 }, callers: 7 }) },
    logWriter: { droppedLines: () => reloads * 3 },
  };
}

describe('createWorkerMetrics', () => {
  const rows: [name: string, asked: [group: string, page: string, operation: string, verb: string], label: string][] = [
    ['an operation that was found', ['Test', 'test', 'index', 'GET'], 'test index GET 200'],
    ['a page with a capital letter', ['Test', 'Test', 'index', 'GET'], 'test index GET 200'],
    ['a page that no group serves', ['', 'made-up', '', 'GET'], '  GET 200'],
    ['a request without a page', ['', '', '', 'OPTIONS'], '  OPTIONS 200'],
    ['a real page without an operation for the verb', ['Test', 'test', '', 'PATCH'], 'test  PATCH 200'],
    [
      'a page with a capital letter, without an operation for the verb',
      ['Test', 'Test', '', 'PATCH'],
      'test  PATCH 200',
    ],
    ['a verb that is not in the table', ['Test', 'test', 'hello', 'PROPFIND'], 'test hello _OTHER 200'],
    ['a page of the service itself, without a group', ['', 'signin', 'signin', 'POST'], 'signin signin POST 200'],
    ['a credential by its group, whatever page is in the URL', ['Sdk', 'made-up', 'index', 'GET'], 'sdk index GET 200'],
    ['a credential whose operation was not found', ['Sdk', 'made-up', '', 'PUT'], 'sdk  PUT 200'],
  ];
  for (const [name, [group, page, operation, verb], label] of rows) {
    test(`labels ${name}`, (t) => {
      const metrics = createWorkerMetrics();
      t.after(metrics.close);
      metrics.takeReport(parts());
      const request = { group, groupInUrl: page, operation, verb, caller: { row: undefined, credentialId: '' } };
      metrics.observer.answered(request, 200, 1, 1);
      const counts = createRequestCounts();
      for (const delta of metrics.takeReport(parts()).requestsByOperation) counts.add(delta);
      assert.deepEqual(Object.keys(flat(counts)), [label]);
    });
  }

  test('reports differences, and only the name and reason of the first 20 quarantined rows', (t) => {
    const metrics = createWorkerMetrics();
    t.after(metrics.close);
    metrics.takeReport(parts({ reloads: 1 }));
    const report = metrics.takeReport(parts({ reloads: 3, quarantined: 30 }));
    assert.deepEqual(JSON.parse(JSON.stringify(report)), report);
    const { counters } = report;
    assert.deepEqual(
      [counters.credentialReloads, counters.identityKeyFetches, counters.identityKeyFailures, counters.logLinesDropped],
      [2, 4, 2, 6],
    );
    assert.equal(metrics.takeReport(parts({ reloads: 0 })).counters.credentialReloads, 0, 'a counter never falls');
    assert.deepEqual([report.quarantinedRows, report.quarantineReasons.length, report.inFlight], [30, 20, 3]);
    assert.ok(!JSON.stringify(report).includes('never sent'));
  });
});

test('createWorkerMetrics counts requests by credential, beyond a thousand as one, and skips refused credentials', (t) => {
  const metrics = createWorkerMetrics();
  t.after(metrics.close);
  const row = { application: { id: 'a', name: 'a' }, handler: 'Sdk', methods: undefined };
  const asked = { group: 'Sdk', groupInUrl: 'x', operation: 'index', verb: 'GET' };
  for (let i = 0; i < MAX_CREDENTIALS + 5; i++)
    metrics.observer.answered({ ...asked, caller: { row, credentialId: `id ${i}` } }, 200, 1, 1);
  metrics.observer.answered({ ...asked, caller: { row, credentialId: 'id 0' } }, 200, 1, 1);
  metrics.observer.answered({ ...asked, caller: { row: undefined, credentialId: 'refused' } }, 401, 1, 1);
  const { requestsByCredential: credentials } = metrics.takeReport(parts());
  assert.equal(credentials.length, MAX_CREDENTIALS + 1);
  assert.deepEqual(
    [credentials[0], credentials.at(-1)],
    [
      ['id 0', 2],
      [OTHER, 5],
    ],
  );
  assert.deepEqual(metrics.takeReport(parts()).requestsByCredential, []);
});

test('createMemoryReader returns the last value while the memory cannot be read', () => {
  const values = [1, undefined, 3];
  const memory = createMemoryReader(() => {
    const value = values.shift();
    if (value === undefined) throw new Error('EMFILE');
    return value;
  });
  assert.deepEqual([memory(), memory(), memory(), memory()], [1, 1, 3, 3]);
});

test('watchPunctuality is false while the timer of the process is late, and for 3 s afterwards', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const isPunctual = watchPunctuality(() => now);
  const seen: boolean[] = [];
  for (const [time, ticks] of [
    [500, 1],
    [1500, 1],
    [2500, 0],
    [2501, 0],
    [2501, 1],
    [3000, 1],
    [5500, 5],
    [5501, 0],
  ] as const) {
    for (let tick = 1; tick <= ticks; tick++) {
      now += (time - now) / (ticks - tick + 1);
      t.mock.timers.tick(500);
    }
    now = time;
    seen.push(isPunctual());
  }
  assert.deepEqual(seen, [true, true, true, false, false, false, false, true]);
});

test('createLoopDelay returns how late its timer was, and returns the longest delay once', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const delay = createLoopDelay(() => now);
  for (const late of [0, 3, 400]) {
    now += 100 + late;
    t.mock.timers.tick(100);
  }
  const { delays, longestDelay } = delay.take();
  assert.equal(longestDelay, 0.4);
  assert.deepEqual(delays.buckets, [2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  assert.equal(delay.take().longestDelay, 0);
  delay.close();
});

function report(change: Partial<Record<keyof WorkerReport, unknown>> = {}): WorkerReport {
  const counts = createRequestCounts();
  counts.count(counts.countsFor('test', 'index', '/api/test'), 'GET', 200, 10, 1);
  return {
    requestsByOperation: counts.takeOperations(),
    delays: { buckets: createHistogram(DELAY_BOUNDS).buckets, sum: 0 },
    longestDelay: 0,
    cpuSeconds: 1,
    counters: {
      credentialReloads: 1,
      credentialReloadFailures: 1,
      identityKeyFetches: 1,
      identityKeyFailures: 1,
      logLinesDropped: 1,
      connectionsRefused: 2,
    },
    rateLimited: { credential: 0, address: 1, operation: 0 },
    inFlight: 1,
    memoryBytes: 1,
    credentialRows: 1,
    quarantinedRows: 1,
    quarantineReasons: [{ name: 'a', reason: 'b' }],
    credentialsFailure: '',
    requestsByCredential: [],
    providers: 0,
    refusedProviderRows: 0,
    ...change,
  } as WorkerReport;
}

describe('createServiceWatch', () => {
  test('keeps the counters of a worker that has exited, and counts its late last report', () => {
    let alive = [10, 11];
    const watch = createServiceWatch(() => supervisorStatus(alive));
    const asked = () => flat(watch.status().totals.requests)['test index GET 200'];
    watch.addReport(10, report());
    watch.addReport(11, report());
    assert.equal(asked(), 2);
    alive = [11];
    assert.equal(asked(), 2);
    watch.addReport(10, report());
    assert.equal(asked(), 3);
    const { workers, totals } = watch.status();
    assert.deepEqual(
      workers.map(({ pid }) => pid),
      [11],
    );
    assert.deepEqual(
      [
        totals.cpuSeconds.reduce((sum, seconds) => sum + seconds),
        totals.credentialReloads,
        totals.identityKeyFailures,
        totals.logLinesDropped,
        totals.rateLimited.address,
      ],
      [3, 3, 3, 3, 3],
    );
  });

  test('gives a worker the lowest free slot, so a thousand generations need two slots', () => {
    let alive: number[] = [];
    const watch = createServiceWatch(() => supervisorStatus(alive));
    for (let generation = 0; generation < 1000; generation++) {
      alive = [generation, generation + 1];
      watch.addReport(generation + 1, report());
    }
    assert.ok(watch.status().workers.every(({ slot }) => slot <= 1));
  });

  test('keeps the longest delay for a minute, and returns the age of the last report', () => {
    let now = 0;
    const watch = createServiceWatch(
      () => supervisorStatus([10]),
      () => now,
    );
    watch.addReport(10, report({ longestDelay: 0.7 }));
    for (let second = 1; second < 60; second++) watch.addReport(10, report());
    now += 4000;
    assert.deepEqual(
      watch.status().workers.map(({ longestDelay, reportAge }) => ({ longestDelay, reportAge })),
      [{ longestDelay: 0.7, reportAge: 4 }],
    );
    watch.addReport(10, report());
    assert.equal(watch.status().workers[0]?.longestDelay, 0);
  });

  test('ignores a report that is undefined', () => {
    const watch = createServiceWatch(() => supervisorStatus([10]));
    watch.addReport(10, undefined);
    assert.equal(watch.status().latestReport, undefined);
  });
});

describe('readinessOf', () => {
  const state = (...states: WorkerStatus['state'][]) =>
    supervisorStatus([], { workers: states.map((state, pid) => ({ pid, generation: 1, state })) });
  const service: GroupLoad = { group: SERVICE, file: 'service.js', ok: false };
  const storeState = { awayReason: 'it is gone', needsOperator: false, hasTable: true, age: 1, machines: 2 };
  const tableState = { tableBytes: 1, tableLimit: 2, secondsAhead: 0, fullReads: 1, missedBells: 0 };
  const away = { state: { ...storeState, ...tableState }, ageSeconds: 90, isTooOld: true };
  const recent = { ...away, isTooOld: false };
  const rows: [name: string, status: SupervisorStatus | undefined, isStopping: boolean, expected: string][] = [
    ['no supervisor yet', undefined, false, 'starting'],
    ['no generation yet', { ...state('loading'), generation: 0 }, false, 'starting'],
    ['a worker that serves', state('draining', 'serving'), false, 'ready'],
    ['only a faulty worker, which still serves', state('faulty'), false, 'ready'],
    ['workers that drain, load or have exited', state('draining', 'loading', 'gone'), false, 'no-worker'],
    ['no worker', state(), false, 'no-worker'],
    ['workers that serve while the service stops', state('serving'), true, 'stopping'],
    ['no service file that loads', { ...state('serving'), notLoadable: [service] }, false, 'service-not-loadable'],
    ['a copy of the store that is too old', { ...state('serving'), store: away }, false, 'store-too-old'],
    ['a store that is away for a short time', { ...state('serving'), store: recent }, false, 'ready'],
  ];
  for (const [name, status, isStopping, expected] of rows) {
    test(`returns ${expected} with ${name}`, () => {
      const watch = createServiceWatch(() => status);
      if (isStopping) watch.setStopping();
      assert.equal(readinessOf(watch.status()), expected);
      assert.equal((describeReadiness(watch.status()) as { status: string }).status, expected);
    });
  }

  const failed: GroupLoad = { group: 'New', file: 'NewController.js', ok: false };
  const groupRows: [name: string, ready: 'some' | 'all', groups: SupervisorStatus['groups'], expected: string][] = [
    ['no group that loads', 'some', { loaded: 0, lost: [], wasComplete: true }, 'groups-not-loadable'],
    ['one group that loads', 'some', { loaded: 1, lost: [], wasComplete: false }, 'ready'],
    ['a lost group', 'some', { loaded: 1, lost: [failed], wasComplete: true }, 'ready'],
    [
      'a group that does not load at the start',
      'all',
      { loaded: 1, lost: [], wasComplete: false },
      'groups-not-loadable',
    ],
    ['a bad new file after the service was complete', 'all', { loaded: 1, lost: [], wasComplete: true }, 'ready'],
    ['a lost group', 'all', { loaded: 1, lost: [failed], wasComplete: true }, 'groups-not-loadable'],
  ];
  for (const [name, ready, groups, expected] of groupRows)
    test(`returns ${expected} with ${name} and READY=${ready}`, () => {
      const status = { ...state('serving'), notLoadable: [failed], groups };
      assert.equal(readinessOf(createServiceWatch(() => status, undefined, { ready }).status()), expected);
    });

  test('returns workers-stuck when every worker is silent for 3 s, and the timers here were on time', () => {
    let now = 0;
    let isPunctual = true;
    const watch = createServiceWatch(
      () => supervisorStatus([10, 11]),
      () => now,
      { isPunctual: () => isPunctual },
    );
    const readiness = () => readinessOf(watch.status());
    assert.equal(readiness(), 'ready', 'a worker that has not reported yet is not stuck');
    for (const pid of [10, 11]) watch.addReport(pid, report());
    now = 3000;
    assert.equal(readiness(), 'ready');
    now = 3001;
    assert.equal(readiness(), 'workers-stuck');
    isPunctual = false;
    assert.equal(readiness(), 'ready');
    isPunctual = true;
    watch.addReport(11, report());
    assert.equal(readiness(), 'ready');
  });

  test('describeReadiness returns null for what is not known yet, and the state of the store', () => {
    const unknown = describeReadiness(createServiceWatch(() => undefined).status()) as Record<string, unknown>;
    delete unknown.timestamp;
    const nothing = { generation: 0, serving_since: null, workers: [], rejected: null, not_loadable: [] };
    assert.deepEqual(unknown, { status: 'starting', ...nothing, credentials: null, identity: null });
    const storeOf = (store: typeof away) =>
      (describeReadiness(createServiceWatch(() => ({ ...state(), store })).status()) as { store: unknown }).store;
    assert.deepEqual(storeOf(away), { state: 'away', reason: 'it is gone', age_seconds: 90, machines: 2 });
    const connected = { ...away, state: { ...away.state, awayReason: null as unknown as string } };
    assert.deepEqual(storeOf(connected), { state: 'connected', reason: null, age_seconds: 90, machines: 2 });
  });

  test('describeReadiness returns the group, the file and the error that rejected a generation', () => {
    const failure = { group: 'Test', file: 'TestController.js', error: 'Unexpected token', at: 'TestController.js:3' };
    const rejected = { generation: 4, at: new Date(0), failures: [{ ...failure, ok: false }] };
    const watch = createServiceWatch(() =>
      supervisorStatus([10], { rejected, notLoadable: [{ group: 'New', file: 'NewController.js', ok: false }] }),
    );
    const body = describeReadiness(watch.status(), new Date(5000)) as Record<string, unknown>;
    assert.deepEqual(body.rejected, { generation: 4, at: '1970-01-01T00:00:00.000Z', error: null, groups: [failure] });
    assert.deepEqual(body.not_loadable, [{ group: 'New', file: 'NewController.js', error: null, at: null }]);
    assert.equal(body.timestamp, 5);
  });
});

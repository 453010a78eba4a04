// docs/OPERATING.md lists what the code has: every log event with its level and its facts, and every metric with its
// type and labels.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createHistogram } from '../../../src/operate/ops/histogram.ts';
import { DELAY_BOUNDS } from '../../../src/operate/ops/loop-delay.ts';
import { METRICS } from '../../../src/operate/ops/metrics.ts';
import { createRequestCounts } from '../../../src/operate/ops/request-counts.ts';
import type { ServiceStatus } from '../../../src/operate/ops/service-status.ts';
import type { WorkerReport } from '../../../src/operate/ops/worker-metrics.ts';
import { createAccessLog } from '../../../src/request/access-log.ts';
import type { Exchange } from '../../../src/request/exchange.ts';
import ts from '../../support/typescript.mjs';

const ROOT = join(import.meta.dirname, '../../..');
const TEXT = readFileSync(join(ROOT, 'docs/OPERATING.md'), 'utf8');

/** Returns the rows of the table with this head, each as a list of its cells. */
function tableUnder(head: string): string[][] {
  const [, rest = ''] = TEXT.split(`${head}\n`);
  const lines = rest.split('\n');
  return lines.slice(1, lines.indexOf('')).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

const unquoted = (cell = '') => cell.replaceAll('`', '');

const byName = (events: EventRow[]) => events.toSorted((a, b) => (a.event < b.event ? -1 : 1));

interface EventRow {
  readonly event: string;
  readonly level: string | undefined;
  readonly facts: string;
}

/** The documents list the ids of a request first, but the compiler lists the fields of a base type last. */
const sorted = (facts: readonly string[]): string => facts.toSorted().join(', ');

/**
 * Returns the table of src/base/events.ts as the compiler reads it. `error…` stands for the facts of a thrown value.
 */
function eventsInCode(): EventRow[] {
  const file = join(ROOT, 'src/base/events.ts');
  const program = ts.createProgram([file], { noLib: true, types: [] });
  const checker = program.getTypeChecker();
  const table = program
    .getSourceFile(file)
    ?.statements.find((node) => ts.isInterfaceDeclaration(node) && node.name.text === 'LogEvents') as ts.Node;
  const members = (type: ts.Type) =>
    (type.isUnion() ? type.types : [type]).flatMap((part) => checker.getPropertiesOfType(part));
  const typeOf = (member: ts.Symbol) => checker.getTypeOfSymbolAtLocation(member, table);
  return members(checker.getTypeAtLocation(table)).flatMap((level) =>
    members(typeOf(level)).map((event) => {
      const facts = [...new Set(members(typeOf(event)).map(({ name }) => name))];
      const ofErrors = facts.includes('error_name')
        ? ['error', 'error_name', 'error_cause_code', 'stack', 'cause']
        : [];
      const own = facts.filter((name) => !ofErrors.includes(name) && !name.startsWith('__'));
      return {
        event: event.name,
        level: level.name,
        facts: sorted([...own, ...ofErrors.slice(0, 1).map((name) => `${name}…`)]),
      };
    }),
  );
}

describe('docs/OPERATING.md', () => {
  test('lists every log event with its level and its facts, and no other', () => {
    const documented = tableUnder('| event | level | facts | what happened, and what to do |').map(
      ([event, level, facts]) => ({ event: unquoted(event), level, facts: sorted(unquoted(facts).split(', ')) }),
    );
    assert.deepEqual(byName(documented), byName(eventsInCode()));
  });

  test('the table in src/base/events.ts has each event that the code logs, and no other', () => {
    const logged = new Set<string>();
    for (const name of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    )) {
      const source = readFileSync(join(ROOT, 'src', name), 'utf8');
      for (const [, level, event] of source.matchAll(/\blog\.(debug|info|warn|error)\(\s*'([a-z-]+)'/g))
        logged.add(`${event} ${level}`);
      // Two lines are written without the table.
      for (const [, level, event] of source.matchAll(/"?level"?: ?["'](\w+)["'], ?"?event"?: ?["']([a-z-]+)["']/g))
        logged.add(`${event} ${level}`);
    }
    assert.deepEqual(
      [...logged].sort(),
      eventsInCode()
        .map(({ event, level }) => `${event} ${level}`)
        .sort(),
    );
  });

  test('the access log writes exactly the facts of the event request', () => {
    let line = '';
    const accessLog = createAccessLog({ write: (text) => (line = text) });
    const exchange = { verb: 'GET', operation: 'index', group: 'Test', caller: { credentialId: 'id', userId: 'u' } };
    const trace = { traceId: 't', spanId: 's' };
    accessLog(
      { ...exchange, requestId: 'r', trace, toolCall: { name: 't' }, startedAt: 0 } as unknown as Exchange,
      200,
      1,
      1,
    );
    const facts = Object.keys(JSON.parse(line)).filter((name) => !['time', 'level', 'event', 'pid'].includes(name));
    const row = eventsInCode().find(({ event }) => event === 'request');
    assert.deepEqual(facts.sort(), row?.facts.split(', ').sort());
  });

  test('lists every metric with its type and labels, in the order of the table in the code', () => {
    const documented = tableUnder('| metric | type | labels | |').map(([name, type, labels]) => ({
      name: unquoted(name),
      type,
      labels: (labels ?? '')
        .split(',')
        .map(unquoted)
        .map((label) => label.trim())
        .filter((label) => label !== ''),
    }));
    const about = {
      version: '',
      build: () => '',
      node: '',
      wantedWorkers: 1,
      startedAt: 0,
      memoryBytes: () => 0,
      maxDescriptors: 0,
      cpuSeconds: () => 0,
      logLinesDropped: () => 0,
    };
    const known = METRICS.map(({ name, type, samples }) => {
      const [sample] = samples(service(), about);
      return { name, type, labels: Object.keys(sample?.labels ?? {}) };
    });
    assert.deepEqual(documented, known);
    for (const { name, help } of METRICS) assert.match(help, /\w \w/, name);
  });

  test('mentions only metrics that exist, and links only to documents that exist', () => {
    const names = new Set<string>(METRICS.map(({ name }) => name));
    for (const [name] of TEXT.matchAll(/\b(?:gatefold|http_server|process|nodejs)_[a-z_]+/g))
      assert.ok(names.has(name.replace(/_(?:count|sum|bucket)$/, '')), name);
    for (const [, file = ''] of TEXT.matchAll(/\]\(([A-Z]+\.md)(?:#[a-z-]+)?\)/g))
      assert.ok(readFileSync(join(ROOT, 'docs', file)).length > 0);
  });
});

/** A report in which every metric has a sample. */
function service(): ServiceStatus {
  const requests = createRequestCounts();
  requests.count(requests.countsFor('test', 'index', '/api/test'), 'GET', 200, 1, 1);
  requests.countCredential('id');
  const totals = {
    cpuSeconds: [0],
    credentialReloads: 0,
    credentialReloadFailures: 0,
    identityKeyFetches: 0,
    identityKeyFailures: 0,
    logLinesDropped: 0,
    spansExported: 0,
    spansDropped: 0,
    connectionsRefused: 0,
    channelDelivered: 0,
    channelTooSlow: 0,
    rateLimited: { credential: 0, address: 0, operation: 0 },
  };
  const report = { inFlight: 0, memoryBytes: 1, openDescriptors: 1, maxDescriptors: 1 } as WorkerReport;
  return {
    supervisor: {
      workers: [],
      notLoadable: [],
      groups: {},
      tasks: [{ facts: { name: 'nightly' } }],
    } as unknown as ServiceStatus['supervisor'],
    isStopping: false,
    ready: 'some',
    isPunctual: true,
    totals: { ...totals, requests, delays: createHistogram(DELAY_BOUNDS) },
    workers: [{ pid: 1, slot: 0, report, reportAge: 0, longestDelay: 0 }],
    latestReport: undefined,
  };
}

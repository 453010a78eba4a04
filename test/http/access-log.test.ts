// The lines of requests: put together late and many at a time, and still all there, whole and in their order.
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createLogWriter } from '../../src/base/log-writer.ts';
import { createRequestLines } from '../../src/http/access-log.ts';
import type { Exchange } from '../../src/http/exchange.ts';

function opened(test: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-lines-'));
  const path = join(dir, 'log');
  const fd = openSync(path, 'a');
  test.after(() => {
    closeSync(fd);
    rmSync(dir, { recursive: true, force: true });
  });
  const writer = createLogWriter(fd);
  const lines = createRequestLines(writer);
  const log = createLog({ level: 'info', sink: writer });
  const read = () =>
    readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return { writer, lines, log, read };
}

const resolved = { path: { raw: '/api/test' }, lineMiddle: undefined };

function exchange(requestId: string, facts: object = {}): Exchange {
  return {
    resolved,
    verb: 'GET',
    page: 'test',
    operation: 'index',
    requestId,
    startedAt: performance.now(),
    ...facts,
  } as unknown as Exchange;
}

describe('request lines', () => {
  it('lose none of many, and keep their order among other lines', (test) => {
    const { writer, lines, log, read } = opened(test);
    const expected: string[] = [];
    for (let i = 0; i < 2000; i++) {
      lines.add(exchange(`r-${i}`), 200, 96, performance.now());
      expected.push(`r-${i}`);
      if (i % 333 !== 0) continue;
      log.info('between', { request_id: `between-${i}` });
      expected.push(`between-${i}`);
    }
    writer.close();
    assert.deepEqual(
      read().map(({ request_id }) => request_id),
      expected,
    );
  });

  it('are on their way without any other line, and without the end of the process', async (test) => {
    const { lines, read } = opened(test);
    lines.add(exchange('alone'), 200, 96, performance.now());
    while (read().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(read()[0].request_id, 'alone');
  });

  it('say when the request ended, not when the line was put together', async (test) => {
    const { writer, lines, read } = opened(test);
    const endedAt = performance.now();
    lines.add(exchange('x', { startedAt: endedAt - 12.3456 }), 200, 96, endedAt);
    const latest = Date.now() + 1;
    while (Date.now() < latest + 5) await new Promise((resolve) => setTimeout(resolve, 1));
    writer.close();
    const [{ time, duration_ms }] = read();
    assert.ok(Date.parse(time) <= latest, `${time} is later than ${new Date(latest).toISOString()}`);
    assert.equal(duration_ms, 12.346);
  });

  it('tell apart what one path answers in different ways', (test) => {
    const { writer, lines, read } = opened(test);
    const rows = [
      { verb: 'GET', page: 'test', operation: 'index', status: 200 },
      { verb: 'POST', page: 'test', operation: 'created', status: 200 },
      { verb: 'POST', page: 'test', operation: 'created', status: 500 },
      { verb: 'GET', page: 'other', operation: 'index', status: 200 },
    ];
    for (const row of [...rows, ...rows]) lines.add(exchange('x', row), row.status, 1, performance.now());
    writer.close();
    assert.deepEqual(
      read().map(({ method, page, operation, status }) => ({ verb: method, page, operation, status })),
      [...rows, ...rows],
    );
  });
});

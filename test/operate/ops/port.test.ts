// The operations port in this process: its answers from a supervisor and from reports, and the failure of making them.
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createCredentials } from '../../../src/callers/credentials/credentials.ts';
import type { SupervisorStatus } from '../../../src/live/supervisor/status.ts';
import { createOperationsServer } from '../../../src/operate/ops/server.ts';
import { createWorkerMetrics, type ReportedParts } from '../../../src/operate/ops/worker-metrics.ts';
import { ask, json, openConnection } from '../../support/cluster-client.ts';
import { makeRow, tableText } from '../../support/credentials-bench.ts';
import { controller, createFolder } from '../../support/folder.ts';
import { parseMetrics, total } from '../../support/prometheus-text.ts';
import { parseRaw, sendRaw, startService } from '../../support/service.ts';

const STATUS: SupervisorStatus = {
  generation: 3,
  servingSince: new Date(1_780_000_000_500),
  workers: [
    { pid: 10, generation: 3, state: 'serving' },
    { pid: 11, generation: 3, state: 'serving' },
    { pid: undefined, generation: 0, state: 'booting' },
  ],
  notLoadable: [{ group: 'New', file: 'NewController.js', ok: false, error: 'it exports no group' }],
  groups: { loaded: 1, lost: [], wasComplete: true },
  rejected: { generation: 4, at: new Date(0), error: 'no worker starts', failures: [] },
  generationsServed: 2,
  generationsRejected: 5,
  workersDied: 6,
  workersReplaced: 7,
};

const QUARANTINED = [{ name: 'Orders app', reason: '"hash" is missing' }];
const PARTS: ReportedParts = {
  app: { inFlight: () => 4, refusedConnections: () => 0 },
  credentials: {
    status: () => ({ rows: 8, quarantined: QUARANTINED, reloads: 9, reloadFailures: 1, lastFailure: 'Cannot read it' }),
  },
  identity: { status: () => ({ providers: ['google'], refusedRows: 2, keyFetches: 11, keyFailures: 12 }) },
  limiter: { status: () => ({ refused: { credential: 3, address: 4, operation: 5 }, callers: 6 }) },
  logWriter: { droppedLines: () => 13 },
};

async function open(status: () => SupervisorStatus | undefined) {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: 'info',
    sink: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const operations = createOperationsServer({ port: 0, host: '127.0.0.1', workers: 2, log, droppedLines: () => 14 });
  await operations.open(status);
  const port = Number(lines.find(({ event }) => event === 'operations-port-opened')?.port);
  return { operations, port, lines };
}

/** Returns the server behind a port, which Node publishes with each request. */
async function serverAt(port: number): Promise<Server> {
  let server: Server | undefined;
  const remember = (message: unknown) => {
    server = (message as { server: Server }).server;
  };
  subscribe('http.server.request.start', remember);
  await ask(port, '/livez');
  unsubscribe('http.server.request.start', remember);
  return server as Server;
}

describe('createOperationsServer', () => {
  test('serves the status of the supervisor and the reports of the workers', async (t) => {
    const { operations, port } = await open(() => STATUS);
    const worker = createWorkerMetrics();
    t.after(worker.close);
    const caller = { application: { id: 'a', name: 'a' }, handler: 'Test', methods: undefined };
    worker.observer.answered(
      {
        group: 'Test',
        groupInUrl: 'test',
        operation: 'index',
        verb: 'GET',
        caller: { row: caller, credentialId: 'a' },
      },
      200,
      100,
      1,
      '/api/test',
    );
    const report: unknown = JSON.parse(JSON.stringify(worker.takeReport(PARTS)));
    operations.addReport(11, report);
    operations.addReport(10, report);

    const body = json(await ask(port, '/readyz'));
    assert.equal(body.status, 'ready');
    assert.equal(body.serving_since, '2026-05-28T20:26:40.500Z');
    assert.deepEqual(
      (body.workers as { worker: unknown }[]).map(({ worker }) => worker),
      [1, 0, null],
    );
    assert.deepEqual(body.rejected, {
      generation: 4,
      at: '1970-01-01T00:00:00.000Z',
      error: 'no worker starts',
      groups: [],
    });
    assert.deepEqual(body.credentials, {
      rows: 8,
      quarantined_rows: 1,
      quarantined: QUARANTINED,
      failure: 'Cannot read it',
    });
    assert.deepEqual(body.identity, { providers: 1, refused: 2 });

    const metrics = parseMetrics((await ask(port, '/metrics')).body);
    const ANSWER = {
      page: 'test',
      http_route: '/api/test',
      http_request_method: 'GET',
      http_response_status_code: '200',
    };
    const rows: [name: string, value: number, labels?: Record<string, string>][] = [
      ['gatefold_ready', 1],
      ['http_server_request_duration_seconds_count', 2, ANSWER],
      ['gatefold_response_bytes_total', 200, { page: 'test', operation: 'index' }],
      ['gatefold_credential_requests_total', 2, { credential: 'a' }],
      ['http_server_active_requests', 4, { worker: '1' }],
      ['gatefold_workers', 2, { state: 'serving' }],
      ['gatefold_workers', 1, { state: 'booting' }],
      ['gatefold_workers_wanted', 2],
      ['gatefold_worker_deaths_total', 6],
      ['gatefold_worker_replacements_total', 7],
      ['gatefold_generation', 3],
      ['gatefold_generation_start_time_seconds', 1_780_000_000.5],
      ['gatefold_generations_total', 2],
      ['gatefold_generations_rejected_total', 5],
      ['gatefold_generation_rejected', 1],
      ['gatefold_groups_not_loadable', 1],
      ['gatefold_credentials_rows', 8],
      ['gatefold_credentials_quarantined_rows', 1],
      ['gatefold_credentials_stale_workers', 2],
      ['gatefold_credentials_reloads_total', 18],
      ['gatefold_credentials_reload_failures_total', 2],
      ['gatefold_identity_providers', 1],
      ['gatefold_identity_providers_refused', 2],
      ['gatefold_identity_fetches_total', 22],
      ['gatefold_identity_fetch_failures_total', 24],
      ['gatefold_rate_limited_total', 8, { by: 'address' }],
      ['gatefold_rate_limit_callers', 6, { worker: '0' }],
      ['gatefold_log_lines_dropped_total', 26, { process: 'workers' }],
      ['gatefold_log_lines_dropped_total', 14, { process: 'supervisor' }],
    ];
    for (const [name, value, labels] of rows) assert.equal(total(metrics, name, labels), value, name);
    const startedAt = total(metrics, 'process_start_time_seconds');
    assert.ok(startedAt <= Date.now() / 1000 && startedAt > Date.now() / 1000 - 600);
  });

  test('answers GET and HEAD of its three paths, and refuses all other requests in the envelope', async () => {
    const { port } = await open(() => STATUS);
    const rows: [method: string, path: string, status: number, code?: string][] = [
      ['GET', '/livez', 200],
      ['GET', '/readyz', 200],
      ['GET', '/readyz?verbose', 200],
      ['GET', '/metrics', 200],
      ['POST', '/metrics', 405, 'METHOD_NOT_ALLOWED'],
      ['OPTIONS', '/readyz', 405, 'METHOD_NOT_ALLOWED'],
      ['DELETE', '/livez', 405, 'METHOD_NOT_ALLOWED'],
      ['GET', '/', 404, 'NOT_FOUND'],
      ['POST', '/metrics/', 404, 'NOT_FOUND'],
      ['GET', '/api/test', 404, 'NOT_FOUND'],
      ['GET', '/../etc/passwd', 404, 'NOT_FOUND'],
    ];
    for (const [method, path, status, code] of rows) {
      const answer = await ask(port, path, method);
      assert.equal(answer.status, status, `${method} ${path}`);
      assert.match(answer.headers, /^cache-control: no-store\r?$/im);
      if (code === undefined) continue;
      const body = json(answer);
      assert.deepEqual(Object.keys(body), ['status', 'error_code', 'message', 'timestamp', 'request_id']);
      assert.deepEqual([body.status, body.error_code], ['error', code]);
      if (status === 404)
        assert.equal(body.message, 'Not found: this port serves only /livez, /readyz, /metrics', path);
      assert.match(answer.headers, new RegExp(`^x-request-id: ${body.request_id}\r?$`, 'im'));
      if (status === 405) assert.match(answer.headers, /^allow: GET, HEAD\r?$/im);
    }
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const head = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'HEAD' });
      assert.equal(head.status, 200);
      assert.ok(Number(head.headers.get('content-length')) > 0);
      assert.equal(await head.text(), '');
    }
    assert.match(
      await sendRaw(port, 'POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /'),
      /^HTTP\/1\.1 405 .*\r\nConnection: close\r\n/s,
    );
  });

  test('has few series when clients send invented names', async (t) => {
    const controllers = { 'TestController.js': controller('test'), 'SdkController.js': controller('sdk') };
    const { row, token } = makeRow();
    const dataDir = createFolder(t);
    writeFileSync(join(dataDir, 'production.json'), tableText(row));
    const log = createLog({ level: 'silent', sink: { write: () => {} } });
    const credentials = await createCredentials({ dataDir, sessionKey: undefined, log });
    const worker = createWorkerMetrics();
    const service = await startService({ controllers, parts: { credentials, observer: worker.observer } });
    t.after(() => {
      credentials.close();
      worker.close();
      return service.close();
    });
    const connection = openConnection(service.port);
    const verbs = ['GET', 'PUT', 'PROPFIND', 'SEARCH', 'MKCOL', 'OPTIONS'];
    let asked = 0;
    for (let i = 0; i < 20; i++)
      for (const path of [`/api/made-up-${i}`, `/made-up-${i}`, `/api/%0${i}`, `/api/test/made-up-${i}`])
        for (const authorization of ['', `Authorization: Bearer ${token}\r\n`]) {
          const request = `${verbs[i % 6]} ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}\r\n`;
          const answer = await connection.ask(request);
          assert.ok('status' in answer, JSON.stringify(answer));
          asked++;
        }
    const { operations, port } = await open(() => STATUS);
    operations.addReport(10, worker.takeReport(PARTS));
    const metrics = parseMetrics((await ask(port, '/metrics')).body);
    assert.equal(total(metrics, 'http_server_request_duration_seconds_count'), asked);
    const series = (metrics.get('http_server_request_duration_seconds')?.samples ?? []).filter(({ name }) =>
      name.endsWith('_count'),
    );
    const values = (label: string) => [...new Set(series.map(({ labels }) => labels[label]))].sort();
    assert.deepEqual(values('page'), ['', 'sdk', 'test']);
    assert.deepEqual(values('operation'), ['', 'index']);
    assert.deepEqual(values('http_request_method'), ['GET', 'OPTIONS', 'PUT', '_OTHER']);
    assert.deepEqual(values('http_route'), ['', '/api/test/{params}', '/api/{params}']);
    assert.ok(series.length < 40, `${series.length} series`);
  });

  test('answers /readyz with 503 as soon as the service stops', async () => {
    const { operations, port } = await open(() => STATUS);
    assert.equal((await ask(port, '/readyz')).status, 200);
    operations.setStopping();
    const answer = await ask(port, '/readyz');
    assert.deepEqual([answer.status, json(answer).status], [503, 'stopping']);
    assert.equal((await ask(port, '/livez')).status, 200);
  });

  test('answers a failure with 500 in the envelope, and logs the error', async () => {
    const { port, lines } = await open(() => {
      throw new Error('a mistake of ours');
    });
    const answer = await ask(port, '/metrics');
    assert.deepEqual([answer.status, json(answer).error_code], [500, 'INTERNAL_ERROR']);
    assert.doesNotMatch(answer.body, /mistake/);
    const failed = lines.find(({ event }) => event === 'operations-answer-failed');
    assert.equal(failed?.error, 'a mistake of ours');
    assert.equal((await ask(port, '/nothing')).status, 404);
    assert.equal((await ask(port, '/livez')).status, 200, '/livez still answers 200');
  });

  test('sends X-Content-Type-Options: nosniff with every answer', async () => {
    const { port } = await open(() => STATUS);
    const asked = ['GET /livez', 'HEAD /readyz', 'GET /metrics', 'GET /nothing', 'POST /livez'].map(
      (line) => `${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    );
    const odd = [
      'GET /livez HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n',
      'GET /livez HTTP/1.1\r\n\r\n',
      'NONSENSE\r\n\r\n',
    ];
    for (const request of [...asked, ...odd]) {
      assert.match(await sendRaw(port, request), /\r\nX-Content-Type-Options: nosniff\r\n/, request);
    }
  });

  describe('answers a request that Node refuses with the status of the service port', () => {
    const rows: [name: string, bytes: string, status: number, code: string][] = [
      ['a text that is not HTTP', 'NONSENSE\r\n\r\n', 400, 'MALFORMED_REQUEST'],
      ['a head over 16 KiB', `GET /livez HTTP/1.1\r\nA: ${'a'.repeat(17_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
      ['a head that comes too slowly', 'GET /livez HTTP/1.1\r\nHost:', 408, 'REQUEST_TIMEOUT'],
    ];
    for (const [name, bytes, status, code] of rows)
      test(`${name} is ${status} ${code}`, async () => {
        const { port } = await open(() => STATUS);
        (await serverAt(port)).headersTimeout = 50;
        const answer = parseRaw(await sendRaw(port, bytes));
        assert.deepEqual([answer.status, JSON.parse(answer.body).error_code], [status, code]);
      });
  });

  test('rejects with the system error when its port is in use', async () => {
    const { port } = await open(() => STATUS);
    const log = createLog({ level: 'silent', sink: { write: () => {} } });
    const second = createOperationsServer({ port, host: '127.0.0.1', workers: 2, log, droppedLines: () => 14 });
    await assert.rejects(
      second.open(() => STATUS),
      { code: 'EADDRINUSE' },
    );
  });
});

// The entry `gatefold/testing`: runs the complete service on a free port in the process of a test, so that breakpoints
// and coverage work in the controllers. There is no cluster and no watching: the service loads the controllers once.
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseSettings } from './base/config.ts';
import { describeFailure } from './base/failure.ts';
import { listen } from './base/listen.ts';
import { createLog, type LineSink } from './base/log.ts';
import { groupNameOf } from './base/page-name.ts';
import type { Client, ClientOptions } from './client/types.ts';
import { createClient } from './client.ts';
import type { CallingApplication, ControllerParams } from './controller.ts';
import { listControllers } from './groups/naming.ts';
import type { Caller, CallerTable } from './http/caller.ts';
import { createWorkerParts, type WorkerParts } from './worker/parts.ts';

export interface TestOptions {
  /** The folder of controllers; default: `./controllers`. */
  readonly controllers?: string;
  /** The folder of the tables of credentials and identity providers; default: an empty one, removed afterwards. */
  readonly data?: string;
  /** Settings, as environment variables: `{ BODY_LIMIT: '64KiB' }`. The environment of the process is not read. */
  readonly env?: Readonly<Record<string, string>>;
  /** The log events of level error that the test expects: `['request-failed']`. Any other one fails `close`. */
  readonly expectedErrors?: readonly string[];
}

/** A line of the service's log. docs/OPERATING.md lists the events. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly [field: string]: unknown;
}

/** The options of `fetch`, and `json`. */
export interface TestRequest extends RequestInit {
  /** A value to send as a JSON body, with its `Content-Type`. For a string in `body`, `fetch` sets `text/plain`. */
  readonly json?: unknown;
}

/** A caller of the service. */
export interface TestCaller {
  /**
   * Sends a request to the service by the global `fetch`. The path may leave out `/api`, or the `BASE_PATH` of the
   * test.
   */
  fetch(path: string, init?: TestRequest): Promise<Response>;
  /** Creates a typed client: `api.client<{ book: typeof BookController }>()`. */
  client<Groups>(options?: ClientOptions): Client<Groups>;
}

/** A credential for a test, with the rights that a row of the credentials table would give. */
export interface TestCredential {
  /** The fields of `params.application`; default: a generated `id`, and the name `test`. */
  readonly application: Partial<CallingApplication>;
  /** The groups that the credential may call by their URLs; default: `'*'`, all. */
  readonly groups?: readonly string[] | '*';
  /** The one group that serves all requests of the credential, whatever their URL. */
  readonly handler?: string;
  /** The HTTP methods that the credential may use; default: all. */
  readonly methods?: readonly string[];
}

/** A running service. Its own `fetch` and `client` send no credential. */
export interface TestApi extends TestCaller, AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The lines of the log so far, of all levels. */
  readonly lines: readonly LogLine[];
  /** Returns a caller with a credential. No table needs to have the credential. */
  as(credential: TestCredential): TestCaller;
  /** Adds log events of level error that the test expects. Any other one fails `close`. */
  expectErrors(...events: string[]): void;
  /**
   * Ends the service. A test calls it by `await using` or by `after(() => api.close())`.
   *
   * @throws Error when the log has a line of level error that the test does not expect
   */
  close(): Promise<void>;
}

/**
 * Serves a folder of controllers in this process, on a free port of loopback. Node loads a module once in a process,
 * so all services of the process share its variables. The controllers are disposed of when the last service closes.
 *
 * @throws Error when a setting is not valid, when the folder cannot be read, and when a controller does not load,
 *   unless `group-not-loadable` is expected
 * @example
 * const api = await startTest({ controllers: './controllers' });
 * after(() => api.close());
 * test('a book', async () => assert.equal((await api.fetch('/book/1')).status, 200));
 */
export async function startTest({
  controllers = './controllers',
  data,
  env = {},
  expectedErrors = [],
}: TestOptions = {}): Promise<TestApi> {
  const expected = new Set(expectedErrors);
  const lines: LogLine[] = [];
  const dataDir = data ?? createDataDir();
  const settings = parseSettings({ CONTROLLERS_DIR: controllers, DATA_DIR: dataDir, LOG_LEVEL: 'debug', ...env }, [], {
    cores: 1,
    cwd: process.cwd(),
  });
  checkFolder(settings.controllersDir);
  const write = (line: string) => void lines.push(JSON.parse(line));
  const sink: LineSink = { write, flush: () => {} };
  const log = createLog({ level: settings.logLevel, sink });
  const testCallers = new Map<string, Caller>();
  const parts = await createWorkerParts({
    settings,
    log,
    sink,
    withCallers: (table) => addTestCallers(testCallers, table),
  });
  const { server } = parts.app;
  openServices.add(parts);

  async function close(): Promise<void> {
    for (
      const end = performance.now() + settings.drainTimeout;
      parts.app.pendingWork() > 0 && performance.now() < end;
    )
      await sleep(5);
    parts.app.giveUpWork();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    if (openServices.delete(parts)) undisposedServices.push(parts);
    if (openServices.size === 0) await Promise.all(undisposedServices.splice(0).map(({ groups }) => groups.dispose()));
    parts.close();
    if (data === undefined) removeDataDir(dataDir);
    refuseErrors(lines, expected);
  }

  try {
    for (const load of await parts.groups.loadAll({ skip: new Map(), onLoading: () => {} }))
      if (!load.ok) log.error('group-not-loadable', { ...load });
    refuseErrors(lines, expected);
    await listen(server, { port: 0, host: '127.0.0.1' });
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
  // The process of a test ends even when the test has not closed the service.
  server.unref();
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    lines,
    ...callerOf(url, settings.basePath),
    as({ application, handler, groups = handler === undefined ? '*' : undefined, methods }) {
      const id = `test${String(testCallers.size + 1).padStart(8, '0')}`;
      const authorization = `Bearer ${id}`;
      testCallers.set(authorization, {
        kind: 'row',
        row: {
          application: { id, name: 'test', ...application },
          handler,
          groups:
            groups === undefined || groups === '*' ? groups : new Set(groups.map((name) => groupNameOf(name) ?? name)),
          methods: methods && new Set(methods.map((method) => method.toUpperCase())),
        },
      });
      return callerOf(url, settings.basePath, authorization);
    },
    expectErrors: (...events) => void events.forEach((event) => void expected.add(event)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The service treats a missing folder as an empty one. In a test that is a mistake. */
function checkFolder(dir: string): void {
  try {
    listControllers(dir);
  } catch (error) {
    throw new Error(`Cannot read the controllers folder ${dir}: ${describeFailure(error)}`);
  }
}

/** The open services of this process. */
const openServices = new Set<WorkerParts>();
/**
 * Closed services whose controllers are not disposed of. All services of the process share the variables of modules,
 * such as a pool of connections. So the controllers are disposed of when the last service closes.
 */
const undisposedServices: WorkerParts[] = [];

/** The data folders that this module has created. At its exit the process removes those of services without `close`. */
const dataDirs = new Set<string>();
process.once('exit', () => dataDirs.forEach(removeDataDir));

function createDataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-test-'));
  dataDirs.add(dir);
  return dir;
}

function removeDataDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
  dataDirs.delete(dir);
}

/** Returns a table that looks for a credential of the test before the credentials of the table. */
function addTestCallers(testCallers: ReadonlyMap<string, Caller>, table: CallerTable): CallerTable {
  return { ...table, identify: (authorization) => testCallers.get(authorization) ?? table.identify(authorization) };
}

function callerOf(url: string, basePath: string, authorization?: string): TestCaller {
  return {
    fetch(path, { json, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (json !== undefined) {
        init.body = JSON.stringify(json);
        headers.set('content-type', 'application/json');
      }
      if (authorization !== undefined && !headers.has('authorization')) headers.set('authorization', authorization);
      const absolutePath = path.startsWith('/') ? path : `/${path}`;
      const hasBase = absolutePath.startsWith(basePath) && /^[/?]|^$/.test(absolutePath.slice(basePath.length));
      return fetch(url + (hasBase ? absolutePath : basePath + absolutePath), { ...init, headers });
    },
    client: (options) => createClient(url + (basePath || '/.'), { authorization, ...options }),
  };
}

/** @throws Error when the log has a line of level error that the test does not expect */
function refuseErrors(lines: readonly LogLine[], expected: ReadonlySet<string>): void {
  const unexpected = lines.filter(({ level, event }) => level === 'error' && !expected.has(event));
  if (unexpected.length === 0) return;
  const descriptions = unexpected.map(
    ({ time, level, pid, event, stack, ...facts }) => `\n  ${event} ${JSON.stringify(facts)}${indent(stack)}`,
  );
  throw new Error(
    `The log has errors that the test does not expect (call expectErrors with those it does):${descriptions.join('')}`,
  );
}

function indent(stack: unknown): string {
  return typeof stack === 'string' ? `\n    ${stack.replaceAll('\n', '\n    ')}` : '';
}

/** The enumerable fields of the params. A result that contains the params sends only these. */
const ENUMERABLE = new Set(['page', 'method', 'verb', 'slugs', 'query', 'requestId', 'application']);

/**
 * Creates the second argument of an operation, for a test that calls the operation as a function:
 * `new BookController().index({}, createParams())`.
 *
 * @param given the fields that the operation reads; the others are those of `GET /api/test`
 */
export function createParams<
  Path extends object = Readonly<Record<string, string>>,
  Query extends object = Record<string, string | string[]>,
>(given: GivenParams<Path, Query> = {}): ControllerParams<{ path: Path; query: Query }> {
  const defaults = {
    ...{
      page: 'test',
      method: 'index',
      verb: 'GET',
      slugs: [],
      query: {},
      requestId: 'test',
      path: {},
      base: '/api',
      lastEventId: undefined,
    },
    ...{ request: {}, signal: new AbortController().signal, bytes: new Uint8Array(), address: '127.0.0.1' },
    ...{ log: { info() {}, warn() {}, error() {} }, waitUntil() {}, cookies: {}, user: undefined },
  };
  const fields = Object.entries({ ...defaults, ...given }).map(([name, value]) => [
    name,
    { value, enumerable: ENUMERABLE.has(name) },
  ]);
  return Object.defineProperties({}, Object.fromEntries(fields)) as ControllerParams<{ path: Path; query: Query }>;
}

/** Any fields of the params, with a path and a query of the operation's types. */
export interface GivenParams<Path, Query> extends Partial<Omit<ControllerParams, 'path' | 'query'>> {
  readonly path?: Path;
  readonly query?: Query;
}

// What the test of a controller imports: the whole service over a port of its own, in the process of the test, so that
// breakpoints and coverage of the controllers work. No cluster, no watching: what is loaded is what was there at the
// start.
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseSettings } from './base/config.ts';
import { describeFailure } from './base/failure.ts';
import { listen } from './base/listen.ts';
import { createLog, type LineSink } from './base/log.ts';
import type { Client, ClientOptions } from './client/types.ts';
import { createClient } from './client.ts';
import type { CallingApplication, ControllerParams } from './controller.ts';
import { groupNameOf, listControllers } from './groups/naming.ts';
import type { Caller, CallerTable } from './http/caller.ts';
import { createWorkerParts, type WorkerParts } from './worker/parts.ts';

export interface TestOptions {
  /** The folder of controllers; default: `./controllers`. */
  readonly controllers?: string;
  /** The folder of the tables of credentials and identity providers; default: an empty one that is gone afterwards. */
  readonly data?: string;
  /** Settings, as environment variables: `{ BODY_LIMIT: '64KiB' }`. The environment of the process is not read. */
  readonly env?: Readonly<Record<string, string>>;
  /** Events of level error that the log may have: `['request-failed']`. */
  readonly expectedErrors?: readonly string[];
}

/** A line of the service's log, all levels. `event` is a name of docs/OPERATING.md. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly [field: string]: unknown;
}

/** What `fetch` takes, and `json`: a body to be sent as JSON. (`fetch` itself says `text/plain` of a string.) */
export interface TestRequest extends RequestInit {
  readonly json?: unknown;
}

/** Who calls. */
export interface TestCaller {
  /** `fetch` from the service; the path may leave out `/api`. */
  fetch(path: string, init?: TestRequest): Promise<Response>;
  /** The typed client: `api.client<{ book: typeof BookController }>()`. */
  client<Groups>(options?: ClientOptions): Client<Groups>;
}

export interface TestCredential {
  /** What the operation sees as `params.application`. */
  readonly application: Partial<CallingApplication>;
  /** The groups that it may call by their URLs; default: `'*'`, all. */
  readonly groups?: readonly string[] | '*';
  /** Or the one group that serves all its requests, whatever stands in the URL. */
  readonly handler?: string;
  /** The verbs it may use; default: all. */
  readonly methods?: readonly string[];
}

/** A caller without a credential, and what belongs to the service itself. */
export interface TestApi extends TestCaller, AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The log so far. */
  readonly lines: readonly LogLine[];
  /** A caller with a credential that stands in no table. */
  as(credential: TestCredential): TestCaller;
  /** Events of level error that this test is about; without it, they make `close` fail. */
  expectErrors(...events: string[]): void;
  /**
   * Ends the service. `await using` and `after(() => api.close())` call it.
   *
   * @throws Error when the log has lines of level error that nobody expected
   */
  close(): Promise<void>;
}

/**
 * Serves a folder of controllers in this process, on a free port of loopback. A module is loaded once in a process, as
 * by any other import: what it keeps in variables, several services of one process share. The last of them that closes
 * disposes of their controllers.
 *
 * @throws Error when a setting makes no sense, when the folder cannot be read, and when a controller does not load,
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
  const handedOut = new Map<string, Caller>();
  const parts = await createWorkerParts({ settings, log, sink, withCallers: (table) => amongThem(handedOut, table) });
  const { server } = parts.app;
  open.add(parts);

  async function close(): Promise<void> {
    for (
      const end = performance.now() + settings.drainTimeout;
      parts.app.pendingWork() > 0 && performance.now() < end;
    )
      await sleep(5);
    parts.app.giveUpWork();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    if (open.delete(parts)) undisposed.push(parts);
    if (open.size === 0) await Promise.all(undisposed.splice(0).map(({ groups }) => groups.dispose()));
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
  // A test that forgets to close it ends all the same.
  server.unref();
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    lines,
    ...callerOf(url),
    as({ application, handler, groups = handler === undefined ? '*' : undefined, methods }) {
      const id = `test${String(handedOut.size + 1).padStart(8, '0')}`;
      const authorization = `Bearer ${id}`;
      handedOut.set(authorization, {
        kind: 'row',
        row: {
          application: { id, name: 'test', ...application },
          handler,
          groups:
            groups === undefined || groups === '*' ? groups : new Set(groups.map((name) => groupNameOf(name) ?? name)),
          methods: methods && new Set(methods.map((method) => method.toUpperCase())),
        },
      });
      return callerOf(url, authorization);
    },
    expectErrors: (...events) => void events.forEach((event) => void expected.add(event)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The service would take one that is not there for empty. */
function checkFolder(dir: string): void {
  try {
    listControllers(dir);
  } catch (error) {
    throw new Error(`Cannot read the controllers folder ${dir}: ${describeFailure(error)}`);
  }
}

/**
 * Services of this process that are open, and those that are closed whose controllers are not disposed of yet. All of
 * them share what modules hold, such as a pool of connections: so the last one that closes disposes of the controllers
 * of all.
 */
const open = new Set<WorkerParts>();
const undisposed: WorkerParts[] = [];

/** Folders of tables that tests did without. One that is never closed, or does not start, leaves none behind either. */
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

/** Credentials of the test come first; any other header is for the table. */
function amongThem(handedOut: ReadonlyMap<string, Caller>, table: CallerTable): CallerTable {
  return { ...table, identify: (authorization) => handedOut.get(authorization) ?? table.identify(authorization) };
}

function callerOf(url: string, authorization?: string): TestCaller {
  return {
    fetch(path, { json, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (json !== undefined) {
        init.body = JSON.stringify(json);
        headers.set('content-type', 'application/json');
      }
      if (authorization !== undefined && !headers.has('authorization')) headers.set('authorization', authorization);
      const below = path.replace(/^(?:\/?api(?![^/?]))?\/?/, '');
      return fetch(`${url}/api/${below}`, { ...init, headers });
    },
    client: (options) => createClient(url, { authorization, ...options }),
  };
}

function refuseErrors(lines: readonly LogLine[], expected: ReadonlySet<string>): void {
  const surprises = lines.filter(({ level, event }) => level === 'error' && !expected.has(event));
  if (surprises.length === 0) return;
  const told = surprises.map(
    ({ time, level, pid, event, stack, ...facts }) => `\n  ${event} ${JSON.stringify(facts)}${indented(stack)}`,
  );
  throw new Error(
    `The log has errors that the test does not expect (expectErrors names those it does):${told.join('')}`,
  );
}

function indented(stack: unknown): string {
  return typeof stack === 'string' ? `\n    ${stack.replaceAll('\n', '\n    ')}` : '';
}

/** What an echo of the params has; all else is there and not enumerable. */
const ECHOED = new Set(['page', 'method', 'verb', 'slugs', 'query', 'requestId', 'application']);

/**
 * The second argument of an operation, for calling one as a function: `new BookController().index({}, createParams())`.
 *
 * @param given what the operation reads; all else is as for `GET /api/test`
 */
export function createParams<
  Path extends object = Readonly<Record<string, string>>,
  Query extends object = Record<string, string | string[]>,
>(given: GivenParams<Path, Query> = {}): ControllerParams<{ path: Path; query: Query }> {
  const usual = {
    ...{
      page: 'test',
      method: 'index',
      verb: 'GET',
      slugs: [],
      query: {},
      requestId: 'test',
      path: {},
      lastEventId: undefined,
    },
    ...{ request: {}, signal: new AbortController().signal, bytes: new Uint8Array(), address: '127.0.0.1' },
    ...{ log: { info() {}, warn() {}, error() {} }, waitUntil() {} },
  };
  const fields = Object.entries({ ...usual, ...given }).map(([name, value]) => [
    name,
    { value, enumerable: ECHOED.has(name) },
  ]);
  return Object.defineProperties({}, Object.fromEntries(fields)) as ControllerParams<{ path: Path; query: Query }>;
}

export interface GivenParams<Path, Query> extends Partial<Omit<ControllerParams, 'path' | 'query'>> {
  readonly path?: Path;
  readonly query?: Query;
}

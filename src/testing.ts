// The entry `gatefold/testing`: runs the complete service on a free port in the process of a test, so that breakpoints
// and coverage work in the controllers. No worker is started and no file is watched: the controllers are loaded once.
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
import type { ServiceUser } from './controller/service.ts';
import type { CallingApplication } from './controller.ts';
import { logNotLoadable } from './groups/group-load.ts';
import { listControllers } from './groups/naming.ts';
import type { LoadedService } from './groups/service-file.ts';
import type { Caller, CallerTable } from './http/caller.ts';
import { createWorkerParts, type WorkerParts } from './worker/parts.ts';

export { type CreatedParams, createParams, type GivenParams } from './controller/create-params.ts';

export interface TestOptions {
  /** The folder of controllers; default: `./controllers`. */
  readonly controllers?: string;
  /**
   * The folder with the tables of credentials and identity providers. By default, the test gets an empty folder, which
   * is removed afterwards.
   */
  readonly data?: string;
  /** Settings, as environment variables: `{ BODY_LIMIT: '64KiB' }`. The environment of the process is not read. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The user of every request for which `as` sets no other caller. `authenticate` of the service file is then not
   * called. By default, `authenticate` finds the user.
   */
  readonly user?: ServiceUser;
  /**
   * The log events of level error that the test expects: `['request-failed']`. Any other event of that level makes
   * `close` fail.
   */
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
   * Sends a request to the service by the global `fetch`. The path need not begin with `/api`, or with the `BASE_PATH`
   * of the test.
   */
  fetch(path: string, init?: TestRequest): Promise<Response>;
  /** Creates a typed client: `api.client<{ book: typeof BookController }>()`. */
  client<Groups>(options?: ClientOptions): Client<Groups>;
}

/** A credential for a test, with the rights that a row of the credentials table would give. */
export interface TestCredential {
  /** Fields of `params.application`; default: a generated `id`, and the name `test`. */
  readonly application: Partial<CallingApplication>;
  /** The groups that the credential may call by their URLs; default: `'*'`, all. */
  readonly groups?: readonly string[] | '*';
  /** The one group that serves all requests of the credential, whatever group their URL names. */
  readonly handler?: string;
  /** The HTTP methods that the credential may use; default: all. */
  readonly methods?: readonly string[];
  /** The user who calls through the application; default: the same user as for a request without a credential. */
  readonly user?: ServiceUser | null;
}

/** A running service. Its own `fetch` and `client` send no credential. */
export interface TestApi extends TestCaller, AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The lines of the log so far, of all levels. */
  readonly lines: readonly LogLine[];
  /**
   * Returns another caller, who is one of:
   * - a user: an object with an `id`
   * - a credential, which needs no row in a table
   * - nobody: `null`
   *
   * `authenticate` of the service file is not called for a user or for `null`.
   */
  as(caller: ServiceUser | TestCredential | null): TestCaller;
  /** Adds log events of level error that the test expects. Any other event of that level makes `close` fail. */
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
  user: defaultUser,
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
  const testUsers: TestUsers = { byToken: new Map(), user: defaultUser };
  let findsUsers = false;
  const parts = await createWorkerParts({
    settings,
    log,
    sink,
    withCallers: (table) => addTestCallers(testCallers, table),
    withUsers(service) {
      findsUsers = service.authenticate !== undefined;
      return addTestUsers(testUsers, service);
    },
  });
  const { server } = parts.app;
  openServices.add(parts);

  /** @throws Error when no service file looks for users */
  function checkUser(user: ServiceUser): void {
    if (!findsUsers)
      throw new Error(`Cannot call as the user ${user.id}: no service file in ${controllers} has authenticate`);
  }

  /** @returns the value of the header that stands for the user */
  function addUser(user: ServiceUser | null): string {
    if (user !== null) checkUser(user);
    const token = String(testUsers.byToken.size + 1);
    testUsers.byToken.set(token, user);
    return token;
  }

  async function close(): Promise<void> {
    for (
      const deadline = performance.now() + settings.drainTimeout;
      parts.app.pendingWork() > 0 && performance.now() < deadline;
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
    for (const load of await parts.groups.loadAll({ skip: new Map(), onLoading: () => {} })) {
      if (!load.ok) logNotLoadable(log, load);
    }
    refuseErrors(lines, expected);
    if (defaultUser !== undefined) checkUser(defaultUser);
    await listen(server, { port: 0, host: '127.0.0.1' });
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
  // The process of a test ends even when the test has not closed the service.
  server.unref();
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const target = { url, basePath: settings.basePath };
  return {
    url,
    port,
    lines,
    ...callerOf(target),
    as(caller) {
      if (caller === null || 'id' in caller) return callerOf(target, { user: addUser(caller) });
      const { application, handler, groups = handler === undefined ? '*' : undefined, methods, user } = caller;
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
      return callerOf(target, { authorization, user: user === undefined ? undefined : addUser(user) });
    },
    expectErrors: (...events) => void events.forEach((event) => void expected.add(event)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Refuses a missing folder. The service treats a missing folder as an empty one, but in a test it is a mistake. */
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
 * Closed services whose controllers are not yet disposed of. All services of the process share the variables of the
 * modules, such as a pool of connections. So the controllers are disposed of when the last service closes.
 */
const undisposedServices: WorkerParts[] = [];

/**
 * The data folders that this module has created. When the process exits, the folders of services that were not closed
 * are removed.
 */
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

/** Returns a table that looks for a credential first among those of the test, and then in the credentials table. */
function addTestCallers(testCallers: ReadonlyMap<string, Caller>, table: CallerTable): CallerTable {
  return { ...table, identify: (authorization) => testCallers.get(authorization) ?? table.identify(authorization) };
}

/** The users of a test. A header of each request names its user. */
interface TestUsers {
  readonly byToken: Map<string, ServiceUser | null>;
  /** The user of a request without that header. */
  readonly user: ServiceUser | undefined;
}

const USER_HEADER = 'x-gatefold-test-user';

/** Returns a service file whose `authenticate` is called only when the test sets no user for a request. */
function addTestUsers({ byToken, user }: TestUsers, service: LoadedService): LoadedService {
  const { authenticate } = service;
  if (authenticate === undefined) return service;
  return {
    ...service,
    authenticate(params) {
      const token = params.request.headers[USER_HEADER];
      const testUser = typeof token === 'string' ? byToken.get(token) : user;
      return testUser === undefined ? authenticate(params) : testUser;
    },
  };
}

function callerOf(
  { url, basePath }: { readonly url: string; readonly basePath: string },
  { authorization, user }: { readonly authorization?: string; readonly user?: string | undefined } = {},
): TestCaller {
  const userHeader = user === undefined ? {} : { [USER_HEADER]: user };
  return {
    fetch(path, { json, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (json !== undefined) {
        init.body = JSON.stringify(json);
        headers.set('content-type', 'application/json');
      }
      if (authorization !== undefined && !headers.has('authorization')) headers.set('authorization', authorization);
      if (user !== undefined) headers.set(USER_HEADER, user);
      const absolutePath = path.startsWith('/') ? path : `/${path}`;
      const hasBase = absolutePath.startsWith(basePath) && /^[/?]|^$/.test(absolutePath.slice(basePath.length));
      return fetch(url + (hasBase ? absolutePath : basePath + absolutePath), { ...init, headers });
    },
    client: (options) =>
      createClient(url + (basePath || '/.'), {
        authorization,
        ...options,
        headers: { ...userHeader, ...options?.headers },
      }),
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

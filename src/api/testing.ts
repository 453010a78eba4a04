// The entry `gatefold/testing`: runs the complete service on a free port in the process of a test, so that breakpoints
// and coverage work in the controllers. No worker is started and no file is watched: the controllers are loaded once.
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { provideChannels } from '../base/channel-hub.ts';
import { parseSettings } from '../base/config.ts';
import { explainFailure } from '../base/failure.ts';
import { groupNameOf } from '../base/group-name.ts';
import { listen } from '../base/listen.ts';
import { createLog, type LineSink } from '../base/log.ts';
import { createTaskLog } from '../base/operation-log.ts';
import type { Caller } from '../callers/access/key-check.ts';
import type { LoadedService } from '../groups/service-file.ts';
import { logNotLoadable } from '../live/load/group-load.ts';
import { listControllers } from '../live/load/naming.ts';
import { createWorkerParts, type WorkerParts } from '../live/worker/parts.ts';
import type { Client, ClientOptions } from './client/types.ts';
import { createClient } from './client.ts';
import type { ServiceUser } from './controller/service.ts';
import type { CallingApplication } from './controller.ts';

export { type CreatedParams, createParams, type GivenParams } from './controller/create-params.ts';

export interface TestOptions {
  /** The folder of controllers; default: `./controllers`. */
  readonly controllers?: string;
  /** The folder with the tables of credentials and identity providers; default: an empty folder, removed by `close`. */
  readonly data?: string;
  /** Settings, as environment variables: `{ BODY_LIMIT: '64KiB' }`. The environment of the process is not read. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The user of every request, unless `as` sets another user or `null`. With this option, `authenticate` of the service
   * file is not called. Without it, `authenticate` finds the user.
   */
  readonly user?: TestUser;
  /** The log events of level error that the test expects: `['request-failed']`. Any other makes `close` fail. */
  readonly expectedErrors?: readonly string[];
}

/** A line of the service's log. docs/OPERATING.md lists the events. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface TestRequest extends RequestInit {
  /** A value to send as a JSON body. `headers` may name another `Content-Type` than `application/json`. */
  readonly json?: unknown;
}

export interface TestCaller {
  /** Sends a request to the service by the global `fetch`. `/book/1` and `/api/book/1` are the same path. */
  fetch(path: string, init?: TestRequest): Promise<Response>;
  /** Creates a typed client: `api.client<{ book: typeof BookController }>()`. */
  client<Groups>(options?: ClientOptions): Client<Groups>;
}

/** A user for a test, with the fields that `authenticate` gives one. */
export type TestUser = ServiceUser | (ServiceUser & Readonly<Record<string, unknown>>);

/** A credential for a test, with the rights that a row of the credentials table would give. */
export interface TestCredential {
  /** Fields of `params.application`; default: a generated `id`, and the name `test`. */
  readonly application: Partial<CallingApplication>;
  /** The groups that the credential may call by their URLs. The default is `'*'` (all), or none with `handler`. */
  readonly groups?: readonly string[] | '*';
  /** The one group that serves all requests of the credential, whatever group a URL names. */
  readonly handler?: string;
  /** The HTTP methods that the credential may use; default: all. */
  readonly methods?: readonly string[];
  /** The user who calls through it; `null` for none; default: that of `startTest`, else whom `authenticate` finds. */
  readonly user?: TestUser | null;
}

/** A running service. Its own `fetch` and `client` send no credential. */
export interface TestApi extends TestCaller, AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The lines of the log so far, of all levels. */
  readonly lines: readonly LogLine[];
  /**
   * Returns another caller: a user (an object with an `id`), a credential, which needs no row in a table, or nobody
   * (`null`). `authenticate` of the service file is not called for a user, for `null` or for a credential with `user`.
   */
  as(caller: TestUser | TestCredential | null): TestCaller;
  /**
   * Runs a task of the service file once. Nothing else runs a task, or `start`, in a test. `close` aborts its signal.
   *
   * @returns what the task returns
   * @throws Error when the service file has no such task, and what the task throws
   */
  run(task: string, options?: { readonly dueAt?: Date; readonly signal?: AbortSignal }): Promise<unknown>;
  /** Adds log events to `expectedErrors`. */
  expectErrors(...events: string[]): void;
  /**
   * Ends the service. A test calls it by `await using` or by `after(() => api.close())`.
   *
   * @throws Error when the log has a line of level error that the test does not expect
   */
  close(): Promise<void>;
}

/**
 * Serves a folder of controllers in this process, on a free port of loopback.
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
  provideChannels(async () => (await import('../live/channels/hub.ts')).createLocalChannels());
  const expectedEvents = new Set(expectedErrors);
  const lines: LogLine[] = [];
  const dataFolder = data ?? createDataFolder();
  const variables = { CONTROLLERS_DIR: controllers, DATA_DIR: dataFolder, LOG_LEVEL: 'debug', ...env };
  const settings = parseSettings(variables, [], { cores: 1, cwd: process.cwd() });
  const { controllersDir } = settings;
  // The service treats a missing folder as an empty one. In a test, it is a mistake.
  explainFailure(`Cannot read the controllers folder ${controllersDir}`, () => listControllers(controllersDir));
  const write = (line: string) => void lines.push(JSON.parse(line));
  const sink: LineSink = { write };
  const log = createLog({ level: settings.logLevel, sink });
  const testCallers = new Map<string, Caller>();
  const testUsers: TestUsers = { byToken: new Map(), defaultUser };
  let hasAuthenticate = false;
  const parts = await createWorkerParts({
    settings,
    log,
    sink,
    // The credentials of the test come before those of the table.
    withCallers: (table) => ({ ...table, identify: (key) => testCallers.get(key) ?? table.identify(key) }),
    withUsers(service) {
      hasAuthenticate = service.authenticate !== undefined;
      return addTestUsers(testUsers, service);
    },
  });
  const { server } = parts.app;
  /** Aborted by `close`. */
  const ending = new AbortController();
  openServices.add(parts);

  function requireAuthenticate(user: ServiceUser): void {
    if (!hasAuthenticate)
      throw new Error(`Cannot call as the user ${user.id}: no service file in ${controllers} has authenticate`);
  }

  /** @returns the token of the user, for the header USER_HEADER */
  function addUser(user: ServiceUser | null): string {
    if (user !== null) requireAuthenticate(user);
    const token = String(testUsers.byToken.size + 1);
    testUsers.byToken.set(token, user);
    return token;
  }

  async function close(): Promise<void> {
    ending.abort();
    const deadline = performance.now() + settings.drainTimeout;
    while (parts.app.pendingWork() > 0 && performance.now() < deadline) await sleep(5);
    parts.app.giveUpWork();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    if (openServices.delete(parts)) undisposedServices.push(parts);
    if (openServices.size === 0) await Promise.all(undisposedServices.splice(0).map(({ groups }) => groups.dispose()));
    parts.close();
    if (data === undefined) removeDataFolder(dataFolder);
    checkErrors(lines, expectedEvents);
  }

  try {
    for (const load of await parts.groups.loadAll({ skip: new Map(), onLoading: () => {} }))
      if (!load.ok) logNotLoadable(log, load);
    checkErrors(lines, expectedEvents);
    if (defaultUser !== undefined) requireAuthenticate(defaultUser);
    await listen(server, { port: 0, host: '127.0.0.1' });
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
  // The process of a test ends even when the test has not closed the service.
  server.unref();
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const address = { url, basePath: settings.basePath };
  return {
    url,
    port,
    lines,
    ...createCaller(address),
    as(caller) {
      if (caller === null || 'id' in caller) return createCaller(address, { userToken: addUser(caller) });
      const { application, handler, groups = handler === undefined ? '*' : undefined, methods, user } = caller;
      // Without this check, a user whose id is missing would be a credential with all rights.
      if (!application) throw new TypeError('A caller needs the id of a user, or an application');
      const id = `test${String(testCallers.size + 1).padStart(8, '0')}`;
      const authorization = `Bearer ${id}`;
      const row = {
        application: { id, name: 'test', ...application },
        handler,
        groups: groups && groups !== '*' ? new Set(groups.map((name) => groupNameOf(name) ?? name)) : groups,
        methods: methods && new Set(methods.map((method) => method.toUpperCase())),
      };
      testCallers.set(authorization, { kind: 'row', row });
      return createCaller(address, { authorization, userToken: user === undefined ? undefined : addUser(user) });
    },
    async run(name, { dueAt = new Date(), signal = ending.signal } = {}) {
      const tasks = parts.service()?.tasks;
      const task = tasks?.get(name);
      if (task === undefined)
        throw new Error(`No task ${name}: the service file has ${[...(tasks?.keys() ?? [])].join(', ') || 'no tasks'}`);
      return task.run({ signal: AbortSignal.any([signal, ending.signal]), log: createTaskLog(log, name), dueAt });
    },
    expectErrors(...events) {
      for (const event of events) expectedEvents.add(event);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

const openServices = new Set<WorkerParts>();
/**
 * Closed services whose controllers are not yet disposed of. Node loads a module once, so all services of this process
 * share a controller's variables, such as a pool of connections. So the last `close` disposes of all controllers.
 */
const undisposedServices: WorkerParts[] = [];

/** The data folders that this module has created and not yet removed. A service that was not closed leaves one. */
const dataFolders = new Set<string>();
process.once('exit', () => dataFolders.forEach(removeDataFolder));

function createDataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-test-'));
  dataFolders.add(folder);
  return folder;
}

function removeDataFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  dataFolders.delete(folder);
}

interface TestUsers {
  /** Key: a token, which one caller of the test sends. Value: its user, or `null` for nobody. */
  readonly byToken: Map<string, ServiceUser | null>;
  /** The user of a request without a token; undefined when `authenticate` finds the user. */
  readonly defaultUser: ServiceUser | undefined;
}

/** The request header with the token of a user. */
const USER_HEADER = 'x-gatefold-test-user';

/** Returns a service file that calls the author's `authenticate` only when the test sets no user for a request. */
function addTestUsers({ byToken, defaultUser }: TestUsers, service: LoadedService): LoadedService {
  const { authenticate } = service;
  if (authenticate === undefined) return service;
  return {
    ...service,
    authenticate(params) {
      const token = params.request.headers[USER_HEADER];
      const testUser = typeof token === 'string' ? byToken.get(token) : defaultUser;
      return testUser === undefined ? authenticate(params) : testUser;
    },
  };
}

function createCaller(
  { url, basePath }: { readonly url: string; readonly basePath: string },
  { authorization, userToken }: { readonly authorization?: string; readonly userToken?: string | undefined } = {},
): TestCaller {
  return {
    fetch(path, { json, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (json !== undefined) {
        init.body = JSON.stringify(json);
        if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      }
      if (authorization !== undefined && !headers.has('authorization')) headers.set('authorization', authorization);
      if (userToken !== undefined) headers.set(USER_HEADER, userToken);
      const absolutePath = path.startsWith('/') ? path : `/${path}`;
      // `/apiary` does not have the base path `/api`.
      const hasBase = absolutePath.startsWith(basePath) && /^[/?]|^$/.test(absolutePath.slice(basePath.length));
      return fetch(url + (hasBase ? absolutePath : basePath + absolutePath), { ...init, headers });
    },
    client: (options) =>
      createClient(url + (basePath || '/.'), {
        authorization,
        ...options,
        // The option `headers` would keep the client from following a redirect.
        fetch(input, init) {
          const headers = new Headers(init?.headers);
          if (userToken !== undefined) headers.set(USER_HEADER, userToken);
          return (options?.fetch ?? fetch)(input, { ...init, headers });
        },
      }),
  };
}

/** @throws Error when the log has a line of level error that the test does not expect */
function checkErrors(lines: readonly LogLine[], expectedEvents: ReadonlySet<string>): void {
  const unexpectedLines = lines.filter(({ level, event }) => level === 'error' && !expectedEvents.has(event));
  if (unexpectedLines.length === 0) return;
  const descriptions = unexpectedLines.map(({ time, level, pid, event, stack, ...facts }) => {
    const shownStack = stack === undefined ? '' : `\n${stack}`.replaceAll('\n', '\n    ');
    return `\n  ${event} ${JSON.stringify(facts)}${shownStack}`;
  });
  throw new Error(
    `The log has errors that the test does not expect (call expectErrors with those it does):${descriptions.join('')}`,
  );
}

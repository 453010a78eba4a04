// Runs a supervisor without processes. The test controls fake workers, a fake watch of the folder, and the clock. Only
// the folder on disk is real.
import { mock, type TestContext } from 'node:test';
import type { FolderWatch } from '../../src/live/folder/watch.ts';
import type { FileSelection, GroupLoad } from '../../src/live/load/group-load.ts';
import { listGroups } from '../../src/live/supervisor/group-table.ts';
import { Supervisor, type SupervisorOptions } from '../../src/live/supervisor/supervisor.ts';
import type {
  ListenOutcome,
  LoadOutcome,
  WorkerEvents,
  WorkerState,
} from '../../src/live/supervisor/workers/worker-events.ts';
import type { WorkerHandle } from '../../src/live/supervisor/workers/worker-handle.ts';
import type { ToWorker } from '../../src/live/worker/messages.ts';
import type { SecureState } from '../../src/operate/https/serve/secure-state.ts';
import { controller, createFolder } from './folder.ts';
import { createMemoryLog } from './memory-log.ts';

export interface FakeWorker extends WorkerHandle {
  state: WorkerState;
  generation: number;
  isFaulty: boolean;
  stepAge: number;
  readonly sent: ToWorker[];
}

/** The outcome of a load. By default each file loads. */
export type Load = (selection: FileSelection, worker: FakeWorker) => LoadOutcome | Promise<LoadOutcome>;

export function loaded(selection: FileSelection, broken: Readonly<Record<string, string>> = {}): LoadOutcome {
  const groups = selection.files.map((file): GroupLoad => {
    const error = broken[file] ?? selection.skip.get(file);
    return {
      group: file.replace(/Controller\.\w+$/, ''),
      file,
      ok: error === undefined,
      ...(error === undefined ? {} : { error }),
    };
  });
  return { kind: 'loaded', groups, files: [] };
}

export interface FakeServiceOptions {
  readonly workers?: number;
  readonly groups?: readonly string[];
  /** An existing folder. Default: a new one with `groups`. */
  readonly dir?: string;
  readonly createWatch?: (onChange: (cause: string) => void) => FolderWatch;
  readonly secureState?: () => SecureState;
  readonly makeTypes?: () => Promise<boolean>;
  readonly store?: SupervisorOptions['store'];
}

export function createFakeService(test: TestContext, options: FakeServiceOptions = {}) {
  const { workers = 2, groups = ['A'], createWatch, secureState, makeTypes, store } = options;
  mock.timers.reset();
  mock.timers.enable({ apis: ['setTimeout'] });
  test.after(() => mock.timers.reset());
  const files = Object.fromEntries(groups.map((name) => [`${name}Controller.js`, controller(name)]));
  const dir = options.dir ?? createFolder(test, files);
  const { log, lines } = createMemoryLog();
  /** The orders to workers and the calls of the watch, in their order. */
  const story: string[] = [];
  const alive = new Set<FakeWorker>();
  const all: FakeWorker[] = [];
  const made = {
    load: ((selection) => loaded(selection)) as Load,
    /** The outcome of the order to listen. */
    listen: (): ListenOutcome | Promise<ListenOutcome> => 'listening',
    importGroup: async (_worker: FakeWorker, group: string): Promise<GroupLoad | undefined> => {
      return { group, file: `${group}Controller.js`, ok: true };
    },
    /** Called with each message to a worker. */
    onSent: (_worker: FakeWorker, _kind: ToWorker['kind']): void => {},
    /** Thrown instead of a new process. */
    forkError: undefined as Error | undefined,
    /** The workers that are still there after the end of the service. */
    survivors: [] as FakeWorker[],
    agrees: true,
    /** The file that has changed since the load of the newest generation. */
    change: undefined as string | undefined,
    /** Whether the service has had a service file. */
    isMarked: false,
    isFolderThere: true,
    /** Whether the story has `beginLoad` and `endLoad` of the watch. */
    isWatchTold: false,
    /** Thrown instead of a snapshot. */
    snapshotError: undefined as Error | undefined,
    /** Entries of a snapshot, besides the path of the folder. */
    seen: {} as Record<string, string>,
    time: 0,
  };
  let events: WorkerEvents | undefined;
  let served: readonly GroupLoad[] = [];
  let change: ((what: string) => void) | undefined;

  function fork(): FakeWorker {
    if (made.forkError !== undefined) throw made.forkError;
    const worker: FakeWorker = {
      pid: all.length + 1,
      state: 'standby',
      generation: 0,
      isFaulty: false,
      isInspected: false,
      loadingFile: undefined,
      stepAge: 0,
      sent: [],
      async load(generation, selection) {
        Object.assign(worker, { generation, state: 'loading' });
        const outcome = await made.load(selection, worker);
        if (outcome.kind === 'ended') gone(worker);
        else if (worker.state === 'loading') worker.state = 'loaded';
        return outcome;
      },
      async listen() {
        const outcome = await made.listen();
        if (outcome === 'listening') worker.state = 'serving';
        return outcome;
      },
      inspect: async () => undefined,
      importGroup: (group) => made.importGroup(worker, group),
      drain: () => leave('drain'),
      quit: () => leave('quit'),
      kill: () => leave('kill'),
      send(message) {
        worker.sent.push(message);
        made.onSent(worker, message.kind);
      },
      ping() {},
    };
    const leave = (how: string) => {
      if (worker.state === 'draining' || worker.state === 'gone') return;
      story.push(`${how} ${worker.pid}`);
      worker.state = 'draining';
    };
    all.push(worker);
    alive.add(worker);
    return worker;
  }

  function gone(worker: FakeWorker): void {
    if (worker.state === 'gone') return;
    worker.state = 'gone';
    alive.delete(worker);
    events?.gone(worker);
  }

  const note = (name: string) => (value: unknown) => void story.push(`${name} ${JSON.stringify(value)}`);
  const watch: FolderWatch = {
    takeSnapshot() {
      if (made.snapshotError !== undefined) throw made.snapshotError;
      return made.isFolderThere ? new Map([['folder', dir], ...Object.entries(made.seen)]) : undefined;
    },
    beginLoad: () => void (made.isWatchTold && story.push('beginLoad')),
    endLoad: () => void (made.isWatchTold && story.push('endLoad')),
    addGroup: (load) => note('watch')(load.file),
    addFiles: note('watch'),
    hasSameFiles: () => made.agrees,
    changeSinceLoad: () => made.change,
    start() {},
    stop() {},
  };
  const supervisor = new Supervisor({
    workerCount: workers,
    dir,
    port: {
      number: 1,
      socket: { close() {} },
      describeError: (code) => `cannot listen: ${code}`,
      close: () => story.push('close port'),
    },
    drainTimeout: 1000,
    acceptFor: 0,
    mark: { isSet: () => made.isMarked, update: () => {}, clear: () => {} },
    ...{ secureState, makeTypes, store, log },
    createPool(handlers) {
      events = handlers;
      return {
        take: fork,
        fork,
        all: () => [...alive],
        serving: () => [...alive].filter(({ state }) => state === 'serving'),
        keepReserve() {},
        close: async () => made.survivors,
      };
    },
    createWatch(onChange) {
      change = onChange;
      return createWatch?.(onChange) ?? watch;
    },
    onGroups(loads) {
      served = [...loads];
    },
    now: () => made.time,
  });

  return {
    supervisor,
    dir,
    made,
    lines,
    story,
    workers: all,
    serving: () => [...alive].filter(({ state }) => state === 'serving'),
    /** The groups of the generation that serves. */
    groups: () => served,
    events: () => events as WorkerEvents,
    change: (what: string) => change?.(what),
    files: () => [...listGroups(dir).values()],
    /** Ends a worker without an order. */
    die(worker: FakeWorker, importing: readonly string[] = []) {
      const lastState = worker.state;
      worker.state = 'gone';
      alive.delete(worker);
      events?.died(worker, { reason: 'it was ended', lastState, importing });
      events?.gone(worker);
    },
    /** Resolves when everything has happened that waits for no timer. */
    async settled() {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    },
    async pass(milliseconds: number) {
      made.time += milliseconds;
      mock.timers.tick(milliseconds);
      await this.settled();
    },
    logged: (event: string) => lines.filter((line) => line.event === event),
  };
}

// A model test of the supervisor: commands by chance (edits, deaths, databases that are down, requests for new files)
// run against the supervisor with fake workers and a fake clock. After each command, what serves is compared with a
// small model of the folder. The seed is fixed. On a failure, the message has the seed and the shortest commands;
// SEED=7 takes another seed, and RUNS=2000 more runs.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { SERVICE } from '../../../src/base/group-name.ts';
import type { FolderWatch } from '../../../src/live/folder/watch.ts';
import type { GroupLoad } from '../../../src/live/load/group-load.ts';
import type { LoadOutcome } from '../../../src/live/supervisor/workers/worker-events.ts';
import { createFakeService, type FakeWorker, type Load } from '../../support/fake-workers.ts';
import { createFolder, write } from '../../support/folder.ts';

type Kind = 'good' | 'slow' | 'broken' | 'deadly' | 'hanging';
/** At the start, A and B load, the database of C is down, and D is not there yet. */
const NAMES = ['A', 'B', 'C', 'D'] as const;
const WORKERS = 2;
/** Milliseconds of the longest pause: thirty times an import that hangs. */
const LONGEST_PAUSE = 300_000;
/** A service without a change starts fewer workers than this in twice the longest pause, because its back-off grows. */
const MAX_FORKS = 120;
/** Number of loads after which a worker hangs, so that retries without a pause end in a failure, and not in a loop. */
const MAX_LOADS = 1000;
/** Milliseconds after which a worker gives up an import. */
const LOAD_TIMEOUT = 10_000;
/** Milliseconds of the import of a slow file, which loads in the end. */
const SLOW_LOAD = 500;

const fileOf = (name: string) => (name === SERVICE ? 'service.js' : `${name}Controller.js`);

type FakeService = ReturnType<typeof createFakeService>;

/** The folder, the databases of its groups, and what each worker has read. */
class World {
  /** By group. A version is the content of the file. */
  readonly files = new Map<string, { readonly version: string; readonly kind: Kind }>();
  /** The groups whose database is down: they do not load, although their files are good. */
  readonly down = new Set<string>();
  /** The groups that fail in the next worker that loads them, and in no other. */
  readonly locked = new Set<string>();
  /** By worker and group: the versions that the worker has imported, and serves. */
  readonly code = new Map<FakeWorker, Map<string, string>>();
  /** The workers whose service file does not load. They refuse every request. */
  readonly #closed = new Set<FakeWorker>();
  baseline = new Map<string, string>();
  /** Rules that were broken inside a call of the supervisor, where an exception would be lost. */
  readonly mistakes: string[] = [];
  isStopped = false;
  readonly dir: string;
  service!: FakeService;
  #change = (_cause: string) => {};
  #version = 0;
  #loads = 0;

  constructor(dir: string) {
    this.dir = dir;
    for (const name of [SERVICE, 'A', 'B', 'C']) this.put(name, 'good');
    this.down.add('C');
  }

  put(name: string, kind: Kind): void {
    const version = `${++this.#version}`;
    this.files.set(name, { version, kind });
    write(this.dir, fileOf(name), `// ${version.padStart(this.#version, '-')} ${kind}\n`);
  }

  remove(name: string): void {
    this.files.delete(name);
    rmSync(join(this.dir, fileOf(name)), { force: true });
  }

  loads(name: string): boolean {
    const kind = this.files.get(name)?.kind;
    return (kind === 'good' || kind === 'slow') && !this.down.has(name);
  }

  /** Whether a file that the newest generation has read, or has tried to read, is another one now. */
  changed(): string | undefined {
    for (const [name, version] of this.baseline) if ((this.files.get(name)?.version ?? '') !== version) return name;
    return undefined;
  }

  /** Does what a poll of the folder does. */
  poll(): void {
    const cause = this.changed();
    if (cause !== undefined && !this.isStopped) this.#change(cause);
  }

  readonly load: Load = async (selection, worker) => {
    if (++this.#loads > MAX_LOADS) return new Promise(() => {});
    const startedAt = this.service.made.time;
    Object.defineProperty(worker, 'stepAge', { get: () => this.service.made.time - startedAt });
    const code = new Map<string, string>();
    const groups: GroupLoad[] = [];
    const names = NAMES.filter((name) => selection.files.includes(fileOf(name)));
    if (!this.files.has(SERVICE) && selection.needsService)
      groups.push({ group: SERVICE, file: fileOf(SERVICE), ok: false, error: 'it is gone' });
    for (const name of [...(this.files.has(SERVICE) ? [SERVICE] : []), ...names]) {
      const file = this.files.get(name);
      if (file === undefined) continue;
      const skipped = selection.skip.get(fileOf(name));
      if (skipped === undefined && file.kind === 'deadly') return this.#exit(worker, fileOf(name));
      const hung = skipped === undefined && file.kind === 'hanging';
      const mayLoad = skipped === undefined && this.loads(name);
      if (hung) await new Promise((resolve) => setTimeout(resolve, LOAD_TIMEOUT));
      if (mayLoad && file.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_LOAD));
      const ok = mayLoad && !this.locked.delete(name);
      if (skipped === undefined) code.set(name, file.version);
      groups.push({ group: name, file: fileOf(name), ok, hung, ...(ok ? {} : { error: skipped ?? 'not loadable' }) });
    }
    if (groups.some(({ group, ok }) => group === SERVICE && !ok)) this.#closed.add(worker);
    this.code.set(worker, new Map([...code].filter(([name]) => groups.some(({ group, ok }) => ok && group === name))));
    return { kind: 'loaded', groups, files: Array.from(code, ([path, fingerprint]) => ({ path, fingerprint })) };
  };

  #exit(worker: FakeWorker, file: string): LoadOutcome {
    const reason = 'it ended';
    this.service.die(worker);
    return { kind: 'ended', file, reason };
  }

  readonly importGroup = async (worker: FakeWorker, group: string): Promise<GroupLoad | undefined> => {
    const file = this.files.get(group);
    if (file === undefined) return undefined;
    if (file.kind === 'deadly') {
      this.service.die(worker, [fileOf(group)]);
      return undefined;
    }
    const ok = this.loads(group);
    const load: GroupLoad = { group, file: fileOf(group), ok };
    if (ok) this.code.get(worker)?.set(group, file.version);
    this.service.events().importReported(worker, load, [{ path: group, fingerprint: file.version }]);
    return load;
  };

  /** The moment at which a new group begins to answer: its rules must be those of the folder. */
  readonly onSent = (worker: FakeWorker, kind: string): void => {
    if (kind !== 'admitted' || this.#closed.has(worker)) return;
    const rules = this.code.get(worker)?.get(SERVICE);
    if (rules !== this.files.get(SERVICE)?.version) this.mistakes.push('a new group has older rules than the folder');
    if (this.changed() !== undefined) this.mistakes.push('a new group serves beside files that have changed');
    if (this.service.supervisor.status().rejected !== undefined)
      this.mistakes.push('a new group serves after a rejection');
  };

  createWatch(onChange: (cause: string) => void): FolderWatch {
    this.#change = onChange;
    const versionOf = (name: string) => this.files.get(name)?.version ?? '';
    return {
      takeSnapshot: () =>
        new Map([['folder', this.dir], ...Array.from(this.files, ([name, { version }]) => [name, version] as const)]),
      beginLoad: (snapshot) => {
        this.baseline = new Map([...snapshot].filter(([name]) => name !== 'folder'));
      },
      endLoad: ({ snapshot, groups, files }) => {
        const names = [SERVICE, ...groups.map(({ group }) => group)];
        this.baseline = new Map(names.map((name) => [name, snapshot.get(name) ?? '']));
        // A file that was read in another state than the snapshot has is no state of the folder.
        for (const { path, fingerprint } of files)
          if (this.baseline.get(path) !== fingerprint) this.baseline.set(path, 'mixed');
      },
      addGroup: ({ group, ok }) => {
        if (ok || !this.baseline.has(group)) this.baseline.set(group, versionOf(group));
      },
      addFiles: () => {},
      hasSameFiles: (files) => files.every(({ path, fingerprint }) => this.baseline.get(path) === fingerprint),
      changeSinceLoad: () => this.changed(),
      start: () => {},
      stop: () => {},
    };
  }
}

class Run {
  readonly world: World;
  readonly service: FakeService;
  /** The groups that served at the last check, with their versions. */
  #served = new Map<string, string>();
  /** Whether no worker lived at some moment since the last check. Then a generation may serve fewer groups. */
  #wasDown = false;
  #generation = 1;
  #wasRejected = false;

  constructor(world: World, service: FakeService) {
    this.world = world;
    this.service = service;
  }

  async settle(): Promise<void> {
    await this.service.settled();
    this.world.poll();
    await this.service.settled();
    this.check();
  }

  async pass(milliseconds: number): Promise<void> {
    // A timer that is set while another one fires counts from the end of a slice.
    for (let rest = milliseconds; rest > 0; rest -= 1000) {
      if (this.service.serving().length === 0) this.#wasDown = true;
      await this.service.pass(Math.min(rest, 1000));
      this.check();
      this.world.poll();
      await this.service.settled();
      this.check();
      // Nothing happens in most seconds of a long wait.
      if (rest > 20_000 && this.world.changed() === undefined) {
        const skipped = Math.min(rest - 1000, 14_000);
        await this.service.pass(skipped);
        rest -= skipped;
      }
    }
    await this.settle();
  }

  die(index: number): void {
    const serving = this.service.serving();
    const worker = serving[index % Math.max(1, serving.length)];
    if (worker !== undefined) this.service.die(worker);
    if (this.service.serving().length === 0) this.#wasDown = true;
  }

  request(name: string): void {
    const worker = this.service.serving().find((each) => this.world.code.get(each)?.has(name) === false);
    const isKnown = this.table().has(name);
    if (worker !== undefined && this.world.files.has(name) && !isKnown)
      this.service.events().received(worker, { kind: 'requested', group: name });
  }

  table(): ReadonlyMap<string, boolean> {
    return new Map(this.service.groups().map(({ group, ok }) => [group, ok]));
  }

  /** Checks that a file which has been corrected serves at once, if nothing else keeps the folder from serving. */
  serves(name: string): void {
    // A load that is under way decides later.
    if (this.service.workers.some(({ state }) => state === 'loading')) return;
    const { rejected } = this.service.supervisor.status();
    const isKnown = this.table().has(name) && this.world.loads(name) && !this.service.made.forkError;
    if (isKnown && this.world.changed() === undefined && rejected === undefined)
      assert.equal(this.table().get(name), true, `${name} serves after it was corrected`);
    for (const { group } of rejected?.failures ?? []) assert.ok(group !== name || !isKnown, `${name} loads`);
  }

  /** Checks the rules of every moment. */
  check(): void {
    const serving = this.service.serving();
    const { generation, rejected } = this.service.supervisor.status();
    assert.deepEqual(this.world.mistakes, []);
    const isRetry =
      generation !== this.#generation && this.service.logged('generation-serving').at(-1)?.cause === 'retry';
    const oks = [...this.table()].filter(([, ok]) => ok);
    if (isRetry && !this.#wasRejected && !this.#wasDown)
      assert.ok(
        oks.some(([name]) => !this.#served.has(name)),
        'a trial serves only if more groups load',
      );
    this.#generation = generation;
    this.#wasRejected = rejected !== undefined;
    const healthy = serving.filter(({ isFaulty }) => !isFaulty);
    assert.ok(healthy.length <= WORKERS, `${healthy.length} workers serve`);
    const [first] = serving.map((worker) => this.world.code.get(worker) ?? new Map<string, string>());
    for (const worker of serving) {
      assert.equal(worker.generation, generation, 'the workers that serve are of one generation');
      const code = this.world.code.get(worker) ?? new Map<string, string>();
      for (const [name, ok] of this.table())
        if (ok) assert.equal(code.get(name), first?.get(name), `all workers serve the same ${name}`);
    }
    if (first === undefined) {
      this.#wasDown = true;
      return;
    }
    for (const [name] of this.#wasDown ? [] : this.#served)
      assert.ok(first.has(name) || !this.world.files.has(name) || name === SERVICE, `${name} still serves`);
    if (!this.#wasDown && this.#served.has(SERVICE)) assert.ok(first.has(SERVICE), 'the rules still hold');
    this.#served = new Map(
      Array.from(this.table()).flatMap(([name, ok]) => (ok ? [[name, first.get(name) ?? '']] : [])),
    );
    this.#wasDown = false;
  }

  /** Checks the rules of a folder that has been at rest for longer than the longest pause. */
  async rest(): Promise<void> {
    const forks = this.service.workers.length;
    await this.pass(2 * LONGEST_PAUSE);
    assert.ok(this.service.workers.length - forks < MAX_FORKS, 'retries are rare');
    const { rejected } = this.service.supervisor.status();
    const table = this.table();
    const serving = this.service.serving();
    // A system that refuses processes ends what can be said.
    if (this.service.made.forkError !== undefined) return;
    assert.ok(serving.length > 0, 'a worker serves');
    const lost = [...table].filter(([name, ok]) => ok && !this.world.loads(name)).map(([name]) => name);
    if (lost.length > 0) {
      if (this.world.changed() === undefined && !this.#differs(serving)) return;
      assert.ok(rejected !== undefined, `what serves differs from the folder, and nothing is rejected: ${lost}`);
      return;
    }
    assert.equal(rejected, undefined, 'a folder that loads serves');
    assert.deepEqual(
      serving.map(({ isFaulty }) => isFaulty),
      Array(WORKERS).fill(false),
      'all workers serve, and none is faulty',
    );
    assert.equal(this.#differs(serving), false, 'the newest files serve');
    for (const [name, ok] of table) assert.equal(ok, this.world.loads(name), `${name} serves if it loads`);
  }

  /** Whether a worker serves another version of a group than the folder has. */
  #differs(serving: readonly FakeWorker[]): boolean {
    return [...this.table()].some(
      ([name, ok]) =>
        (name !== SERVICE && !this.world.files.has(name)) ||
        (ok &&
          serving.some((worker) => this.world.code.get(worker)?.get(name) !== this.world.files.get(name)?.version)),
    );
  }
}

type Act = (run: Run) => unknown;

class Command implements fc.AsyncCommand<object, Run> {
  readonly #text: string;
  readonly #act: Act;

  constructor(text: string, act: Act) {
    this.#text = text;
    this.#act = act;
  }

  check(): boolean {
    return true;
  }

  async run(_model: object, run: Run): Promise<void> {
    await this.#act(run);
    await run.settle();
  }

  toString(): string {
    return this.#text;
  }
}

const command = (text: string, act: Act) => fc.constant(new Command(text, act));
const name = fc.constantFrom(...NAMES);
const KINDS: readonly Kind[] = ['good', 'good', 'slow', 'broken', 'deadly', 'hanging'];
const commands = fc.commands(
  [
    fc
      .tuple(name, fc.constantFrom(...KINDS))
      .map(([n, kind]) => new Command(`edit ${n}: ${kind}`, ({ world }) => world.put(n, kind))),
    fc
      .constantFrom(...KINDS)
      .map((kind) => new Command(`edit rules: ${kind}`, ({ world }) => world.put(SERVICE, kind))),
    name.map((n) => new Command(`remove ${n}`, ({ world }) => world.remove(n))),
    command('remove rules', ({ world }) => world.remove(SERVICE)),
    name.map((n) => new Command(`database of ${n} down`, ({ world }) => world.down.add(n))),
    name.map((n) => new Command(`database of ${n} up`, ({ world }) => world.down.delete(n))),
    name.map((n) => new Command(`${n} fails in one worker`, ({ world }) => world.locked.add(n))),
    name.map((n) => new Command(`request ${n}`, (run) => run.request(n))),
    name.map(
      (n) =>
        new Command(`request ${n} at the moment of new rules`, (run) => {
          run.request(n);
          run.world.put(SERVICE, 'good');
        }),
    ),
    name.map(
      (n) =>
        new Command(`correct ${n}, while it fails in one worker`, async (run) => {
          run.world.put(n, 'good');
          run.world.locked.add(n);
          await run.settle();
          run.serves(n);
        }),
    ),
    name.map(
      (n) =>
        new Command(`add ${n}, and request it`, (run) => {
          if (!run.world.files.has(n)) run.world.put(n, 'good');
          run.request(n);
        }),
    ),
    name.map(
      (n) =>
        new Command(`add ${n} beside a broken edit of A, and request it`, async (run) => {
          run.world.put('A', 'broken');
          await run.settle();
          if (!run.world.files.has(n)) run.world.put(n, 'good');
          run.request(n);
        }),
    ),
    name.map(
      (n) =>
        new Command(`worker 0 dies before the edit of ${n} is seen`, async (run) => {
          run.world.put(n, 'good');
          run.die(0);
          await run.service.settled();
          run.check();
        }),
    ),
    name.map(
      (n) =>
        new Command(`a retry comes before the edit of ${n} is seen`, async (run) => {
          run.world.put(n, 'good');
          await run.service.pass(61_000);
        }),
    ),
    name.map(
      (n) =>
        new Command(`edit ${n} in the middle of a slow load`, async (run) => {
          run.world.put(n, 'slow');
          await run.settle();
          run.world.put(n, 'good');
          await run.service.pass(SLOW_LOAD);
        }),
    ),
    fc.nat(1).map((index) => new Command(`worker ${index} dies`, (run) => run.die(index))),
    fc.nat(1).map(
      (index) =>
        new Command(`worker ${index} is faulty`, ({ service }) => {
          const worker = service.serving()[index];
          if (worker === undefined) return;
          worker.isFaulty = true;
          service.events().faulty(worker);
        }),
    ),
    fc.boolean().map(
      (fails) =>
        new Command(`forks ${fails ? 'fail' : 'succeed'}`, ({ service }) => {
          service.made.forkError = fails ? new Error('EAGAIN') : undefined;
        }),
    ),
    command('SIGHUP', ({ service }) => service.supervisor.requestGeneration('signal')),
    fc.constantFrom(100, 800, 6000, 61_000).map((time) => new Command(`${time} ms pass`, (run) => run.pass(time))),
    command('rest', (run) => run.rest()),
  ],
  { maxCommands: 30, size: 'max' },
);

test('the supervisor does what the model says', { timeout: 600_000 }, async (context) => {
  const dir = createFolder(context);
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      for (const each of [SERVICE, ...NAMES]) rmSync(join(dir, fileOf(each)), { force: true });
      const world = new World(dir);
      const service = createFakeService(context, {
        workers: WORKERS,
        dir,
        createWatch: (onChange) => world.createWatch(onChange),
      });
      world.service = service;
      Object.assign(service.made, { load: world.load, importGroup: world.importGroup, onSent: world.onSent });
      service.made.isMarked = true;
      await service.supervisor.start();
      const run = new Run(world, service);
      await fc.asyncModelRun(() => ({ model: {}, real: run }), list);
      service.made.forkError = undefined;
      await run.rest();
      const { length } = service.workers;
      world.isStopped = true;
      await service.supervisor.stop();
      await service.pass(LONGEST_PAUSE);
      assert.equal(service.workers.length, length, 'no worker starts after the stop');
    }),
    { seed: Number(process.env.SEED ?? 12), numRuns: Number(process.env.RUNS ?? 40), includeErrorInReport: true },
  );
});

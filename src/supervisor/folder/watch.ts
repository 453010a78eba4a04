// The watch reports when the folder differs from its baseline (baseline.ts) and no longer changes. It repeats this
// report until a generation begins to load. The watch polls the folder, because file events are lost on swapped links,
// mounted volumes and network disks. Where events can be trusted, they bring the next poll forward, and most polls read
// only the outline, the cheap summary of outline.ts.
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { GroupLoad } from '../../groups/group-load.ts';
import type { LoadedFile } from '../../groups/module-loader.ts';
import { createBaseline, type GenerationLoad } from './baseline.ts';
import { createFolderEvents } from './events.ts';
import { type OutlinePaths, outlinePathsOf, takeOutline } from './outline.ts';
import { firstDifference, realPathOf, type Snapshot, takeSnapshot } from './snapshot.ts';

export interface FolderWatch {
  /** Returns a snapshot of the whole tree, or undefined while the folder cannot be read. */
  takeSnapshot(): Snapshot | undefined;
  /** Called when a generation begins to load. From now on, a difference from this snapshot is a change. */
  beginLoad(snapshot: Snapshot): void;
  /** Called when a generation has loaded. From now on, a difference from the files that it has read is a change. */
  endLoad(load: GenerationLoad): void;
  /** Adds a new group that a worker imported, and its files, to the baseline. So their arrival is not a change. */
  addGroup(group: GroupLoad, files: readonly LoadedFile[]): void;
  /** Adds files that a worker imported after its load to the baseline. */
  addFiles(files: readonly LoadedFile[]): void;
  /** Whether a worker that read these files runs the same code as the workers of the newest generation. */
  hasSameFiles(files: readonly LoadedFile[]): boolean;
  /**
   * Returns what has changed since the newest generation has loaded the folder: a path, the name of a group, or
   * undefined. Compares the folder as it is now. New groups, and other files that nobody has read, do not count.
   *
   * @param file the name of a file in the folder, which a worker must have read in its present state
   */
  changeSinceLoad(file?: string): string | undefined;
  start(): void;
  stop(): void;
}

export interface FolderWatchOptions {
  readonly dir: string;
  readonly log: Log;
  /** Called at each poll while the folder is `changed`. @param cause a path or the name of a group */
  readonly onChange: (cause: string) => void;
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

/** The state of the folder in the last snapshot. docs/LIVE.md shows how one state leads to the next. */
type State =
  /**
   * The folder equals the baseline (baseline.ts). The next snapshot is taken at `snapshotDue`, or earlier when the
   * outline changes, a folder is new, or the events of a folder are not trusted.
   */
  | { readonly kind: 'unchanged'; readonly snapshotDue: number }
  /** The folder differs from the baseline, and something may still be writing to it. */
  | ({ readonly kind: 'changing' } & Difference)
  /** The folder differs from the baseline, and is stable. */
  | ({ readonly kind: 'changed' } & Difference)
  /** The folder is missing. `polls` is the number of polls in a row that have not found it. */
  | { readonly kind: 'missing'; readonly polls: number };

interface Difference {
  /** The path or group with the first difference from the baseline, for the log. */
  readonly cause: string;
  readonly snapshot: Snapshot;
  /** The time at which the first difference from the baseline was seen. */
  readonly since: number;
  /** The time at which a poll first found the folder in the state of `snapshot`. */
  readonly stableSince: number;
}

/** When the next poll comes. `hurried`: an event or a generation has brought it forward. */
type Schedule = 'stopped' | 'waiting' | 'hurried' | 'polling';

/** The state before the first snapshot, or after an event. The next poll takes a snapshot. */
const NOT_CHECKED: State = { kind: 'unchanged', snapshotDue: 0 };

/** Milliseconds between two polls of a small folder. */
const SHORTEST_INTERVAL = 100;
/** Milliseconds between two polls of a large folder, and of a folder whose events are trusted. */
const MAX_INTERVAL = 400;
/**
 * Ratio of the interval to the duration of the last poll, so that polls take at most 1/30 of a core. Without trusted
 * events, MAX_INTERVAL limits the interval. Snapshots of more than 13 ms then take a larger part.
 */
const COST_FACTOR = 30;
/**
 * Ratio of the interval between snapshots to the duration of the last snapshot, with trusted events. Snapshots and the
 * collection of their garbage then take a hundredth of a core.
 */
const SNAPSHOT_COST_FACTOR = 400;
/** Milliseconds from an event to the poll that it causes. */
const EVENT_DELAY = 20;
/** Minimum ratio of the delay after an event to the duration of a snapshot. Further events can arrive in the delay. */
const EVENT_COST_FACTOR = 3;
/** Milliseconds without a change until the folder is stable. A file that is being copied grows within this time. */
const STABLE_TIME = 40;
/** Milliseconds by which a timer may fire too early. */
const TIMER_TOLERANCE = 2;
/** Milliseconds after which a folder that is never stable counts as changed all the same. */
const MAX_CHANGE_TIME = 1000;

export function createFolderWatch({
  dir,
  log,
  onChange,
  now = () => performance.now(),
}: FolderWatchOptions): FolderWatch {
  const baseline = createBaseline(dir);
  const events = createFolderEvents(hurry);
  let state = NOT_CHECKED;
  let schedule: Schedule = 'stopped';
  let timer: NodeJS.Timeout | undefined;
  let outlinePaths: OutlinePaths = { folders: [], links: [], missing: [] };
  /** The text of the outline at the last poll. */
  let outline = '';
  /** Milliseconds of the last snapshot. */
  let snapshotCost = 0;

  return {
    takeSnapshot: () => takeSnapshot({ dir, paths: baseline.paths(), wholeTree: true }),
    beginLoad: (snapshot) => endLoad({ snapshot, begunAt: 0, groups: [], files: [], broken: true }),
    endLoad,
    addGroup(group, files) {
      baseline.addGroup(group);
      // A new file that did not load was probably incomplete. The next request imports it again, without a generation.
      const ownPath = group.ok ? undefined : realPathOf(join(dir, group.file));
      baseline.addFiles(files.filter(({ path }) => path !== ownPath));
      hurry();
    },
    addFiles: baseline.addFiles,
    hasSameFiles: baseline.hasSameFiles,
    changeSinceLoad(file) {
      const snapshot = takeSnapshot({ dir, paths: baseline.paths(), wholeTree: false });
      const key = snapshot === undefined ? dir : baseline.changeIn(snapshot, file);
      if (key === undefined) return undefined;
      hurry();
      return key.slice(key.indexOf(':') + 1);
    },
    start: () => schedulePoll('waiting', SHORTEST_INTERVAL),
    stop() {
      schedule = 'stopped';
      clearTimeout(timer);
      events.close();
    },
  };

  function endLoad(load: GenerationLoad): void {
    baseline.replace(load);
    if (state.kind !== 'missing') state = NOT_CHECKED;
    hurry();
  }

  /** Brings the next poll forward, and makes it take a snapshot. */
  function hurry(): void {
    if (state.kind === 'unchanged') state = NOT_CHECKED;
    if (schedule === 'stopped' || schedule === 'hurried') return;
    schedulePoll('hurried', Math.min(MAX_INTERVAL, Math.max(EVENT_DELAY, snapshotCost * EVENT_COST_FACTOR)));
  }

  function schedulePoll(next: Schedule, delay: number): void {
    schedule = next;
    clearTimeout(timer);
    timer = setTimeout(poll, delay);
  }

  function poll(): void {
    schedule = 'polling';
    const begun = now();
    const current = takeOutline(dir, outlinePaths);
    const hasNewFolder = events.follow(current.folders);
    const isSnapshotDue =
      hasNewFolder ||
      state.kind !== 'unchanged' ||
      begun >= state.snapshotDue ||
      current.text !== outline ||
      !events.isTrusted();
    outline = current.text;
    if (isSnapshotDue) compareSnapshot(begun);
    const cost = isSnapshotDue ? snapshotCost : now() - begun;
    // In any other schedule, an event or a generation has already caused the next poll, or the watch was stopped.
    if (schedule === 'polling') schedulePoll('waiting', intervalAfter(isSnapshotDue, cost));
  }

  function intervalAfter(hadSnapshot: boolean, cost: number): number {
    if (state.kind === 'changing' || (state.kind === 'missing' && state.polls === 1)) return STABLE_TIME;
    if (!hadSnapshot) return Math.max(MAX_INTERVAL, cost * COST_FACTOR);
    if (events.isTrusted()) return MAX_INTERVAL;
    return Math.min(MAX_INTERVAL, Math.max(SHORTEST_INTERVAL, cost * COST_FACTOR));
  }

  function compareSnapshot(begun: number): void {
    const snapshot = takeSnapshot({ dir, paths: baseline.paths(), wholeTree: baseline.isWholeTree() });
    if (snapshot !== undefined) outlinePaths = outlinePathsOf(snapshot);
    const previous = state;
    state = nextState(previous, snapshot, begun);
    snapshotCost = now() - begun;
    // `ln -sfn` swaps a link in two steps. So a folder that is missing in only one poll is not logged.
    if (state.kind === 'missing' && state.polls === 2)
      log.error('folder-missing', { folder: dir, effect: 'the last generation serves on' });
    if (state.kind !== 'missing' && previous.kind === 'missing' && previous.polls > 1)
      log.warn('folder-restored', { folder: dir });
    if (state.kind === 'changed') onChange(state.cause);
    // A generation that `onChange` has begun has taken a snapshot of its own. So the next snapshot can wait.
    postponeSnapshot(begun + snapshotCost * SNAPSHOT_COST_FACTOR);
  }

  function postponeSnapshot(snapshotDue: number): void {
    if (state.kind === 'unchanged') state = { kind: 'unchanged', snapshotDue };
  }

  function nextState(previous: State, snapshot: Snapshot | undefined, pollTime: number): State {
    if (snapshot === undefined) return { kind: 'missing', polls: previous.kind === 'missing' ? previous.polls + 1 : 1 };
    const key = baseline.differenceFrom(snapshot);
    if (key === undefined) return NOT_CHECKED;
    const cause = key.slice(key.indexOf(':') + 1);
    if (previous.kind !== 'changing' && previous.kind !== 'changed')
      return { kind: 'changing', cause, snapshot, since: pollTime, stableSince: pollTime };
    const { since } = previous;
    const isSame = firstDifference(previous.snapshot, snapshot, true) === undefined;
    const stableSince = isSame ? previous.stableSince : pollTime;
    const isStable = pollTime - stableSince >= STABLE_TIME - TIMER_TOLERANCE || pollTime - since >= MAX_CHANGE_TIME;
    return { kind: isStable ? 'changed' : 'changing', cause, snapshot, since, stableSince };
  }
}

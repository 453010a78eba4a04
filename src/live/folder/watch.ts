// The watch reports when the folder differs from its baseline (baseline.ts) and no longer changes. It repeats this
// report until a generation begins to load. The watch polls the folder, because file events are lost on swapped links,
// mounted volumes and network disks. An event brings the next poll forward.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describeFailure } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { createStrayListing } from '../load/stray-service.ts';
import { createBaseline, type GenerationLoad } from './baseline.ts';
import { createFolderEvents } from './events.ts';
import { firstDifference, foldersOf, realPathOf, type Snapshot, takeSnapshot } from './snapshot.ts';

export type FolderWatch = ReturnType<typeof createFolderWatch>;

interface FolderWatchOptions {
  readonly dir: string;
  readonly log: Log;
  /** Called at each poll while the folder is `changed`. @param cause a path or the name of a group */
  readonly onChange: (cause: string) => void;
  readonly now?: () => number;
}

/** The state of the folder in the last snapshot. docs/LIVE.md shows how one state leads to the next. */
type State =
  | { readonly kind: 'unchanged' }
  /** The folder differs from the baseline. Something may still be writing to it, until it is `changed`. */
  | ({ readonly kind: 'changing' | 'changed' } & Difference)
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

const POLL_INTERVAL_MS = 400;
/** Milliseconds between two polls of a very large folder, in which a poll takes long. */
const MAX_INTERVAL = 1000;
/** Ratio of the interval to the duration of the last poll, within these bounds. */
const COST_FACTOR = 30;
const EVENT_TO_POLL_MS = 20;
/** Minimum ratio of the delay after an event to the duration of a poll. Further events can arrive in the delay. */
const EVENT_COST_FACTOR = 3;
/** Milliseconds without a change until the folder is stable. A file that is being copied grows within this time. */
const STABLE_TIME = 40;
const EARLY_TIMER_MS = 2;
/** Milliseconds after which a folder that is never stable counts as changed all the same. */
const MAX_CHANGE_TIME = 1000;

export function createFolderWatch({ dir, log, onChange, now = () => performance.now() }: FolderWatchOptions) {
  const baseline = createBaseline(dir);
  const events = createFolderEvents(hurry);
  const listStrays = createStrayListing();
  let state: State = { kind: 'unchanged' };
  let schedule: Schedule = 'stopped';
  let timer: NodeJS.Timeout | undefined;
  let lastPollMs = 0;

  return {
    takeSnapshot: () => look(true),
    /** Called when a generation begins to load. From now on, a difference from this snapshot is a change. */
    beginLoad: (snapshot: Snapshot) => setLoad({ snapshot, begunAt: 0, groups: [], files: [], broken: true }, false),
    /** Called when a generation has loaded. From now on, a difference from the files that it has read is a change. */
    endLoad: (load: GenerationLoad) => setLoad(load, true),
    /** Adds a new group that a worker imported, and its files, to the baseline. So their arrival is not a change. */
    addGroup(group: GroupLoad, files: readonly LoadedFile[]): void {
      baseline.addGroup(group);
      // A new file that did not load was probably incomplete. The next import reads it again, without a generation. So
      // only the last state that a worker has read counts, and no state of a file that did not load.
      const ownPath = realPathOf(join(dir, group.file));
      const ownFile = group.ok ? files.findLast(({ path }) => path === ownPath) : undefined;
      baseline.addFiles(files.filter((file) => file.path !== ownPath || file === ownFile));
      hurry();
    },
    addFiles: baseline.addFiles,
    /** Whether a worker that read these files runs the same code as the workers of the newest generation. */
    hasSameFiles: baseline.hasSameFiles,
    /**
     * Returns what has changed since the newest generation has loaded the folder: a path, the name of a group, or
     * undefined. Compares the folder as it is now. New groups, and other files that nobody has read, do not count.
     *
     * @param file the name of a file in the folder, which a worker must have read in its present state
     */
    changeSinceLoad(file?: string): string | undefined {
      const snapshot = look(false);
      const key = snapshot === undefined ? dir : baseline.changeIn(snapshot, file);
      if (key === undefined) return undefined;
      hurry();
      return key.slice(key.indexOf(':') + 1);
    },
    start: () => schedulePoll('waiting', EVENT_TO_POLL_MS),
    stop(): void {
      schedule = 'stopped';
      clearTimeout(timer);
      events.close();
    },
  };

  function look(wholeTree: boolean): Snapshot | undefined {
    return takeSnapshot({ dir, paths: baseline.paths(), links: baseline.links(), wholeTree, listStrays });
  }

  function setLoad(load: GenerationLoad, isLoaded: boolean): void {
    baseline.replace(load, isLoaded);
    if (state.kind !== 'missing') state = { kind: 'unchanged' };
    hurry();
  }

  function hurry(): void {
    if (schedule === 'stopped' || schedule === 'hurried') return;
    schedulePoll('hurried', Math.min(POLL_INTERVAL_MS, Math.max(EVENT_TO_POLL_MS, lastPollMs * EVENT_COST_FACTOR)));
  }

  function schedulePoll(next: Schedule, delay: number): void {
    schedule = next;
    clearTimeout(timer);
    timer = setTimeout(poll, delay);
  }

  function poll(): void {
    schedule = 'polling';
    const begun = now();
    const snapshot = look(baseline.isWholeTree());
    // A change in a new folder can come before its events are followed, so the next poll comes soon.
    if (snapshot !== undefined && events.follow(foldersOf(snapshot))) hurry();
    compare(snapshot, begun);
    lastPollMs = now() - begun;
    // In any other schedule, an event or a generation has already caused the next poll, or the watch was stopped.
    if (schedule === 'polling') schedulePoll('waiting', nextInterval());
  }

  function nextInterval(): number {
    if (state.kind === 'changing' || (state.kind === 'missing' && state.polls === 1)) return STABLE_TIME;
    return Math.min(MAX_INTERVAL, Math.max(POLL_INTERVAL_MS, lastPollMs * COST_FACTOR));
  }

  function compare(snapshot: Snapshot | undefined, begun: number): void {
    const previous = state;
    state = nextState(previous, snapshot, begun);
    // `ln -sfn` swaps a link in two steps. So a folder that is missing in only one poll is not logged.
    if (state.kind === 'missing' && state.polls === 2)
      log.error('folder-missing', { folder: dir, reason: whyMissing(dir), effect: 'the last generation serves on' });
    if (state.kind !== 'missing' && previous.kind === 'missing' && previous.polls > 1)
      log.warn('folder-restored', { folder: dir });
    if (state.kind === 'changed') onChange(state.cause);
  }

  function nextState(previous: State, snapshot: Snapshot | undefined, pollTime: number): State {
    if (snapshot === undefined) return { kind: 'missing', polls: previous.kind === 'missing' ? previous.polls + 1 : 1 };
    const key = baseline.differenceFrom(snapshot);
    if (key === undefined) return { kind: 'unchanged' };
    const cause = key.slice(key.indexOf(':') + 1);
    if (previous.kind !== 'changing' && previous.kind !== 'changed')
      return { kind: 'changing', cause, snapshot, since: pollTime, stableSince: pollTime };
    const { since } = previous;
    const isSame = firstDifference(previous.snapshot, snapshot, true) === undefined;
    const stableSince = isSame ? previous.stableSince : pollTime;
    const isStable = pollTime - stableSince >= STABLE_TIME - EARLY_TIMER_MS || pollTime - since >= MAX_CHANGE_TIME;
    return { kind: isStable ? 'changed' : 'changing', cause, snapshot, since, stableSince };
  }
}

/** An operator sees a folder that is closed to the service alone, and one whose network disk must be mounted again. */
function whyMissing(dir: string): string {
  try {
    readdirSync(dir);
    return 'it was away for a moment';
  } catch (error) {
    return describeFailure(error);
  }
}

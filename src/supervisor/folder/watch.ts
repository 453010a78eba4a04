// Knows when the folder on disk is no longer what was last tried, and says so once it has settled. It polls: file
// events are lost on swapped links, mounted volumes and network disks, a stat is not; where they can be trusted, they
// call the next look and let the poll be a cheap one. It knows nothing of processes; the supervisor tells it what was
// loaded, and it never forgets a change until the supervisor says that it was tried.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { LoadedFile } from '../../groups/module-loader.ts';
import type { GroupLoad } from '../../groups/registry.ts';
import { createFolderEvents } from './events.ts';
import { type Places, placesOf, takeOutline } from './outline.ts';
import { ABSENT, firstDifference, type Snapshot, takeSnapshot } from './snapshot.ts';

/** One attempt to load the folder, successful or not. */
export interface Attempt {
  /** The look that was taken before the first file was read. */
  readonly before: Snapshot;
  /** When that look was taken, in milliseconds of the wall clock. */
  readonly begunAt: number;
  readonly groups: readonly GroupLoad[];
  /** What each worker read; two workers that read different states of one file mean that it changed meanwhile. */
  readonly files: readonly LoadedFile[];
  /** Something did not load: then any change of the tree is a reason to try again, for it may be the missing piece. */
  readonly broken: boolean;
}

export interface FolderWatch {
  /** Looks now, at the whole tree. Undefined while the folder cannot be read. */
  look(): Snapshot | undefined;
  /** An attempt begins: from now on a change is what differs from this look. */
  trying(before: Snapshot): void;
  /** From now on a change is what differs from this attempt. What changed while it was made counts as changed. */
  tried(attempt: Attempt): void;
  /** A brand-new group was imported in place: it is watched from now on, and is no change. */
  imported(group: GroupLoad, files: readonly LoadedFile[]): void;
  /** Imported later than at load: watched from now on. */
  read(files: readonly LoadedFile[]): void;
  /** Whether a worker that read these files runs the same code as those that the last attempt put to work. */
  agrees(files: readonly LoadedFile[]): boolean;
  start(): void;
  stop(): void;
}

export interface FolderWatchOptions {
  readonly dir: string;
  readonly log: Log;
  /** The folder has settled in a state that was not tried; called again and again until `tried` is. */
  readonly onChange: (what: string) => void;
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

/** Between two polls. Without events they cost a thirtieth of a core where that is often enough. */
const SHORTEST_INTERVAL = 100;
const LONGEST_INTERVAL = 400;
const COST_FACTOR = 30;
/**
 * With trusted events polls look at the outline, and seldom at every file: then a look, with its garbage, costs a
 * hundredth of a core.
 */
const WHOLE_LOOK_COST_FACTOR = 400;
/** From an event to the look it calls; one that costs much waits longer, for the next event. */
const EVENT_DELAY = 20;
const EVENT_COST_FACTOR = 3;
/** How long a state must hold to count as settled: a file that is being copied grows in between. */
const SETTLE = 40;
/** Timers fire up to as much too soon. */
const TIMER_STEP = 2;
/** A file that never settles, because something writes it for ever, is tried all the same. */
const LONGEST_SETTLE = 1000;
/** Times of files are as coarse as the kernel's tick: a write this fresh may be followed by one that looks the same. */
const COARSE_TIME = 12;
/** Two states of one file in one generation. No fingerprint looks like this, so it always counts as changed. */
const MIXED = 'mixed';

export function createFolderWatch({
  dir,
  log,
  onChange,
  now = () => performance.now(),
}: FolderWatchOptions): FolderWatch {
  let baseline: Map<string, string> = new Map();
  let exact = false;
  let previous: Snapshot | undefined;
  let changedSince: number | undefined;
  let sameSince = 0;
  let missingPolls = 0;
  let timer: NodeJS.Timeout | undefined;
  let running = false;
  const events = createFolderEvents(hurry);
  let places: Places = { folders: [], links: [], missing: [] };
  let outline = '';
  /** When the next look at every file is due, and what the last one cost, in milliseconds. */
  let wholeLookAt = 0;
  let wholeLookCost = 0;
  let hurried = false;

  return {
    look: () => takeSnapshot({ dir, paths: watchedPaths(), wholeTree: true }),
    trying: (before) => tried({ before, begunAt: 0, groups: [], files: [], broken: true }),
    tried,
    imported,
    read: (files) => files.forEach(remember),
    agrees: (files) =>
      files.every(({ path, fingerprint }) => (baseline.get(`file:${path}`) ?? fingerprint) === fingerprint),
    start() {
      running = true;
      timer = setTimeout(poll, SHORTEST_INTERVAL);
    },
    stop() {
      running = false;
      clearTimeout(timer);
      events.close();
    },
  };

  function poll(): void {
    hurried = false;
    const begun = now();
    const current = takeOutline(dir, places);
    const isNew = events.follow(current.folders);
    const isDue = isNew || begun >= wholeLookAt || current.text !== outline || !events.isTrusted();
    outline = current.text;
    const wait = isDue ? lookAtAll(begun) : Math.max(LONGEST_INTERVAL, (now() - begun) * COST_FACTOR);
    if (running && !hurried) timer = setTimeout(poll, wait);
  }

  /** Returns the milliseconds to the next poll. */
  function lookAtAll(begun: number): number {
    const snapshot = takeSnapshot({ dir, paths: watchedPaths(), wholeTree: exact });
    const wait = compare(snapshot, begun);
    if (snapshot !== undefined) places = placesOf(snapshot);
    wholeLookCost = now() - begun;
    // A difference that is not tried yet is looked for again at every poll.
    wholeLookAt = previous === undefined && snapshot !== undefined ? begun + wholeLookCost * WHOLE_LOOK_COST_FACTOR : 0;
    if (wait !== undefined) return wait;
    if (events.isTrusted()) return LONGEST_INTERVAL;
    return Math.min(LONGEST_INTERVAL, Math.max(SHORTEST_INTERVAL, wholeLookCost * COST_FACTOR));
  }

  /** Brings the next look forward. */
  function hurry(): void {
    wholeLookAt = 0;
    if (!running || hurried) return;
    hurried = true;
    clearTimeout(timer);
    timer = setTimeout(poll, Math.min(LONGEST_INTERVAL, Math.max(EVENT_DELAY, wholeLookCost * EVENT_COST_FACTOR)));
  }

  /** Milliseconds to the next look, where it is not the usual interval. */
  function compare(current: Snapshot | undefined, at: number): number | undefined {
    if (current === undefined) return missing();
    if (missingPolls > 1) log.warn('folder-back', { folder: dir });
    missingPolls = 0;
    const what = firstDifference(baseline, current, exact);
    if (what === undefined) {
      previous = changedSince = undefined;
      return undefined;
    }
    changedSince ??= at;
    const isSame = previous !== undefined && firstDifference(previous, current, true) === undefined;
    if (!isSame) sameSince = at;
    // An event may call the next look sooner.
    const settled = isSame && at - sameSince >= SETTLE - TIMER_STEP;
    previous = current;
    if (settled || at - changedSince >= LONGEST_SETTLE) onChange(what.slice(what.indexOf(':') + 1));
    return settled ? undefined : SETTLE;
  }

  /** A link is swapped by `ln -sfn` in two steps, so one missed look says nothing. */
  function missing(): number | undefined {
    previous = undefined;
    missingPolls++;
    if (missingPolls === 2) log.error('folder-vanished', { folder: dir, effect: 'the last generation serves on' });
    return missingPolls < 2 ? SETTLE : undefined;
  }

  function tried({ before, begunAt, groups, files, broken }: Attempt): void {
    hurry();
    baseline = new Map();
    exact = broken;
    changedSince = previous = undefined;
    for (const [key, value] of before) {
      // A group that nobody has loaded yet, and a file that nobody imports, may come and go.
      if (broken || key === 'folder' || key.startsWith('link:')) baseline.set(key, value);
    }
    const folder = before.get('folder') ?? dir;
    for (const load of groups) {
      baseline.set(`group:${load.group}`, load.file);
      const key = `file:${join(folder, load.file)}`;
      baseline.set(key, before.get(key) ?? ABSENT);
    }
    for (const file of files) {
      const known = before.get(`file:${file.path}`);
      if (known === undefined)
        remember(isYoungerThan(file, begunAt - COARSE_TIME) ? { path: file.path, fingerprint: MIXED } : file);
      else baseline.set(`file:${file.path}`, known === file.fingerprint ? known : MIXED);
    }
  }

  function imported(load: GroupLoad, files: readonly LoadedFile[]): void {
    if (!baseline.has(`group:${load.group}`)) baseline.set(`group:${load.group}`, load.file);
    for (const file of files) remember(file);
    hurry();
  }

  function remember({ path, fingerprint }: LoadedFile): void {
    const key = `file:${path}`;
    const known = baseline.get(key);
    baseline.set(key, known === undefined || known === fingerprint ? fingerprint : MIXED);
  }

  function* watchedPaths(): Generator<string> {
    for (const key of baseline.keys()) if (key.startsWith('file:')) yield key.slice(5);
  }
}

function isYoungerThan({ path, fingerprint }: LoadedFile, time: number): boolean {
  if (fingerprint === ABSENT) return false;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Math.max(stat.mtimeMs, stat.ctimeMs) >= time;
}

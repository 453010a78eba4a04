// Keeps the replica equal to the store. About once a second, the follower makes a look: it asks the store for changes,
// and fetches them. The bell, a notification from the store, makes the next look begin at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import type { Log } from '../../base/log.ts';
import type { ChangedRows } from '../../callers/credentials/table/early-rows.ts';
import { isRevoked } from './entries.ts';
import type { HostState } from './messages.ts';
import type { Replica } from './replica.ts';
import { type Changes, type Store, StoreAway } from './store.ts';

type FollowerStatus = Pick<HostState, 'awayReason' | 'needsOperator' | 'fullReads' | 'missedBells'>;

export interface FollowerOptions {
  readonly store: Store;
  readonly replica: Replica;
  readonly log: Log;
  readonly onPublished: () => void;
  /** Receives rows that are new, revoked or removed, before the file is written. */
  readonly onChanged: (changed: ChangedRows) => void;
  readonly onLook: () => void;
}

/** Milliseconds from the end of a look to the next one, on average, while the bell works. */
const INTERVAL_MS = 1000;
const INTERVAL_WITHOUT_BELL_MS = 250;
const INTERVAL_WHILE_AWAY_MS = 250;
/**
 * The pause after a write of the file, as a multiple of the processor time of the write. So writing takes at most a
 * fifth of a processor, however many changes come. The elapsed time of the write is not used: on a busy machine, this
 * time includes other processes, and the pause would be longer than necessary.
 */
const PUBLISH_PAUSE_FACTOR = 4;
/** At most this many lost changes are written back to the store in one write. */
const MAX_RESTORED = 1000;
/** At most this many rows of one query are announced before the file. Workers find the others in the file. */
const MAX_ANNOUNCED = 1000;

export function createFollower({ store, replica, log, onPublished, onChanged, onLook }: FollowerOptions) {
  let status: FollowerStatus = { awayReason: null, needsOperator: false, fullReads: 0, missedBells: 0 };
  let bellCount = 0;
  let hasRung = false;
  let mustReadAll = false;
  /** Whether a change has come without the bell, and the bell has not rung since. Looks are then more frequent. */
  let isBellBroken = false;
  /** When the store was first found away; undefined while it can be used. Times are those of `performance.now()`. */
  let awaySince: number | undefined;
  /** The reasons that were logged since then. Two can alternate, as behind a balancer whose database is away. */
  const loggedReasons = new Set<string>();
  let isClosed = false;
  let lastLook: Promise<void> = Promise.resolve();
  let nextLook: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let endPause = (): void => {};
  let publishPauseMs = 0;
  let publishedAt = Number.NEGATIVE_INFINITY;

  schedule(0);

  /** Makes a new look after the running one. All calls until the new look begins share it. @throws StoreAway */
  function look(): Promise<void> {
    nextLook ??= lastLook
      .catch(() => {})
      .then(() => {
        nextLook = undefined;
        return lookNow();
      });
    lastLook = nextLook;
    return nextLook;
  }

  async function lookNow(): Promise<void> {
    try {
      const beganAt = performance.now();
      if (await update())
        await pauseBeforePublish().catch((error) => {
          // A worker that starts while the store is away must read the revocations that this machine has seen.
          publish();
          throw error;
        });
      // The file also includes the revocations by `revoke --here`, which can change without a change in the store.
      publish();
      replica.markComplete();
      if (awaySince !== undefined) log.info('store-back', { away_seconds: Math.round((beganAt - awaySince) / 1000) });
      awaySince = undefined;
      loggedReasons.clear();
      status = { ...status, awayReason: null, needsOperator: false };
      // This write fails while the store is read-only. Such a store is not away, and the next look writes again.
      await restoreLostChanges().catch(() => {});
    } catch (error) {
      const reason = (error as Error).message;
      const age = replica.age();
      const ageSeconds = age === null ? null : Math.round(age / 1000);
      if (!loggedReasons.has(reason)) log.error('store-away', { reason, age_seconds: ageSeconds });
      loggedReasons.add(reason);
      awaySince ??= performance.now();
      // Any other error than StoreAway is about the files on this machine.
      status = { ...status, awayReason: reason, needsOperator: !(error instanceof StoreAway) || error.needsOperator };
      throw error instanceof StoreAway ? error : new StoreAway(reason, { cause: error });
    } finally {
      onLook();
      const interval = isBellBroken ? INTERVAL_WITHOUT_BELL_MS : INTERVAL_MS;
      if (!isClosed) schedule(status.awayReason === null ? interval : INTERVAL_WHILE_AWAY_MS);
    }
  }

  /** Fetches and announces the changes that come meanwhile, because workers heed them without the file. */
  async function pauseBeforePublish(): Promise<void> {
    for (;;) {
      const pause = publishedAt + publishPauseMs - performance.now();
      if (pause <= 0) return;
      if (!hasRung) {
        const bell = new AbortController();
        endPause = () => bell.abort();
        await sleep(pause, undefined, { signal: bell.signal }).catch(() => {});
      }
      if (hasRung) await update();
    }
  }

  function schedule(pause: number): void {
    clearTimeout(timer);
    // Random pauses keep machines that lost the store at the same moment from returning at the same moment.
    timer = setTimeout(lookWithoutError, pause * (0.8 + 0.4 * Math.random()));
  }

  /** Makes a look whose error nobody gets. `lookNow` logs the error, and schedules the next look. */
  function lookWithoutError(): void {
    look().catch(() => {});
  }

  /** After a time-out, all rows are read next: the time limit of that query allows for any number of changes. */
  async function readChanges(version: string): Promise<Changes | undefined> {
    try {
      return await store.since('keys', version);
    } catch (error) {
      mustReadAll = error instanceof StoreAway && error.isTimeout;
      throw error;
    }
  }

  /** Fetches all changes from the store into memory. @returns whether the rows have changed */
  async function update(): Promise<boolean> {
    let isChanged = false;
    // While the store was away, no bell could ring. The changes of that time do not count as missed by the bell.
    const isAnnounced = hasRung || status.awayReason !== null;
    hasRung = false;
    for (;;) {
      const version = replica.version();
      const changes = version === undefined || mustReadAll ? undefined : await readChanges(version);
      if (changes === undefined) {
        const snapshot = await store.read('keys');
        mustReadAll = false;
        status = { ...status, fullReads: status.fullReads + 1 };
        const isSuccessor = version === undefined || store.isSuccessor(snapshot.version, version);
        if (!isSuccessor) log.warn('store-history-changed', { rows: snapshot.entries.size });
        replica.replaceAll(snapshot, isSuccessor);
        isChanged = true;
        // Further changes can have come during the read, so the store is asked for changes since the snapshot.
        continue;
      }
      if (changes.changes.length > 0) {
        if (!isAnnounced && !hasRung && !isChanged) void countMissedBell(bellCount);
        isChanged = true;
        announce(changes.changes.slice(0, MAX_ANNOUNCED));
      }
      replica.apply(changes);
      if (changes.isComplete) return isChanged;
    }
  }

  function announce(changes: Changes['changes']): void {
    const changed = { revoked: [] as string[], added: [] as string[] };
    for (const [name, row] of changes)
      if (row === undefined || isRevoked(row)) changed.revoked.push(name);
      // A made name is that of a row without an id of its own (entries.ts).
      else if (!name.startsWith('~') && !replica.rows().has(name)) changed.added.push(row);
    if (changed.revoked.length + changed.added.length > 0) onChanged(changed);
  }

  /**
   * Counts a missed bell, unless the bell rings within a second after a look has found the change.
   *
   * @param countBefore how often the bell had rung when the look found the change
   */
  async function countMissedBell(countBefore: number): Promise<void> {
    await sleep(1000, undefined, { ref: false });
    if (bellCount !== countBefore || status.awayReason !== null) return;
    status = { ...status, missedBells: status.missedBells + 1 };
    if (!isBellBroken) log.warn('store-bell-missing', { effect: 'changes are found four times a second' });
    isBellBroken = true;
  }

  /** Writes lost changes again, in one write. If another machine was faster, the update at the end fetches its rows. */
  async function restoreLostChanges(): Promise<void> {
    const names = replica.lostChanges().slice(0, MAX_RESTORED);
    if (names.length === 0) return;
    const { entries } = await store.read('keys', names);
    const changes = [...entries].flatMap(([name, { version: expectedVersion, value: current }]) => {
      const value = replica.restore(name, current);
      return value === current
        ? []
        : [{ name, expectedVersion, value, isRevocation: !isRevoked(current) && isRevoked(value) }];
    });
    if (changes.length > 0 && (await store.write('keys', changes, crypto().randomUUID())))
      for (const { name, isRevocation } of changes) {
        if (isRevocation) log.warn('store-revocation-restored', { id: name });
        else log.warn('store-rotation-restored', { id: name });
      }
    await update();
  }

  function publish(): void {
    const cpuBefore = process.cpuUsage();
    if (!replica.publish()) return;
    const { user: userMicroseconds, system: systemMicroseconds } = process.cpuUsage(cpuBefore);
    publishedAt = performance.now();
    publishPauseMs = (PUBLISH_PAUSE_FACTOR * (userMicroseconds + systemMicroseconds)) / 1000;
    onPublished();
  }

  return {
    look,
    onBell(): void {
      bellCount++;
      hasRung = true;
      endPause();
      isBellBroken = false;
      lookWithoutError();
    },
    status: () => status,
    close(): void {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

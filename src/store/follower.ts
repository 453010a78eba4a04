// Keeps the replica, this machine's copy of the table, equal to the store. A look is a query for changes, made once a
// second. Its answer proves that the replica is complete. The bell, a notification from the store, only makes the next
// look begin sooner.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import type { Log } from '../base/log.ts';
import { isRevoked, type Replica, revokeAs } from './replica.ts';
import { type Store, StoreAway } from './store.ts';

export interface FollowerStatus {
  /** The reason why the store is away, so that it cannot be used; undefined when the last look succeeded. */
  readonly away: string | undefined;
  /** Whether a retry is useless until somebody changes something. */
  readonly isFinal: boolean;
  readonly fullReads: number;
  /** How often a look found changes that no bell announced. */
  readonly missedBells: number;
}

export interface Follower {
  /** Looks for changes now. Calls share the next look as long as that look has not begun. @throws StoreAway */
  look(): Promise<void>;
  status(): FollowerStatus;
  close(): void;
}

export interface FollowerOptions {
  readonly store: Store;
  readonly replica: Replica;
  readonly log: Log;
  /** Called after the file of the replica has changed. */
  readonly onPublished: () => void;
  /** Called after each look, whether it succeeded or failed. */
  readonly onLook: () => void;
}

/** Milliseconds between two looks while the bell works. */
const INTERVAL = 1000;
/** Milliseconds between two looks after the bell has missed a change. */
const INTERVAL_WITHOUT_BELL = 250;
/** Milliseconds until the next look while the store is away. */
const RETRY = 250;
/**
 * The pause after a write of the file, as a multiple of the processor time of that write. So at most a fifth of the
 * time is spent on writing, however many changes come. The time on the clock would be the wrong measure: on a busy
 * machine it contains the time of other processes, and would delay the next change.
 */
const PUBLISH_PAUSE = 4;
/** The most lost revocations that are written to the store at once. */
const RESTORED_AT_ONCE = 1000;

export function createFollower({ store, replica, log, onPublished, onLook }: FollowerOptions): Follower {
  let status: FollowerStatus = { away: undefined, isFinal: false, fullReads: 0, missedBells: 0 };
  let bells = 0;
  /** Whether the bell has rung since the last look began. */
  let isRung = false;
  /** Whether the bell has missed a change and has not rung since. Then looks are more frequent. */
  let isDeaf = false;
  let awaySince: number | undefined;
  let isClosed = false;
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let publishPause = 0;
  let publishedAt = Number.NEGATIVE_INFINITY;

  const stopBell = store.bell?.(() => {
    bells++;
    isRung = true;
    isDeaf = false;
    look().catch(() => {});
  });
  schedule(0);

  function look(): Promise<void> {
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return lookNow();
      });
    running = next;
    return next;
  }

  async function lookNow(): Promise<void> {
    try {
      const begun = performance.now();
      const isChanged = await update();
      if (isChanged) await sleep(Math.max(0, publishedAt + publishPause - performance.now()));
      // Publishes even without a change in the store, because the list of `revoke --here` may have changed.
      publish();
      replica.prove();
      if (awaySince !== undefined) log.info('store-back', { away_seconds: Math.round((begun - awaySince) / 1000) });
      awaySince = undefined;
      status = { ...status, away: undefined, isFinal: false };
      // A failure here does not make the store away, because the store may only be read-only for now. The next look
      // tries again.
      await restoreRevocations().catch(() => {});
    } catch (error) {
      const reason = (error as Error).message;
      if (status.away !== reason) log.error('store-away', { reason, age_seconds: ageInSeconds() });
      awaySince ??= performance.now();
      status = { ...status, away: reason, isFinal: !(error instanceof StoreAway) || error.isFinal };
      throw error instanceof StoreAway ? error : new StoreAway(reason, { cause: error });
    } finally {
      onLook();
      if (!isClosed) schedule(status.away === undefined ? (isDeaf ? INTERVAL_WITHOUT_BELL : INTERVAL) : RETRY);
    }
  }

  function ageInSeconds(): number | null {
    const age = replica.age();
    return Number.isFinite(age) ? Math.round(age / 1000) : null;
  }

  function schedule(pause: number): void {
    clearTimeout(timer);
    // The pause is partly random. Otherwise all machines that lost the store at the same moment would return at the
    // same moment.
    timer = setTimeout(() => void look().catch(() => {}), pause * (0.8 + 0.4 * Math.random()));
  }

  /** Fetches all changes from the store. @returns whether the replica has changed */
  async function update(): Promise<boolean> {
    let isChanged = false;
    // While the connection is lost, no bell can be heard. So the changes of that time do not count as missed by the
    // bell.
    const isAnnounced = isRung || status.away !== undefined;
    isRung = false;
    for (;;) {
      const version = replica.version();
      const changes = version === undefined ? undefined : await store.since('keys', version);
      if (changes === undefined) {
        const snapshot = await store.read('keys');
        status = { ...status, fullReads: status.fullReads + 1 };
        if (version !== undefined) log.warn('store-history-changed', { rows: snapshot.entries.size });
        replica.replaceAll(snapshot);
        isChanged = true;
        continue;
      }
      if (changes.changes.length > 0) {
        if (!isAnnounced && !isRung && !isChanged) void countMissedBell(bells);
        isChanged = true;
      }
      replica.apply(changes);
      if (changes.isComplete) return isChanged;
    }
  }

  /**
   * Counts a change that no bell has announced. The bell of a change may also come after the look that found the
   * change. If no bell comes within the interval of a look, the bell is missed.
   */
  async function countMissedBell(before: number): Promise<void> {
    if (store.bell === undefined || status.away !== undefined) return;
    await sleep(INTERVAL, undefined, { ref: false });
    if (bells !== before || status.away !== undefined) return;
    status = { ...status, missedBells: status.missedBells + 1 };
    if (!isDeaf) log.warn('store-bell-missing', { effect: 'changes are found four times a second' });
    isDeaf = true;
  }

  /**
   * Writes the revocations that the store has lost, all in one write. If another machine was faster, this write does
   * nothing, and the update after it fetches the rows of that machine.
   */
  async function restoreRevocations(): Promise<void> {
    const lost = [...replica.lostRevocations()].slice(0, RESTORED_AT_ONCE);
    if (lost.length === 0) return;
    const { entries } = await store.read(
      'keys',
      lost.map(([name]) => name),
    );
    const changes = lost.flatMap(([name, revoked]) => {
      const { version: is = '', value } = entries.get(name) ?? {};
      return value === undefined || isRevoked(value) ? [] : [{ name, is, value: revokeAs(revoked, value) }];
    });
    if (changes.length > 0 && (await store.write('keys', changes, crypto().randomUUID())))
      for (const { name } of changes) log.warn('store-revocation-restored', { id: name });
    await update();
  }

  function publish(): void {
    const before = process.cpuUsage();
    if (!replica.publish()) return;
    const { user, system } = process.cpuUsage(before);
    publishedAt = performance.now();
    publishPause = (PUBLISH_PAUSE * (user + system)) / 1000;
    onPublished();
  }

  return {
    look,
    status: () => status,
    close() {
      isClosed = true;
      clearTimeout(timer);
      stopBell?.();
    },
  };
}

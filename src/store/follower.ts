// Keeps the replica, which is this machine's copy of the credentials table, equal to the store. About once a second it
// makes a look: a query for changes, whose answer proves that the replica is complete. The bell, a notification from
// the store, only makes the next look begin sooner. The store is away when it cannot be used.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import type { Log } from '../base/log.ts';
import { isRevoked, type Replica, revokeAs } from './replica.ts';
import { type Store, StoreAway } from './store.ts';

export interface FollowerStatus {
  /** The reason why the store cannot be used; undefined when the last look succeeded. */
  readonly away: string | undefined;
  /** Whether a retry is useless until somebody changes something. */
  readonly isFinal: boolean;
  readonly fullReads: number;
  /** How often a look found changes that no bell announced. */
  readonly missedBells: number;
}

export interface Follower {
  /** Makes a look after the one that is running. All calls until then share this look. @throws StoreAway */
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

/** Milliseconds from the end of a look to the next one while the bell works. */
const INTERVAL = 1000;
/** The same after a change that no bell announced. */
const INTERVAL_WITHOUT_BELL = 250;
/** The same while the store is away. */
const RETRY = 250;
/**
 * The pause after a write of the file, as a multiple of the processor time of that write. So at most a fifth of the
 * processor is spent on writing, however many changes come. Elapsed time would include the time of other processes on a
 * busy machine, and would delay the next change.
 */
const PUBLISH_PAUSE = 4;
/** At most this many lost revocations are written back to the store in one write. */
const MAX_RESTORED = 1000;

export function createFollower({ store, replica, log, onPublished, onLook }: FollowerOptions): Follower {
  let status: FollowerStatus = { away: undefined, isFinal: false, fullReads: 0, missedBells: 0 };
  let bells = 0;
  /** Whether the bell has rung since the last look began. */
  let hasRung = false;
  /** Whether the bell has not rung since a change that it did not announce. Looks are then more frequent. */
  let missesBells = false;
  let awaySince: number | undefined;
  let isClosed = false;
  let lastLook: Promise<void> = Promise.resolve();
  let nextLook: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let publishPause = 0;
  let publishedAt = Number.NEGATIVE_INFINITY;

  const stopBell = store.onBell?.(() => {
    bells++;
    hasRung = true;
    missesBells = false;
    look().catch(() => {});
  });
  schedule(0);

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
      const isChanged = await update();
      if (isChanged) await sleep(Math.max(0, publishedAt + publishPause - performance.now()));
      // The file also includes the revocations by `revoke --here`, which can change without a change in the store.
      publish();
      replica.markComplete();
      if (awaySince !== undefined) log.info('store-back', { away_seconds: Math.round((beganAt - awaySince) / 1000) });
      awaySince = undefined;
      status = { ...status, away: undefined, isFinal: false };
      // A failed restore does not count as away: the store can be readable but not writable. The next look tries again.
      await restoreRevocations().catch(() => {});
    } catch (error) {
      const reason = (error as Error).message;
      if (status.away !== reason) log.error('store-away', { reason, age_seconds: ageInSeconds() });
      awaySince ??= performance.now();
      status = { ...status, away: reason, isFinal: !(error instanceof StoreAway) || error.isFinal };
      throw error instanceof StoreAway ? error : new StoreAway(reason, { cause: error });
    } finally {
      onLook();
      if (!isClosed) schedule(status.away === undefined ? (missesBells ? INTERVAL_WITHOUT_BELL : INTERVAL) : RETRY);
    }
  }

  function ageInSeconds(): number | null {
    const age = replica.age();
    return Number.isFinite(age) ? Math.round(age / 1000) : null;
  }

  function schedule(pause: number): void {
    clearTimeout(timer);
    // The pause is partly random, so that machines that lost the store at the same moment do not all return together.
    timer = setTimeout(() => void look().catch(() => {}), pause * (0.8 + 0.4 * Math.random()));
  }

  /** Fetches all changes from the store. @returns whether the replica has changed */
  async function update(): Promise<boolean> {
    let isChanged = false;
    // While the store is away, no bell arrives. So the changes of that time do not count as missed.
    const isAnnounced = hasRung || status.away !== undefined;
    hasRung = false;
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
        if (!isAnnounced && !hasRung && !isChanged) void countMissedBell(bells);
        isChanged = true;
      }
      replica.apply(changes);
      if (changes.isComplete) return isChanged;
    }
  }

  /**
   * Counts a missed bell, unless the bell still rings within a second after the look that found the change.
   *
   * @param bellsBefore how often the bell had rung when the look found the change
   */
  async function countMissedBell(bellsBefore: number): Promise<void> {
    if (store.onBell === undefined || status.away !== undefined) return;
    await sleep(INTERVAL, undefined, { ref: false });
    if (bells !== bellsBefore || status.away !== undefined) return;
    status = { ...status, missedBells: status.missedBells + 1 };
    if (!missesBells) log.warn('store-bell-missing', { effect: 'changes are found four times a second' });
    missesBells = true;
  }

  /**
   * Writes revocations that the store has lost back to it, in one write. If another machine was faster, nothing is
   * written, and the update afterwards fetches the rows of that machine.
   */
  async function restoreRevocations(): Promise<void> {
    const lost = [...replica.lostRevocations()].slice(0, MAX_RESTORED);
    if (lost.length === 0) return;
    const { entries } = await store.read(
      'keys',
      lost.map(([name]) => name),
    );
    const changes = lost.flatMap(([name, revoked]) => {
      const { version: expectedVersion = '', value } = entries.get(name) ?? {};
      return value === undefined || isRevoked(value)
        ? []
        : [{ name, expectedVersion, value: revokeAs(revoked, value) }];
    });
    if (changes.length > 0 && (await store.write('keys', changes, crypto().randomUUID())))
      for (const { name } of changes) log.warn('store-revocation-restored', { id: name });
    await update();
  }

  function publish(): void {
    const cpuBefore = process.cpuUsage();
    if (!replica.publish()) return;
    const { user, system } = process.cpuUsage(cpuBefore);
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

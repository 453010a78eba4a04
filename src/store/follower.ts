// Keeps the replica equal to the store. A look each second asks for changes, and its empty answer proves that the
// replica is complete. The bell only begins the next look sooner.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import type { Log } from '../base/log.ts';
import { isRevoked, type Replica, revokeAs } from './replica.ts';
import { type Store, StoreAway } from './store.ts';

export interface FollowerStatus {
  /** Why the store is away; undefined: the last look succeeded. */
  readonly away: string | undefined;
  /** To retry is useless until somebody changes something. */
  readonly isFinal: boolean;
  readonly fullReads: number;
  /** Changes that a look found and no bell announced. */
  readonly missedBells: number;
}

export interface Follower {
  /** Looks now. Calls that come before a look begins share it. @throws StoreAway */
  look(): Promise<void>;
  status(): FollowerStatus;
  close(): void;
}

export interface FollowerOptions {
  readonly store: Store;
  readonly replica: Replica;
  readonly log: Log;
  /** The file of the replica has changed. */
  readonly onPublished: () => void;
  /** A look has ended, well or not. */
  readonly onLook: () => void;
}

/** Milliseconds between two looks; while the bell does not ring; and while the store is away. */
const INTERVAL = 1000;
const INTERVAL_WITHOUT_BELL = 250;
const RETRY = 250;
/** The file is written for at most a fifth of the time, however many changes come. */
const PUBLISH_PAUSE = 4;
const RESTORED_AT_ONCE = 1000;

export function createFollower({ store, replica, log, onPublished, onLook }: FollowerOptions): Follower {
  let status: FollowerStatus = { away: undefined, isFinal: false, fullReads: 0, missedBells: 0 };
  let bells = 0;
  /** The bell has rung since the last look began. */
  let isRung = false;
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
      // Also without a change: the list of `revoke --here` may be a new one.
      publish();
      replica.prove();
      if (awaySince !== undefined) log.info('store-back', { away_seconds: Math.round((begun - awaySince) / 1000) });
      awaySince = undefined;
      status = { ...status, away: undefined, isFinal: false };
      // A store that is read-only for now is not away. The next look writes them.
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
    // Machines that lost the store at the same moment must not come back at the same moment.
    timer = setTimeout(() => void look().catch(() => {}), pause * (0.8 + 0.4 * Math.random()));
  }

  /** @returns whether the replica has changed */
  async function update(): Promise<boolean> {
    let isChanged = false;
    // While a connection is lost, no bell is heard.
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
      if (changes.changes.length === 0) return isChanged;
    }
  }

  /** The bell of a change may come after the look that found it. Without one in the next second, none comes. */
  async function countMissedBell(before: number): Promise<void> {
    if (store.bell === undefined || status.away !== undefined) return;
    await sleep(INTERVAL, undefined, { ref: false });
    if (bells !== before || status.away !== undefined) return;
    status = { ...status, missedBells: status.missedBells + 1 };
    if (!isDeaf) log.warn('store-bell-missing', { effect: 'changes are found four times a second' });
    isDeaf = true;
  }

  /** Writes revocations that the store has lost, all at once. If another machine was first, a look finds that. */
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
    const begun = performance.now();
    if (!replica.publish()) return;
    publishedAt = performance.now();
    publishPause = PUBLISH_PAUSE * (publishedAt - begun);
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

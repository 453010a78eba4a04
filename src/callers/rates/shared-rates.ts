// Shares the rates with other machines through a database, the store. The ledger has the tokens of all callers on this
// machine, and answers the workers at once, without waiting for the store. The spent tokens are sent to the store ten
// times a second, and sooner when a caller has spent many. The store replies with the tokens that are left after the
// requests of all machines. Tokens that two machines spend at the same time become a debt, so a rate is exact over
// about a second. While the store cannot be reached, each machine enforces an equal part of each rate.
import type { Rate } from '../../base/rate.ts';
import { isValue, MAX_CALLERS, MAX_VALUES } from './bucket.ts';
import { callLater, type RateLimiterOptions, type Spending } from './rate-limiter.ts';
import { createLedger, type Ledger } from './supervisor-rates.ts';

export interface SharedRatesOptions extends Pick<RateLimiterOptions, 'now' | 'later'> {
  /** Subtracts spent tokens at the store. @returns the tokens left; undefined when the store does not answer */
  readonly spend: (spendings: readonly Spending[]) => Promise<readonly number[] | undefined>;
  /** Returns how many machines share the rates, with this one. */
  readonly machineCount: () => number;
}

/** Milliseconds from one report to the next, unless the next one is urgent. */
const REPORT_INTERVAL = 100;
/** Milliseconds from one report to the next when the next one is urgent. */
const URGENT_INTERVAL = 10;
/** A report is urgent when a caller has spent this part of its burst since the last report. */
const URGENT_PART = 0.25;
/** Maximum number of callers in one report. The others are in the next report. */
const CALLERS_PER_REPORT = 1000;

export function createSharedLedger(options: SharedRatesOptions): Pick<Ledger, 'spend'> {
  const { spend: spendAtStore, machineCount, now = () => performance.now(), later = callLater } = options;
  let isStoreUnreachable = false;
  const ledger = createLedger({ now, machineCount: () => (isStoreUnreachable ? Math.max(1, machineCount()) : 1) });
  /** The tokens that each caller has spent since the last report, by the key of the caller. */
  const unreported = new Map<string, { spent: number; rate: Rate }>();
  let isReporting = false;
  let reportedAt = Number.NEGATIVE_INFINITY;
  /** The time at which the next report is due; infinite when no report is scheduled. */
  let dueAt = Number.POSITIVE_INFINITY;

  function schedule(isUrgent: boolean): void {
    if (isReporting) return;
    const time = now();
    const reportAt = Math.max(time, reportedAt + (isUrgent ? URGENT_INTERVAL : REPORT_INTERVAL));
    if (reportAt >= dueAt) return;
    dueAt = reportAt;
    later(() => {
      // If an urgent report was scheduled after this timer was set, `dueAt` has changed, and this timer does nothing.
      if (dueAt === reportAt) void report();
    }, reportAt - time);
  }

  async function report(): Promise<void> {
    dueAt = Number.POSITIVE_INFINITY;
    isReporting = true;
    reportedAt = now();
    const reported: [string, { spent: number; rate: Rate }][] = [];
    for (const entry of unreported) {
      if (reported.push(entry) === CALLERS_PER_REPORT) break;
    }
    for (const [callerKey] of reported) unreported.delete(callerKey);
    const tokens = await spendAtStore(
      reported.map(([callerKey, { spent, rate }]) => [callerKey, spent, rate.count, rate.seconds, rate.burst]),
    ).catch(() => undefined);
    isReporting = false;
    // Tokens of a failed report are not sent again. Until one succeeds, this machine enforces its part of each rate.
    isStoreUnreachable = tokens === undefined;
    for (const [index, [callerKey]] of reported.entries()) {
      const tokensLeft = tokens?.[index];
      if (tokensLeft !== undefined) ledger.replaceTokens(callerKey, tokensLeft, unreported.get(callerKey)?.spent ?? 0);
    }
    if (unreported.size > 0) schedule(false);
  }

  return {
    spend(spendings) {
      let isUrgent = false;
      for (const [callerKey, spent, count, seconds, burst] of spendings) {
        // Clients can make up callers without end. While the store is slow, only this machine counts the further ones.
        const limit = isValue(callerKey) ? MAX_VALUES : MAX_CALLERS;
        if (unreported.size >= limit && !unreported.has(callerKey)) continue;
        const sum = (unreported.get(callerKey)?.spent ?? 0) + spent;
        unreported.set(callerKey, { spent: sum, rate: { count, seconds, burst } });
        isUrgent ||= sum >= URGENT_PART * burst;
      }
      if (spendings.length > 0) schedule(isUrgent);
      return ledger.spend(spendings);
    },
  };
}

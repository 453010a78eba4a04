// The supervisor's half of rate limiting: what each caller has left with what all workers have spent. It outlives
// generations.
import type { Rate } from '../base/rate.ts';
import { createBoundedMap } from './bounded-map.ts';
import { type Bucket, fullBucket, MOST_CALLERS, refill } from './bucket.ts';
import type { Balance, Spending } from './rate-limiter.ts';

export interface Ledger {
  /**
   * @returns what is left of each; to a report of nothing, which a new worker sends, of those who have spent most of
   * theirs
   */
  spend(spendings: readonly Spending[]): Balance[];
}

interface Account extends Bucket {
  rate: Rate;
}

/** A caller owes at most so many bursts: whatever goes wrong, nobody is locked out for long. */
const MOST_DEBT = 2;
/** That a new worker is told of; of the others it learns when they call. */
const MOST_TOLD = 1000;

export function createLedger(now: () => number = () => performance.now()): Ledger {
  const accounts = createBoundedMap<Account>(MOST_CALLERS);

  function spend([caller, spent, count, seconds, burst]: Spending, time: number): Balance {
    const rate = { count, seconds, burst };
    let account = accounts.get(caller);
    if (account === undefined) {
      account = { rate, ...fullBucket(rate, time) };
      accounts.set(caller, account);
    }
    account.rate = rate;
    refill(account, rate, time);
    account.tokens = Math.max(-MOST_DEBT * burst, account.tokens - spent);
    return [caller, account.tokens, count, seconds, burst];
  }

  function mostSpent(time: number): Balance[] {
    const told: Balance[] = [];
    for (const [caller, account] of accounts.entries()) {
      const { count, seconds, burst } = account.rate;
      refill(account, account.rate, time);
      if (account.tokens < burst / 2) told.push([caller, account.tokens, count, seconds, burst]);
      if (told.length >= MOST_TOLD) break;
    }
    return told;
  }

  return {
    spend(spendings) {
      const time = now();
      return spendings.length === 0 ? mostSpent(time) : spendings.map((spending) => spend(spending, time));
    },
  };
}

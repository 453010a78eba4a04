// The supervisor's half of rate limiting: the ledger. It holds the tokens of each caller, and subtracts the tokens that
// the workers report as spent. The ledger lives as long as the supervisor, so a reload of the controllers resets no
// limit. Machines can share their rates in a database, the store (shared-rates.ts). Then the store counts the tokens of
// all machines, and its replies replace the tokens of the ledger.

import type { Rate } from '../../base/rate.ts';
import { type Bucket, createCallerMap, fullBucket, refill } from './bucket.ts';
import type { Balance, Spending } from './rate-limiter.ts';

export type Ledger = ReturnType<typeof createLedger>;

interface Account extends Bucket {
  rate: Rate;
}

export interface LedgerOptions {
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
  /** Returns among how many machines each rate is divided: 1 while the store counts for all of them. */
  readonly machineCount?: () => number;
}

/**
 * The lowest number of tokens is -100 times the burst. The limit bounds the wait of a caller after a count that was far
 * too high. A true count stays above the limit: a caller who reaches all workers at once spends a burst in each.
 */
const MAX_DEBT = 100;
/** Maximum balances in the reply to a new worker. It gets any other one when it reports a request of that caller. */
const MAX_INITIAL_BALANCES = 1000;

export function createLedger({ now = () => performance.now(), machineCount = () => 1 }: LedgerOptions = {}) {
  const accounts = createCallerMap<Account>();

  function subtract([callerKey, spent, count, seconds, burst]: Spending, time: number): Balance {
    const rate = { count, seconds, burst };
    const account = accounts.get(callerKey) ?? { rate, ...fullBucket(rate, time) };
    accounts.set(callerKey, account);
    account.rate = rate;
    refill(account, machineShare(rate), time);
    // `spent` is negative when more tokens were given back than taken.
    account.tokens = Math.min(burst, Math.max(-MAX_DEBT * burst, account.tokens - spent));
    return [callerKey, account.tokens, count, seconds, burst];
  }

  /** Returns the part of a rate that this machine enforces. */
  function machineShare(rate: Rate): Rate {
    const machines = machineCount();
    return { ...rate, count: rate.count / machines, burst: Math.max(1, rate.burst / machines) };
  }

  function lowBalances(time: number): Balance[] {
    const balances: Balance[] = [];
    for (const [callerKey, account] of accounts.entries()) {
      const { count, seconds, burst } = account.rate;
      refill(account, machineShare(account.rate), time);
      if (account.tokens < burst / 2) balances.push([callerKey, account.tokens, count, seconds, burst]);
      if (balances.length >= MAX_INITIAL_BALANCES) break;
    }
    return balances;
  }

  return {
    /**
     * Subtracts reported tokens, and returns those that these callers have left. A new worker sends an empty report,
     * and gets the tokens of the callers that have less than half of their burst.
     */
    spend(spendings: readonly Spending[]): Balance[] {
      const time = now();
      return spendings.length === 0 ? lowBalances(time) : spendings.map((spending) => subtract(spending, time));
    },
    /** Replaces the tokens of a caller with those of all machines. @param spent those that the store has not counted */
    replaceTokens(callerKey: string, tokens: number, spent: number): void {
      const account = accounts.get(callerKey);
      if (account === undefined) return;
      account.tokens = tokens - spent;
      account.updatedAt = now();
    },
  };
}

// The supervisor's half of rate limiting. The ledger holds the tokens of each caller, and subtracts the tokens that all
// workers have spent. The ledger lives as long as the supervisor, so a reload of the folder resets no limit. If
// machines share their rates (shared-rates.ts), each reply of the store replaces the tokens here.
import type { Rate } from '../base/rate.ts';
import { createBoundedMap } from './bounded-map.ts';
import { type Bucket, fullBucket, MAX_CALLERS, refill } from './bucket.ts';
import type { Balance, Spending } from './rate-limiter.ts';

export interface Ledger {
  /**
   * Subtracts the tokens that a worker reports as spent.
   *
   * @returns the balances of the reported callers. An empty report comes from a new worker: the reply then has the
   *   balances of callers that have less than half of their burst
   */
  spend(spendings: readonly Spending[]): Balance[];
  /**
   * Replaces the tokens of a caller with the number that the store returned for all machines.
   *
   * @param spent the tokens that this machine has spent and the store has not counted yet
   */
  replaceTokens(caller: string, tokens: number, spent: number): void;
}

interface Account extends Bucket {
  rate: Rate;
}

export interface LedgerOptions {
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
  /**
   * Returns the divisor of each rate. While machines cannot share their rates, the divisor is the number of machines.
   */
  readonly divisor?: () => number;
}

/**
 * Maximum debt of a caller, as a multiple of its burst. The limit makes sure that an error locks nobody out for long.
 */
const MAX_DEBT = 2;
/**
 * Maximum number of balances in the reply to a new worker. The worker gets each other balance when its caller calls.
 */
const MAX_INITIAL_BALANCES = 1000;

export function createLedger({ now = () => performance.now(), divisor = () => 1 }: LedgerOptions = {}): Ledger {
  const accounts = createBoundedMap<Account>(MAX_CALLERS);

  function spend([caller, spent, count, seconds, burst]: Spending, time: number): Balance {
    const rate = { count, seconds, burst };
    let account = accounts.get(caller);
    if (account === undefined) {
      account = { rate, ...fullBucket(rate, time) };
      accounts.set(caller, account);
    }
    account.rate = rate;
    refill(account, ownPart(rate), time);
    account.tokens = Math.max(-MAX_DEBT * burst, account.tokens - spent);
    return [caller, account.tokens, count, seconds, burst];
  }

  function ownPart(rate: Rate): Rate {
    const parts = divisor();
    return parts === 1 ? rate : { ...rate, count: rate.count / parts, burst: Math.max(1, rate.burst / parts) };
  }

  function lowBalances(time: number): Balance[] {
    const balances: Balance[] = [];
    for (const [caller, account] of accounts.entries()) {
      const { count, seconds, burst } = account.rate;
      refill(account, ownPart(account.rate), time);
      if (account.tokens < burst / 2) balances.push([caller, account.tokens, count, seconds, burst]);
      if (balances.length >= MAX_INITIAL_BALANCES) break;
    }
    return balances;
  }

  return {
    spend(spendings) {
      const time = now();
      return spendings.length === 0 ? lowBalances(time) : spendings.map((spending) => spend(spending, time));
    },
    replaceTokens(caller, tokens, spent) {
      const account = accounts.get(caller);
      if (account === undefined) return;
      account.tokens = tokens - spent;
      account.updatedAt = now();
    },
  };
}

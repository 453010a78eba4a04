// A worker's half of rate limiting. Each request costs its caller a token. The worker decides at once, from its own
// memory: it takes the balance (the tokens left) that the supervisor sent last, adds the tokens gained since then, and
// subtracts the tokens spent since then. A few milliseconds later, the worker reports the spent tokens. The supervisor
// replies with the balance after the requests of all workers. Between two reports, two workers can spend the same
// token. The balance is then negative and the caller has to wait, so the rate is exact over about a second.

import { createBoundedMap } from '../../base/bounded-map.ts';
import { refusal } from '../../base/errors.ts';
import type { Rate } from '../../base/rate.ts';
import { type Bucket, callerKey, createCallerMap, fullBucket, refill } from './bucket.ts';

/** The caller whose requests a limit counts: a key, an address, or either of them at one operation. */
export type LimitKind = 'credential' | 'address' | 'operation';

/** The tokens that a caller has spent in this worker since its last report. */
export type Spending = readonly [callerKey: string, spent: number, ...rate: FlatRate];
/** The tokens that a caller has left after the requests of all workers. The number can be negative. */
export type Balance = readonly [callerKey: string, tokens: number, ...rate: FlatRate];
type FlatRate = readonly [count: number, seconds: number, burst: number];

export interface RateLimiterOptions {
  /** Sends a report to the supervisor; undefined without a supervisor. An empty report asks for all low balances. */
  readonly report?: ((spendings: readonly Spending[]) => void) | undefined;
  /** The number of workers that share the tokens. */
  readonly workers?: number;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
  /** Calls back after a delay that does not keep the process alive. */
  readonly later?: (callback: () => void, milliseconds: number) => void;
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

export interface Account extends Bucket {
  readonly callerKey: string;
  rate: Rate;
  /** Spent tokens that are in no report yet. */
  unreported: number;
  /** Tokens that were spent since the supervisor sent the last balance. */
  spentSinceBalance: number;
}

/** The tokens that a request needs: 1, minus a margin for the rounding errors of added fractions. */
const NEARLY_ONE_TOKEN = 1 - 1e-6;
/** A share of fewer tokens is small. `isBeyondShare` and `isUrgent` have looser rules for small shares. */
const SMALL_SHARE = 8;
/** Milliseconds from one report to the next, unless the next one is urgent. */
const REPORT_INTERVAL = 4;

export function createRateLimiter(options: RateLimiterOptions = {}) {
  const { report, workers = 1, now = () => performance.now(), later = callLater } = options;
  const refused: Record<LimitKind, number> = { credential: 0, address: 0, operation: 0 };
  const accounts = createCallerMap<Account>();
  let unreportedAccounts = new Set<Account>();
  /** The delay of the scheduled report in milliseconds; infinite when none is scheduled. */
  let scheduledDelay = Number.POSITIVE_INFINITY;
  let isReplyDue = false;
  /** When the last report was sent. At first, the value makes the first report due at once. */
  let reportedAt = Number.NEGATIVE_INFINITY;

  /**
   * Takes a token, or refuses the request.
   *
   * @param name the name of the caller, unique among the callers of its kind
   * @param kind `by` for a value that the function `by` of an operation returns
   * @returns the account that has paid the token, for `giveBack`
   * @throws HttpError RATE_LIMITED, with the headers that say when to retry
   */
  function check(kind: LimitKind | 'by', name: string, rate: Rate): Account {
    const time = now();
    const account = accountOf(callerKey(kind, name), rate, time);
    account.rate = rate;
    refill(account, rate, time);
    if (account.tokens < NEARLY_ONE_TOKEN || isBeyondShare(account)) {
      const limitKind = kind === 'by' ? 'operation' : kind;
      refused[limitKind]++;
      throw rateLimitError(limitKind, rate, account.tokens);
    }
    account.tokens--;
    if (report === undefined) return account;
    account.spentSinceBalance++;
    account.unreported++;
    unreportedAccounts.add(account);
    scheduleReport(time, isUrgent(account));
    return account;
  }

  function giveBack(account: Account): void {
    // The next `refill` cuts the tokens to the burst.
    account.tokens++;
    if (report === undefined) return;
    account.spentSinceBalance--;
    account.unreported--;
    unreportedAccounts.add(account);
    scheduleReport(now(), false);
  }

  function accountOf(key: string, rate: Rate, time: number): Account {
    let account = accounts.get(key);
    if (account === undefined) {
      account = { callerKey: key, rate, unreported: 0, spentSinceBalance: 0, ...fullBucket(rate, time) };
      accounts.set(key, account);
    }
    return account;
  }

  /**
   * Returns whether the worker has spent its share of the last balance. All workers get the same balance, so each may
   * spend only a share, two thirds of an equal part, before the next balance arrives. A share of fewer than SMALL_SHARE
   * tokens is enforced only when at most an eighth of the burst is left. So a caller with five requests an hour may
   * send them one after the other through one worker.
   */
  function isBeyondShare({ tokens, spentSinceBalance, rate: { burst } }: Account): boolean {
    const balance = tokens + spentSinceBalance;
    const share = workers === 1 ? balance : balance / (1.5 * workers);
    return spentSinceBalance > 0 && spentSinceBalance + 1 > share && (share >= SMALL_SHARE || balance <= burst / 8);
  }

  /** Returns whether the worker has spent a quarter of its equal part of the last balance, and so needs a new one. */
  function isUrgent({ tokens, spentSinceBalance, rate: { burst } }: Account): boolean {
    return burst >= SMALL_SHARE * workers && spentSinceBalance * 4 * workers >= tokens + spentSinceBalance;
  }

  /** Schedules a report. An urgent report does not wait until REPORT_INTERVAL has passed since the last report. */
  function scheduleReport(time: number, isReportUrgent: boolean): void {
    const delay = isReportUrgent || time - reportedAt >= REPORT_INTERVAL ? 0 : REPORT_INTERVAL;
    if (delay >= scheduledDelay) return;
    scheduledDelay = delay;
    later(sendReport, delay);
  }

  function sendReport(): void {
    scheduledDelay = Number.POSITIVE_INFINITY;
    // A report is sent only after the reply to the last one. So a reply counts all spent tokens except `unreported`.
    if (isReplyDue) return;
    const spendings: Spending[] = [];
    for (const account of unreportedAccounts) {
      if (account.unreported === 0) continue;
      const { count, seconds, burst } = account.rate;
      spendings.push([account.callerKey, account.unreported, count, seconds, burst]);
      account.unreported = 0;
    }
    unreportedAccounts = new Set();
    // An empty report would ask for all low balances.
    if (spendings.length === 0) return;
    isReplyDue = true;
    reportedAt = now();
    report?.(spendings);
  }

  report?.([]);
  return {
    check,
    giveBack,
    /** Stores the balances that the supervisor sends in reply to a report. */
    applyBalances(balances: readonly Balance[]): void {
      const time = now();
      for (const [callerKey, tokens, count, seconds, burst] of balances) {
        const account = accountOf(callerKey, { count, seconds, burst }, time);
        account.tokens = tokens - account.unreported;
        account.spentSinceBalance = account.unreported;
        account.updatedAt = time;
      }
      isReplyDue = false;
      if (unreportedAccounts.size > 0) scheduleReport(time, [...unreportedAccounts].some(isUrgent));
    },
    /** Returns the refusals so far by kind, and the number of callers in memory. */
    status: () => ({ refused, callers: accounts.size() }),
  };
}

export function callLater(callback: () => void, milliseconds: number): void {
  if (milliseconds === 0) setImmediate(callback);
  else setTimeout(callback, milliseconds).unref();
}

/** 100 errors that were thrown lately, by their content. They are thrown again, because creating an Error is slow. */
const recentErrors = createBoundedMap<Error>(100);

function rateLimitError(kind: LimitKind, { count, seconds }: Rate, tokens: number): Error {
  const wait = Math.max(1, Math.ceil(((NEARLY_ONE_TOKEN - tokens) * seconds) / count));
  const key = `${kind} ${count} ${seconds} ${wait}`;
  const cached = recentErrors.get(key);
  if (cached !== undefined) return cached;
  const error = refusal('RATE_LIMITED', undefined, {
    // The headers follow draft-ietf-httpapi-ratelimit-headers. They have the tokens that are left (r), the seconds to
    // wait (t), the number of requests (q), and the seconds for them (w).
    headers: {
      'Retry-After': String(wait),
      RateLimit: `"${kind}";r=0;t=${wait}`,
      'RateLimit-Policy': `"${kind}";q=${count};w=${seconds}`,
    },
  });
  recentErrors.set(key, Object.freeze(error));
  return error;
}

// A worker's half of rate limiting. Each request costs its caller a token. The worker decides at once, from its own
// memory: it takes the balance (the tokens left) that the supervisor sent last, adds the tokens gained since, and
// subtracts the tokens that it has spent since. A few milliseconds later, the worker reports what it has spent. The
// supervisor replies with the balance after the requests of all workers. Between two reports, two workers can spend the
// same token. The balance is then negative and the caller has to wait, so the rate is exact over about a second.
import { refusal } from '../base/errors.ts';
import type { Rate } from '../base/rate.ts';
import { type BoundedMap, createBoundedMap } from './bounded-map.ts';
import { type Bucket, callerKey, fullBucket, MAX_CALLERS, refill } from './bucket.ts';

/** The subject of a limit. For `operation`, each caller of the operation is counted separately. */
export type LimitKind = 'credential' | 'address' | 'operation';

/** The tokens that a caller has spent in this worker since the report before. */
export type Spending = readonly [callerKey: string, spent: number, ...rate: FlatRate];
/** The tokens that a caller has left after the requests of all workers. The number can be negative. */
export type Balance = readonly [callerKey: string, tokens: number, ...rate: FlatRate];
type FlatRate = readonly [count: number, seconds: number, burst: number];

export interface RateLimiterOptions {
  /**
   * Sends a report to the supervisor. The first report is empty and asks for the balances. `report` is undefined when
   * this process is the only one.
   */
  readonly report?: ((spendings: readonly Spending[]) => void) | undefined;
  /** The number of workers that share the tokens. */
  readonly workers?: number;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
  /** Calls back after a delay that does not keep the process alive. */
  readonly later?: (callback: () => void, milliseconds: number) => void;
}

export interface RateLimiter {
  /**
   * Takes a token, or refuses the request.
   *
   * @param name the name of the caller, unique in its kind
   * @throws HttpError RATE_LIMITED, with the headers that say when to retry
   */
  check(kind: LimitKind, name: string, rate: Rate): void;
  /** Stores the balances that the supervisor sends in reply to a report. */
  applyBalances(balances: readonly Balance[]): void;
  /** Returns the refusals so far by kind, and the number of callers in memory. */
  status(): { readonly refused: Readonly<Record<LimitKind, number>>; readonly callers: number };
}

interface Account extends Bucket {
  readonly callerKey: string;
  rate: Rate;
  /** Tokens that were spent and are not reported yet. */
  unreported: number;
  /** Tokens that were spent since the last balance from the supervisor. */
  spentSinceBalance: number;
}

/** One token, minus a margin for the rounding error of adding fractions. */
const ONE_TOKEN = 1 - 1e-6;
/**
 * The smallest share of a balance, in tokens, that is enforced while the balance is high. When a burst has fewer tokens
 * than this for each worker, its reports are never urgent.
 */
const SMALLEST_SHARE = 8;
/** Milliseconds between two reports, unless one is urgent. */
const REPORT_INTERVAL = 4;

export function createRateLimiter({
  report,
  workers = 1,
  now = () => performance.now(),
  later = callLater,
}: RateLimiterOptions = {}): RateLimiter {
  const refused = { credential: 0, address: 0, operation: 0 };
  let accounts: BoundedMap<Account> | undefined;
  let unreportedAccounts: Account[] = [];
  /** The delay of the next report in milliseconds; infinite when no report is scheduled. */
  let scheduledDelay = Number.POSITIVE_INFINITY;
  let isReplyDue = false;
  let reportedAt = Number.NEGATIVE_INFINITY;

  function check(kind: LimitKind, name: string, rate: Rate): void {
    // The map is created on first use, because most services set no limit.
    accounts ??= createBoundedMap(MAX_CALLERS);
    const key = callerKey(kind, name);
    const time = now();
    let account = accounts.get(key);
    if (account === undefined) {
      account = { callerKey: key, rate, unreported: 0, spentSinceBalance: 0, ...fullBucket(rate, time) };
      accounts.set(key, account);
    }
    account.rate = rate;
    refill(account, rate, time);
    if (account.tokens < ONE_TOKEN || isBeyondShare(account)) {
      refused[kind]++;
      throw rateLimited(kind, rate, account.tokens);
    }
    account.tokens--;
    if (report === undefined) return;
    account.spentSinceBalance++;
    if (account.unreported++ === 0) unreportedAccounts.push(account);
    scheduleReport(time, isUrgent(account));
  }

  /**
   * Returns whether this worker has spent its share of the last balance: two thirds of an equal part. All workers see
   * the same balance, so each worker spends only its share before the next balance arrives. A share below
   * SMALLEST_SHARE is enforced only when at most an eighth of the burst is left. So a caller with five requests an hour
   * may send them in a row.
   */
  function isBeyondShare({ tokens, spentSinceBalance, rate: { burst } }: Account): boolean {
    const balance = tokens + spentSinceBalance;
    const share = workers === 1 ? balance : balance / (1.5 * workers);
    return spentSinceBalance > 0 && spentSinceBalance + 1 > share && (share >= SMALLEST_SHARE || balance <= burst / 8);
  }

  /** Returns whether a quarter of an equal part is spent. Without a new balance, refusals would soon follow. */
  function isUrgent({ tokens, spentSinceBalance, rate: { burst } }: Account): boolean {
    return burst >= SMALLEST_SHARE * workers && spentSinceBalance * 4 * workers >= tokens + spentSinceBalance;
  }

  /** Schedules a report. An urgent report does not wait until REPORT_INTERVAL has passed since the report before. */
  function scheduleReport(time: number, isAtOnce: boolean): void {
    const delay = isAtOnce || time - reportedAt >= REPORT_INTERVAL ? 0 : REPORT_INTERVAL;
    if (delay >= scheduledDelay) return;
    scheduledDelay = delay;
    later(sendReport, delay);
  }

  function sendReport(): void {
    scheduledDelay = Number.POSITIVE_INFINITY;
    // Only one report is under way at a time. So each reply covers all spent tokens except those in `unreported`.
    if (isReplyDue || unreportedAccounts.length === 0) return;
    isReplyDue = true;
    reportedAt = now();
    const spendings = unreportedAccounts.map(
      ({ callerKey, unreported, rate: { count, seconds, burst } }): Spending => [
        callerKey,
        unreported,
        count,
        seconds,
        burst,
      ],
    );
    for (const account of unreportedAccounts) account.unreported = 0;
    unreportedAccounts = [];
    report?.(spendings);
  }

  report?.([]);
  return {
    check,
    applyBalances(balances) {
      const time = now();
      accounts ??= createBoundedMap(MAX_CALLERS);
      for (const [callerKey, tokens, count, seconds, burst] of balances) {
        const account = accounts.get(callerKey);
        if (account === undefined)
          accounts.set(callerKey, {
            callerKey,
            rate: { count, seconds, burst },
            unreported: 0,
            spentSinceBalance: 0,
            tokens,
            updatedAt: time,
          });
        else {
          account.tokens = tokens - account.unreported;
          account.spentSinceBalance = account.unreported;
          account.updatedAt = time;
        }
      }
      isReplyDue = false;
      if (unreportedAccounts.length > 0) scheduleReport(time, unreportedAccounts.some(isUrgent));
    },
    status: () => ({ refused, callers: accounts?.size() ?? 0 }),
  };
}

function callLater(callback: () => void, milliseconds: number): void {
  if (milliseconds === 0) setImmediate(callback);
  else setTimeout(callback, milliseconds).unref();
}

/**
 * Refusals by their content. During a flood, the same refusal is thrown again, because creating the stack of an Error
 * is slow. When the map is full, it is emptied.
 */
const refusals = new Map<string, Error>();
const MAX_REFUSALS = 100;

function rateLimited(kind: LimitKind, { count, seconds }: Rate, tokens: number): Error {
  const wait = Math.max(1, Math.ceil(((ONE_TOKEN - tokens) * seconds) / count));
  const key = `${kind} ${count} ${seconds} ${wait}`;
  const cached = refusals.get(key);
  if (cached !== undefined) return cached;
  if (refusals.size >= MAX_REFUSALS) refusals.clear();
  const error = refusal('RATE_LIMITED', undefined, {
    // The headers follow draft-ietf-httpapi-ratelimit-headers: the tokens left (r), the seconds to wait (t), and the
    // limit.
    headers: {
      'Retry-After': String(wait),
      RateLimit: `"${kind}";r=0;t=${wait}`,
      'RateLimit-Policy': `"${kind}";q=${count};w=${seconds}`,
    },
  });
  refusals.set(key, Object.freeze(error));
  return error;
}

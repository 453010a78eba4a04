// A worker's half of rate limiting: decides at once, out of its own memory. It knows of each caller how many tokens
// were left when the supervisor said so last, what has been added since by the rate, and what it has spent itself. What
// it spends it tells the supervisor a few milliseconds later, and is told what is left with what all other workers have
// spent. Two workers that spend the same token in between owe it: for a while nobody gets one, and over a second or so
// the rate is exact.
import { refusal } from '../base/errors.ts';
import type { Rate } from '../base/rate.ts';
import { type BoundedMap, createBoundedMap } from './bounded-map.ts';
import { type Bucket, callerName, fullBucket, MOST_CALLERS, refill } from './bucket.ts';

/** What a limit is counted by. */
export type LimitKind = 'credential' | 'address' | 'operation';

/** What one caller has spent in this worker since it was told of last. */
export type Spending = readonly [caller: string, spent: number, ...rate: FlatRate];
/** What all workers have left a caller. It may be less than nothing. */
export type Balance = readonly [caller: string, tokens: number, ...rate: FlatRate];
type FlatRate = readonly [count: number, seconds: number, burst: number];

export interface RateLimiterOptions {
  /**
   * Tells the supervisor; at the beginning of nothing, which asks for what there is. Undefined: this process is alone.
   */
  readonly report?: ((spendings: readonly Spending[]) => void) | undefined;
  /** Among how many what is nearly used up is shared. */
  readonly workers?: number;
  /** Milliseconds, never set back. */
  readonly now?: () => number;
  /** Does the work after so many milliseconds, without keeping the process alive for it. */
  readonly later?: (work: () => void, milliseconds: number) => void;
}

export interface RateLimiter {
  /**
   * Takes a token, or refuses.
   *
   * @param caller who, under the name of the kind
   * @throws HttpError RATE_LIMITED, with the header fields that say when to come back
   */
  check(kind: LimitKind, caller: string, rate: Rate): void;
  /** The supervisor's answer to a report. */
  settle(balances: readonly Balance[]): void;
  /** Refusals so far, by kind, and callers that are kept. */
  status(): { readonly refused: Readonly<Record<LimitKind, number>>; readonly callers: number };
}

interface Account extends Bucket {
  readonly caller: string;
  rate: Rate;
  /** And not reported. */
  spent: number;
  /** Since the supervisor said what was left. */
  spentSince: number;
}

/** A token, but for what adding up fractions loses. */
const WHOLE = 1 - 1e-6;
/** Tokens: nobody is held to a smaller share, nor are smaller bursts worth a report at once. */
const FEWEST_SHARED = 8;
/** Milliseconds between two reports, unless one is pressing. */
const REPORT_INTERVAL = 4;

export function createRateLimiter({
  report,
  workers = 1,
  now = () => performance.now(),
  later = inTime,
}: RateLimiterOptions = {}): RateLimiter {
  const refused = { credential: 0, address: 0, operation: 0 };
  let accounts: BoundedMap<Account> | undefined;
  let unreported: Account[] = [];
  /** Milliseconds, of the report that is to come; infinite: none is. */
  let waitOfNext = Number.POSITIVE_INFINITY;
  let isAnswerDue = false;
  let reportedAt = Number.NEGATIVE_INFINITY;

  function check(kind: LimitKind, who: string, rate: Rate): void {
    // Nobody pays for it who has no limit.
    accounts ??= createBoundedMap(MOST_CALLERS);
    const caller = callerName(kind, who);
    const time = now();
    let account = accounts.get(caller);
    if (account === undefined) {
      account = { caller, rate, spent: 0, spentSince: 0, ...fullBucket(rate, time) };
      accounts.set(caller, account);
    }
    account.rate = rate;
    refill(account, rate, time);
    if (account.tokens < WHOLE || isBeyondShare(account)) {
      refused[kind]++;
      throw limited(kind, rate, account.tokens);
    }
    account.tokens--;
    if (report === undefined) return;
    account.spentSince++;
    if (account.spent++ === 0) unreported.push(account);
    schedule(time, isPressing(account));
  }

  /**
   * Of what it was told that is left each worker takes only a part before it is told again: the others see the same
   * tokens, and may have taken some that nobody has been told of. A part of a few tokens counts only where few are left
   * of many: whoever has five an hour may take them in a row.
   */
  function isBeyondShare({ tokens, spentSince, rate: { burst } }: Account): boolean {
    const left = tokens + spentSince;
    const share = workers === 1 ? left : left / (1.5 * workers);
    return spentSince > 0 && spentSince + 1 > share && (share >= FEWEST_SHARED || left <= burst / 8);
  }

  /** A good part of its share is gone, and it should not have to refuse for want of news. */
  function isPressing({ tokens, spentSince, rate: { burst } }: Account): boolean {
    return burst >= FEWEST_SHARED * workers && spentSince * 4 * workers >= tokens + spentSince;
  }

  /**
   * At once where nothing has been told lately, so that the first worker to see a caller does not stay alone with it.
   */
  function schedule(time: number, isPressing: boolean): void {
    const wait = isPressing || time - reportedAt >= REPORT_INTERVAL ? 0 : REPORT_INTERVAL;
    if (wait >= waitOfNext) return;
    waitOfNext = wait;
    later(tell, wait);
  }

  function tell(): void {
    waitOfNext = Number.POSITIVE_INFINITY;
    // One at a time: what is answered is then all that was told, and what has been spent since is all that is missing
    // from it.
    if (isAnswerDue || unreported.length === 0) return;
    isAnswerDue = true;
    reportedAt = now();
    const spendings = unreported.map(
      ({ caller, spent, rate: { count, seconds, burst } }): Spending => [caller, spent, count, seconds, burst],
    );
    for (const account of unreported) account.spent = 0;
    unreported = [];
    report?.(spendings);
  }

  report?.([]);
  return {
    check,
    settle(balances) {
      const time = now();
      accounts ??= createBoundedMap(MOST_CALLERS);
      for (const [caller, tokens, count, seconds, burst] of balances) {
        const account = accounts.get(caller);
        if (account === undefined)
          accounts.set(caller, { caller, rate: { count, seconds, burst }, spent: 0, spentSince: 0, tokens, at: time });
        else {
          account.tokens = tokens - account.spent;
          account.spentSince = account.spent;
          account.at = time;
        }
      }
      isAnswerDue = false;
      if (unreported.length > 0) schedule(time, unreported.some(isPressing));
    },
    status: () => ({ refused, callers: accounts?.size() ?? 0 }),
  };
}

function inTime(work: () => void, milliseconds: number): void {
  if (milliseconds === 0) setImmediate(work);
  else setTimeout(work, milliseconds).unref();
}

/** Refusals come in floods, and most of what an Error costs is its stack, so the last ones are kept. */
const refusals = new Map<string, Error>();
const MOST_REFUSALS = 100;

function limited(kind: LimitKind, { count, seconds }: Rate, tokens: number): Error {
  const wait = Math.max(1, Math.ceil(((WHOLE - tokens) * seconds) / count));
  const key = `${kind} ${count} ${seconds} ${wait}`;
  const known = refusals.get(key);
  if (known !== undefined) return known;
  if (refusals.size >= MOST_REFUSALS) refusals.clear();
  const made = refusal('RATE_LIMITED', undefined, {
    // draft-ietf-httpapi-ratelimit-headers: what is left, in how many seconds there is more, and the rule.
    headers: {
      'Retry-After': String(wait),
      RateLimit: `"${kind}";r=0;t=${wait}`,
      'RateLimit-Policy': `"${kind}";q=${count};w=${seconds}`,
    },
  });
  refusals.set(key, Object.freeze(made));
  return made;
}

// Two steps of a request. The first checks the rate of the caller, the second the `limit` of the operation. This file
// counts nothing: the limiter in limits/ does.
import { parseRate, type Rate } from '../base/rate.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import { addressOf, networkOf, type TrustedProxies } from './address.ts';
import type { Exchange } from './exchange.ts';

export interface RateOptions {
  readonly limiter: Pick<RateLimiter, 'check'>;
  /** The rate of callers without a key; undefined when such callers may call as often as they like. */
  readonly addressRate: Rate | undefined;
  readonly proxies: TrustedProxies;
}

export function createRateSteps({ limiter, addressRate, proxies }: RateOptions) {
  const parsedRates = new Map<string, Rate>();
  const network = (exchange: Exchange) => networkOf(addressOf(exchange, proxies));

  /**
   * Parses the text of a `limit` once. The loader has checked each text, and an operation has at most one, so the map
   * stays small.
   */
  function rateOf(limit: string): Rate {
    const rate = parsedRates.get(limit) ?? (parseRate(limit) as Rate);
    parsedRates.set(limit, rate);
    return rate;
  }

  return {
    /** Checks the rate of the key. Without a key, checks the rate of the address. */
    checkRate(exchange: Exchange): undefined {
      const { caller } = exchange;
      if (caller === undefined) {
        if (addressRate !== undefined) limiter.check('address', network(exchange), addressRate);
      } else if (caller.limit !== undefined) limiter.check('credential', caller.application.id, caller.limit);
    },
    /**
     * Checks the `limit` of the operation, which counts for each key. Without a key, the limit counts for each user,
     * and without a user for each address.
     */
    checkLimit(exchange: Exchange): undefined {
      const { limit } = exchange.choice.operation.settings;
      if (limit === undefined) return;
      const { group, operation, application, userId } = exchange;
      // The id of a user may be any text, so the kind of the caller is written before the id. No operation has a line
      // break in its name, so the line break ends the name.
      const who =
        application !== undefined
          ? `application ${application.id}`
          : userId === undefined
            ? `address ${network(exchange)}`
            : `user ${userId}`;
      limiter.check('operation', `${group}.${operation}\n${who}`, rateOf(limit));
    },
  };
}

// Two steps of a request. The first checks how often the caller may call the service, the second the `limit` of the
// operation. The limiter in callers/limits/ counts the calls.
import { parseRate, type Rate } from '../../base/rate.ts';
import type { Exchange } from '../../request/exchange.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import { addressOf, networkOf, type TrustedProxies } from './address.ts';

export interface RateOptions {
  readonly limiter: Pick<RateLimiter, 'check'>;
  /** The rate of each address that calls without a key; undefined when there is no such limit. */
  readonly addressRate: Rate | undefined;
  readonly proxies: TrustedProxies;
}

export function createRateSteps({ limiter, addressRate, proxies }: RateOptions) {
  const parsedRates = new Map<string, Rate>();
  const network = (exchange: Exchange) => networkOf(addressOf(exchange, proxies));

  /** Parses each text of a `limit` once. The texts come from the code of operations, so the map stays small. */
  function rateOf(limit: string): Rate {
    const rate = parsedRates.get(limit) ?? (parseRate(limit) as Rate);
    parsedRates.set(limit, rate);
    return rate;
  }

  return {
    checkRate(exchange: Exchange): undefined {
      const { row } = exchange.caller;
      if (row === undefined) {
        if (addressRate !== undefined) limiter.check('address', network(exchange), addressRate);
      } else if (row.limit !== undefined) limiter.check('credential', row.application.id, row.limit);
    },
    /** Checks the `limit` of the operation: for each application, or else for each user, or else for each address. */
    checkLimit(exchange: Exchange): undefined {
      const { limit } = exchange.choice.operation.settings;
      if (limit === undefined) return;
      const { group, operation } = exchange;
      const { application, userId } = exchange.caller;
      // The id of a user can be any text, even the id of an application, so the kind of caller precedes the id. A line
      // break, which no name of an operation has, ends the name of the operation.
      const callerText =
        application !== undefined
          ? `application ${application.id}`
          : userId === undefined
            ? `address ${network(exchange)}`
            : `user ${userId}`;
      limiter.check('operation', `${group}.${operation}\n${callerText}`, rateOf(limit));
    },
  };
}

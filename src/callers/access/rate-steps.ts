// Two steps of a request. The first checks how often the caller may call the service, the second the `limit` of the
// operation. The limiter in callers/rates/ counts the calls.
import type { Limit } from '../../api/controller/operations.ts';
import { parseRate, type Rate } from '../../base/rate.ts';
import { isThenable } from '../../base/values.ts';
import { objectWithoutPrototype, parseQuery } from '../../request/body/form.ts';
import type { Exchange } from '../../request/exchange.ts';
import type { ExchangeContexts } from '../../request/exchange-contexts.ts';
import type { RateLimiter } from '../rates/rate-limiter.ts';
import { addressOf, networkOf, type TrustedProxies } from './address.ts';

export interface RateOptions {
  readonly limiter: Pick<RateLimiter, 'check' | 'giveBack'>;
  readonly contexts: ExchangeContexts;
  /** The rate of each address that calls without a key; undefined when there is no such limit. */
  readonly addressRate: Rate | undefined;
  readonly proxies: TrustedProxies;
}

export function createRateSteps({ limiter, addressRate, proxies, contexts }: RateOptions) {
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
    /**
     * Checks the `limit` of the operation: for each application, or else for each user, or else for each address. A
     * limit with `by` counts each address, and then each value of `by`.
     */
    checkLimit(exchange: Exchange): undefined {
      const { limit } = exchange.choice.operation.settings;
      if (limit === undefined) return;
      // A line break, which no name of an operation has, ends the name of the operation.
      const prefix = `${exchange.group}.${exchange.operation}\n`;
      if (typeof limit === 'string') {
        limiter.check('operation', prefix + callerOf(exchange), rateOf(limit));
        return;
      }
      const { by, count } = limit;
      const rate = rateOf(limit.rate);
      const caller = by === undefined ? callerOf(exchange) : `address ${network(exchange)}`;
      const tokens = [limiter.check('operation', prefix + caller, rate)];
      // The address comes first, so a client that is over its limit cannot use up the tokens of a value.
      if (by !== undefined) tokens.push(limiter.check('by', prefix + chosenValue(exchange, by), rate));
      if (count === 'failures') exchange.answer.giveBack = () => tokens.forEach(limiter.giveBack);
    },
  };

  /** Calls the function `by` of the author. @throws whatever it throws, and TypeError when it returns no text */
  function chosenValue(exchange: Exchange, by: NonNullable<Limit['by']>): string {
    const { path, queryText, request, caller } = exchange;
    const query = parseQuery(queryText, objectWithoutPrototype());
    const params = { path, query, headers: request.headers, address: addressOf(exchange, proxies), user: caller.user };
    const value = contexts.run(exchange, () => by(params));
    if (typeof value === 'string') return value;
    // Without a listener, a rejection of a promise would be an uncaught exception.
    if (isThenable(value)) Promise.resolve(value).catch(() => {});
    throw new TypeError('the function by of a limit must return a text');
  }

  function callerOf(exchange: Exchange): string {
    const { application, userId } = exchange.caller;
    // The id of a user can be any text, even the id of an application, so the kind of caller precedes the id.
    if (application !== undefined) return `application ${application.id}`;
    return userId === undefined ? `address ${network(exchange)}` : `user ${userId}`;
  }
}

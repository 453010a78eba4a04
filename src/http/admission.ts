// Who may call how often: by the row of the credential, else by the address, and what an operation says of its own. It
// counts nothing: that is limits/.
import { parseRate, type Rate } from '../base/rate.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import { networkOf, type TrustedProxies } from './address.ts';
import type { Exchange } from './exchange.ts';
import { addressOf } from './params.ts';

export interface AdmissionOptions {
  readonly limiter: Pick<RateLimiter, 'check'>;
  /** Of a caller without a live credential; undefined: as often as he likes. */
  readonly addressRate: Rate | undefined;
  readonly proxies: TrustedProxies;
}

export interface Admission {
  /**
   * Once a request, as soon as it is known whose credential it has, if any.
   *
   * @throws HttpError RATE_LIMITED
   */
  caller(exchange: Exchange): void;
  /**
   * @param limit what the operation says
   * @throws HttpError RATE_LIMITED
   */
  operation(exchange: Exchange, limit: string): void;
}

export function createAdmission({ limiter, addressRate, proxies }: AdmissionOptions): Admission {
  const rates = new Map<string, Rate>();
  const network = (exchange: Exchange) => networkOf(addressOf(exchange, proxies));

  /** The text has been checked when the controller was loaded, and there are no more of them than operations. */
  function rateOf(limit: string): Rate {
    const known = rates.get(limit) ?? (parseRate(limit) as Rate);
    rates.set(limit, known);
    return known;
  }

  return {
    caller(exchange) {
      const { caller } = exchange;
      if (caller === undefined) {
        if (addressRate !== undefined) limiter.check('address', network(exchange), addressRate);
      } else if (caller.limit !== undefined) limiter.check('credential', caller.application.id, caller.limit);
    },
    operation(exchange, limit) {
      const { group, operation, caller } = exchange;
      const who = caller === undefined ? network(exchange) : caller.application.id;
      limiter.check('operation', `${group}.${operation} ${who}`, rateOf(limit));
    },
  };
}

// One step of a request, before its body is read: finds the user by `authenticate` of the service file, then checks
// each rule of the operation's `access`. A rule can be a function. When such a function or `authenticate` returns a
// value of a wrong type, the answer is a 500. So a mistake in that code never lets a caller in, and never makes a user
// anonymous.

import type { AccessRule } from '../../api/controller/operations.ts';
import type { ServiceUser } from '../../api/controller/service.ts';
import { type HttpErrorOptions, refusal } from '../../base/errors.ts';
import { isThenable } from '../../base/values.ts';
import type { Exchange, Step } from '../../request/exchange.ts';
import type { ExchangeContexts } from '../../request/exchange-contexts.ts';
import { rulesOf } from './access.ts';
import { type AccessParts, RequestAccess } from './access-params.ts';
import { checkAccess } from './credential-rights.ts';
import type { ServiceDefinition } from './definition.ts';

type Service = Pick<ServiceDefinition, 'authenticate' | 'securitySchemes'>;

/**
 * @param service undefined when there is no service file
 * @returns a step that throws USER_REQUIRED, CREDENTIAL_REQUIRED, SCOPE_MISSING, ACCESS_DENIED, or an error of
 *   `authenticate` or of a rule
 */
export function createCheckCaller(service: Service | undefined, parts: AccessParts, contexts: ExchangeContexts): Step {
  const authenticate = service?.authenticate;
  const challenge = challengeOf(service?.securitySchemes ?? {});

  function checkCaller(exchange: Exchange): Promise<undefined> | undefined {
    const { access } = exchange.choice.operation.settings;
    if (authenticate === undefined) return access === undefined ? undefined : checkRules(exchange, rulesOf(access));
    const rules = access === undefined ? [] : rulesOf(access);
    const user = contexts.run(exchange, () => authenticate(new RequestAccess(exchange, parts)));
    if (isThenable(user)) return Promise.resolve(user).then((resolved) => useUser(exchange, resolved, rules));
    return useUser(exchange, user, rules);
  }

  function useUser(exchange: Exchange, user: unknown, rules: readonly AccessRule[]): Promise<undefined> | undefined {
    storeUser(exchange, user);
    return checkRules(exchange, rules);
  }

  /** Checks the rules one after another. @returns undefined when no rule was an asynchronous function */
  function checkRules(exchange: Exchange, rules: readonly AccessRule[]): Promise<undefined> | undefined {
    for (const [i, rule] of rules.entries()) {
      const outcome = checkRule(exchange, rule);
      if (outcome !== undefined) return outcome.then(() => checkRules(exchange, rules.slice(i + 1)));
    }
    return undefined;
  }

  function checkRule(exchange: Exchange, rule: AccessRule): Promise<undefined> | undefined {
    if (typeof rule !== 'function') return checkAccess(exchange.caller, rule, challenge);
    const outcome = contexts.run(exchange, () => rule(new RequestAccess(exchange, parts)));
    return isThenable(outcome) ? Promise.resolve(outcome).then(readVerdict) : readVerdict(outcome);
  }

  return checkCaller;
}

/** @throws TypeError when `user` is neither a user with an id, nor undefined or null for nobody */
function storeUser(exchange: Exchange, user: unknown): void {
  if (user === undefined || user === null) return;
  const id: unknown = typeof user === 'object' ? (user as { id?: unknown }).id : undefined;
  if ((typeof id === 'string' && id !== '') || Number.isSafeInteger(id)) {
    exchange.caller.user = user as ServiceUser;
    exchange.caller.userId = String(id);
    return;
  }
  throw new TypeError(
    'authenticate must return an object with an id (a text or a whole number), or undefined for nobody',
  );
}

function readVerdict(outcome: unknown): undefined {
  if (outcome === true) return undefined;
  if (outcome === false) throw refusal('ACCESS_DENIED');
  throw new TypeError('a function in access must return true or false');
}

/** Returns the header `WWW-Authenticate`: the schemes of type `http`. A browser asks for a password at `Basic`. */
function challengeOf(schemes: ServiceDefinition['securitySchemes']): HttpErrorOptions | undefined {
  const names = Object.values(schemes).flatMap((scheme) =>
    scheme.type === 'http' ? [capitalised(scheme.scheme)] : [],
  );
  return names.length === 0 ? undefined : { headers: { 'WWW-Authenticate': [...new Set(names)].join(', ') } };
}

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).toLowerCase();
}

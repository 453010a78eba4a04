// Two steps of a request: the folder that its URL may name, and the group and the operation that serve it.
import { refusal } from '../base/errors.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import { checkOperation } from './credential-rights.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';
import { chooseOperation } from './operation-choice.ts';

/** The URL chooses the group, unless the row of the key has a handler. */
export function createLocateGroup(groups: Pick<Groups, 'locate'>): Step {
  return function locateGroup(exchange): undefined {
    if (exchange.caller?.handler !== undefined) return;
    const location = groups.locate(exchange.page, exchange.slugs);
    if (location === undefined) return;
    exchange.page = location.page;
    exchange.slugs = location.slugs;
  };
}

/**
 * A key whose row has a handler is served by that group, whatever group the URL names.
 *
 * @param isStrict whether the service file is strict: then an absent group is 404, whoever asks
 */
export function createFindOperation(groups: Pick<Groups, 'find'>, isStrict = false): Step {
  return function findOperation(exchange): Outcome {
    const group = groups.find(exchange.caller?.handler ?? exchange.page);
    return group instanceof Promise
      ? group.then((loaded) => choose(exchange, loaded, isStrict))
      : choose(exchange, group, isStrict);
  };
}

function choose(exchange: Exchange, group: Group | undefined, isStrict: boolean): undefined {
  if (group === undefined) throw absentGroup(exchange, isStrict);
  const { caller, page, slugs, verb } = exchange;
  exchange.group = group.name;
  // With a handler, the group of the URL may name the operation.
  const choice = chooseOperation(verb, group, slugs, caller?.handler === undefined ? undefined : page);
  const { name, settings } = choice.operation;
  if (caller !== undefined) checkOperation(caller, name);
  exchange.choice = choice;
  exchange.operation = name;
  exchange.path = choice.path;
  if (settings.status !== undefined) exchange.status = settings.status;
}

/** By the reference, a foreign `Authorization` delegates the request, so the absence is the server's mistake. */
function absentGroup({ caller, head }: Exchange, isStrict: boolean): Error {
  if (caller === undefined)
    return refusal(isStrict || head.authorization === undefined ? 'GROUP_NOT_FOUND' : 'DELEGATED_GROUP_NOT_FOUND');
  const { handler } = caller;
  if (handler === undefined) return refusal('GROUP_NOT_FOUND');
  const cause = `the folder has no ${handler}Controller, which serves the calls of a credential without groups`;
  return refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(cause) });
}

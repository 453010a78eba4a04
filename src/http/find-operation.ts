// Two steps of a request. The first finds the folder that the URL may name. The second finds the group and the
// operation that serve the request.
import { refusal } from '../base/errors.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import { checkOperation } from './credential-rights.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';
import { chooseOperation } from './operation-choice.ts';

/**
 * Creates the step that looks for the group of the URL in a folder. When the row of the key has a handler, that handler
 * serves the request instead, so the step does nothing.
 */
export function createLocateGroup(groups: Pick<Groups, 'locate'>): Step {
  return function locateGroup(exchange): undefined {
    if (exchange.caller?.handler !== undefined) return;
    const location = groups.locate(exchange.page, exchange.slugs);
    if (location === undefined) return;
    exchange.page = location.groupInUrl;
    exchange.slugs = location.slugs;
  };
}

/**
 * Creates the step that finds the group and the operation. When the row of a key has a handler, that group serves the
 * request, whatever group the URL names.
 *
 * @param isStrict whether the service file is strict: an absent group is then a 404 for every caller
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

/**
 * Creates the refusal for a group that does not exist. By the reference, a foreign `Authorization` delegates the
 * request, so the absence of the group is the server's mistake.
 */
function absentGroup({ caller, head }: Exchange, isStrict: boolean): Error {
  if (caller === undefined)
    return refusal(isStrict || head.authorization === undefined ? 'GROUP_NOT_FOUND' : 'DELEGATED_GROUP_NOT_FOUND');
  const { handler } = caller;
  if (handler === undefined) return refusal('GROUP_NOT_FOUND');
  const cause = `the folder has no ${handler}Controller, which serves the calls of a credential without groups`;
  return refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(cause) });
}

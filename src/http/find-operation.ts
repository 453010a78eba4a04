// Two steps of a request: the group and the operation that serve it, and the `access` of that operation.
import { refusal } from '../base/errors.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import { checkAccess, checkOperation } from './credential-rights.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';
import { chooseOperation } from './operation-choice.ts';

/** A key whose row has a handler is served by that group, whatever group the URL names. */
export function createFindOperation(groups: Pick<Groups, 'find'>): Step {
  return function findOperation(exchange): Outcome {
    const group = groups.find(exchange.caller?.handler ?? exchange.page);
    return group instanceof Promise ? group.then((loaded) => choose(exchange, loaded)) : choose(exchange, group);
  };
}

function choose(exchange: Exchange, group: Group | undefined): undefined {
  if (group === undefined) throw absentGroup(exchange);
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
function absentGroup({ caller, head }: Exchange): Error {
  if (caller === undefined)
    return refusal(head.authorization === undefined ? 'GROUP_NOT_FOUND' : 'DELEGATED_GROUP_NOT_FOUND');
  const { handler } = caller;
  if (handler === undefined) return refusal('GROUP_NOT_FOUND');
  const cause = `there is no ${handler}Controller in the folder, and the calls of a credential without groups go there`;
  return refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(cause) });
}

export function checkOperationAccess({ application, choice }: Exchange): undefined {
  const { access } = choice.operation.settings;
  if (access !== undefined) checkAccess(application, access);
}

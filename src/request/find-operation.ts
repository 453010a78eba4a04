// Two steps of a request. The first finds out whether the URL names a folder before the group. The second finds the
// group and the operation that serve the request. The row of a key can name a handler, which then serves whatever the
// URL is.
import { refusal } from '../base/errors.ts';
import { checkOperationVerb } from '../callers/access/credential-rights.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../live/load/registry.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';
import { chooseOperation } from './operation-choice.ts';
import type { ResolvedPath } from './router.ts';

/**
 * Creates the step that reads `/v2/order` as the group `v2/order`, if the service has this group in such a folder. A
 * path without a group is the root group's, if there is one.
 *
 * @param basePath empty when the service is at the root
 */
export function createLocateGroup(groups: Pick<Groups, 'locate'>, basePath: string): Step {
  const depth = basePath.split('/').length - 1;
  return function locateGroup(exchange): undefined {
    if (exchange.caller.row?.handler !== undefined) return;
    const { segments } = (exchange.resolvedPath as ResolvedPath).path;
    const location = groups.locate(exchange, segments, depth);
    if (location === undefined) return;
    exchange.groupInUrl = location.groupInUrl;
    exchange.slugs = location.slugs;
  };
}

/** @param isStrict whether the service file is strict: for a request without a key, an absent group is then a 404 */
export function createFindOperation(groups: Pick<Groups, 'find'>, isStrict = false): Step {
  return function findOperation(exchange): Outcome {
    const group = groups.find(exchange.caller.row?.handler ?? exchange.groupInUrl);
    return group instanceof Promise
      ? group.then((loaded) => choose(exchange, loaded, isStrict))
      : choose(exchange, group, isStrict);
  };
}

function choose(exchange: Exchange, group: Group | undefined, isStrict: boolean): undefined {
  if (group === undefined) throw absentGroup(exchange, isStrict);
  const { groupInUrl, slugs, verb } = exchange;
  const { row } = exchange.caller;
  exchange.group = group.name;
  // If a handler serves the request, the segment that usually names the group can name the operation.
  const choice = chooseOperation(verb, group, slugs, row?.handler === undefined ? undefined : groupInUrl);
  const { name, settings } = choice.operation;
  if (row !== undefined) checkOperationVerb(row, name);
  exchange.choice = choice;
  exchange.operation = name;
  exchange.path = choice.path;
  if (settings.status !== undefined) exchange.answer.status = settings.status;
}

/**
 * Creates the refusal for a group that does not exist. docs/REFERENCE.md prescribes a 500 in two cases: the row of the
 * key has a handler, or `Authorization` holds no key of this service. A strict service sends a 404 in the second case.
 */
function absentGroup({ caller: { row }, head }: Exchange, isStrict: boolean): Error {
  if (row === undefined)
    return refusal(isStrict || head.authorization === undefined ? 'GROUP_NOT_FOUND' : 'DELEGATED_GROUP_NOT_FOUND');
  const { handler } = row;
  if (handler === undefined) return refusal('GROUP_NOT_FOUND');
  const cause = `the folder has no ${handler}Controller, which serves the calls of a credential without groups`;
  return refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(cause) });
}

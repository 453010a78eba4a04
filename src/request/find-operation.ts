// Three steps of a request. The first finds out whether the URL names a folder before the group. The second checks the
// rights of a key. The third finds the group and the operation that serve the request. The row of a key can name a
// handler, which then serves whatever the URL is.
import { refusal } from '../base/errors.ts';
import { FALLBACK, groupNameOf, isRoot } from '../base/group-name.ts';
import { isPromise } from '../base/values.ts';
import { checkOperationVerb } from '../callers/access/credential-rights.ts';
import { checkRights as checkRightsOf } from '../callers/access/key-check.ts';
import type { Group } from '../groups/operations.ts';
import type { Groups } from '../live/load/registry.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';
import { chooseOperation, takesRequest } from './operation-choice.ts';
import { firstMatch, type ResolvedPath } from './router.ts';
import type { StepParts } from './steps.ts';
import { checkMountRequest } from './web-request.ts';

/**
 * Creates the step that reads `/v2/order` as the group `v2/order`, if the service has this group in such a folder. A
 * path without a group is the root group's, if there is one.
 *
 * @param basePath empty when the service is at the root
 */
export function createLocateGroup(groups: Pick<Groups, 'locate'>, basePath: string): Step {
  const depth = basePath.split('/').length - 1;
  return function locateGroup(exchange): undefined {
    const handler = exchange.caller.row?.handler;
    // Outside of the base path, no path leads to the handler of a key.
    if (handler !== undefined && exchange.groupInUrl === FALLBACK) throw refusal('GROUP_NOT_ALLOWED');
    // A group outside of a folder has its name in the URL already. `locate` would look at the folder each time.
    if (handler !== undefined && !handler.includes('/')) return;
    const { segments } = (exchange.resolvedPath as ResolvedPath).path;
    const location = groups.locate(exchange, segments, depth);
    if (location === undefined) return;
    // A handler serves every URL, and only its own URL has its name.
    if (handler !== undefined && groupNameOf(handler) !== groupNameOf(location.groupInUrl)) return;
    exchange.groupInUrl = location.groupInUrl;
    exchange.slugs = location.slugs;
  };
}

/** @param isStrict whether the service file is strict: for a request without a key, an absent group is then a 404 */
export function createFindSteps(parts: StepParts, isStrict = false) {
  const { groups, respond } = parts;

  /** Checks the rights of a key. Where the fallback may get what a root group does not take, `choose` checks them. */
  function checkRights(exchange: Exchange): undefined {
    if (!isRoot(exchange.groupInUrl) || groups.find(FALLBACK) === undefined) checkRightsOf(exchange);
  }

  function findOperation(exchange: Exchange): Outcome {
    const group = groups.find(exchange.caller.row?.handler ?? exchange.groupInUrl);
    return isPromise(group) ? group.then((loaded) => choose(exchange, loaded)) : choose(exchange, group);
  }

  function choose(exchange: Exchange, named: Group | undefined): undefined {
    if (named === undefined) throw absentGroup(exchange, isStrict);
    const { slugs, verb } = exchange;
    const { row } = exchange.caller;
    const group = row?.handler === undefined ? orFallback(named, verb, slugs) : named;
    if (group !== named) exchange.groupInUrl = group.name;
    if (isRoot(named.name)) checkRightsOf(exchange);
    exchange.group = group.name;
    // If a handler serves the request, the segment that usually names the group can name the operation.
    const choice = chooseOperation(verb, group, slugs, row?.handler === undefined ? undefined : exchange.groupInUrl);
    const { name, settings, mount } = choice.operation;
    if (row !== undefined) checkOperationVerb(row, name, verb);
    exchange.choice = choice;
    exchange.operation = name;
    exchange.path = choice.path;
    if (settings.status !== undefined) exchange.answer.status = settings.status;
    if (mount === undefined) return;
    exchange.answer.ownsCors = mount.ownsCors;
    checkMountRequest(exchange, mount, parts);
  }

  /**
   * A request that no route of a root group takes is the fallback's. The order of all is: row, named group, root route
   * that begins with a literal, other root routes (compareRoutes in group-routes.ts has these two), fallback.
   */
  function orFallback(group: Group, verb: string, slugs: readonly string[]): Group {
    if (!isRoot(group.name)) return group;
    // The fallback is there from the load of the service file on, so it is no promise.
    const fallback = groups.find(FALLBACK) as Group | undefined;
    return fallback === undefined || takesRequest(group, verb, slugs) ? group : fallback;
  }

  /** Answers a preflight, unless the group that gets the request itself is a mount that answers OPTIONS. */
  async function answerPreflight(exchange: Exchange): Promise<undefined> {
    const method = String(exchange.request.headers['access-control-request-method'] ?? exchange.verb);
    const row = firstMatch((exchange.resolvedPath as ResolvedPath).matches, method)?.route;
    // A row such as `POST /api/idp-signin` gets the request itself before any group.
    if (row !== undefined && row.target !== 'gateway.index') return void respond.preflight(exchange);
    const named = await (async () => groups.find(exchange.groupInUrl))().catch(() => undefined);
    const group = named && orFallback(named, method, exchange.slugs);
    if (!Array.from(group?.operations.values() ?? []).some(({ mount }) => mount?.ownsCors))
      return void respond.preflight(exchange);
    // The root group can have a route for OPTIONS, which is not the answer to this preflight.
    if (group !== named) exchange.groupInUrl = FALLBACK;
  }

  return { checkRights, findOperation, answerPreflight };
}

/**
 * Creates the refusal for a group that does not exist. docs/REFERENCE.md prescribes a 500 in two cases: the row of the
 * key has a handler, or `Authorization` holds no key of this service. A strict service sends a 404 in the second case.
 */
function absentGroup({ caller: { row }, head }: Exchange, isStrict: boolean): Error {
  const { handler } = row ?? {};
  const isDelegated = row === undefined ? !isStrict && head.authorization !== undefined : handler !== undefined;
  if (!isDelegated) return refusal('GROUP_NOT_FOUND');
  const cause =
    handler === undefined
      ? 'the folder has no such group, and Authorization holds no key of this service'
      : `the folder has no ${groupNameOf(handler)}Controller, which serves the calls of a credential without groups`;
  return refusal('DELEGATED_GROUP_NOT_FOUND', undefined, { cause: new Error(cause) });
}

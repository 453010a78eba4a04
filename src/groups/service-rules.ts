// Applies the service file to a group when the group loads. An operation without its own setting `access` gets that of
// the service file. A group does not load when the service file does not allow one of its operations.
import type { Access } from '../api/controller/operations.ts';
import { namesOf, verbOf } from '../base/route-name.ts';
import { requiresUser } from '../callers/access/access.ts';
import { dataIsQuery } from '../contract/check/library.ts';
import type { ServiceState } from '../live/load/registry.ts';
import type { Around } from './exported.ts';
import { refuseOperation } from './group-contract.ts';
import { parseRouteName, verbRoutes } from './group-routes.ts';
import type { Group, Operation } from './operations.ts';
import type { LoadedService } from './service-file.ts';

/**
 * @param file the file of the group. The error names this file when the place of the operation is unknown
 * @throws ContractError when the service file does not allow an operation
 */
export function applyService(group: Group, service: LoadedService, file: string): Group {
  const operations = new Map(
    Array.from(group.operations, ([name, operation]): [string, Operation] => {
      const { access = service.access } = operation.settings;
      const settings = access === operation.settings.access ? operation.settings : { ...operation.settings, access };
      const problem =
        problemOfUser(operation, access, service.authenticate) ??
        (service.refusesUnchecked && settings.unchecked !== true ? problemOfTypes(operation) : undefined);
      if (problem !== undefined) refuseOperation(group, name, problem, file);
      // The steps of a mount are those of an operation up to `limit`, so nothing surrounds its handler.
      const guards = operation.mount === undefined ? withAround(operation.guards, service) : undefined;
      return [name, { ...operation, settings: Object.freeze(settings), guards }];
    }),
  );
  const strictRoutes = group.strictRoutes ?? (service.strict ? verbRoutes(operations.keys()) : undefined);
  return { ...group, operations, strictRoutes };
}

/** Adds `around` of the service file, which begins before every `_around` of the group. */
function withAround(guards: Operation['guards'], { around }: LoadedService): Operation['guards'] {
  if (around === undefined) return guards;
  const first: Around = (next, _data, params) => around(next, params);
  return { before: [], after: undefined, ...guards, around: [first, ...(guards?.around ?? [])] };
}

/** With a broken service file no request is answered, so no operation is refused. @throws ContractError */
export function applyRules(group: Group, state: ServiceState, file: string): Group {
  if (state.kind === 'loaded') return applyService(group, state.service, file);
  // Without a service file no function identifies users.
  for (const [name, operation] of state.kind === 'none' ? group.operations : []) {
    const problem = problemOfUser(operation, operation.settings.access ?? 'anyone', undefined);
    if (problem !== undefined) refuseOperation(group, name, problem, file);
  }
  return group;
}

function problemOfUser({ contract }: Operation, access: Access, authenticate: LoadedService['authenticate']) {
  if (requiresUser(access) && authenticate === undefined)
    return "access asks for a 'user', and no service file has authenticate: write it in controllers/service.ts";
  if (contract?.user === 'required' && !requiresUser(access))
    return "its params have a user that is always there: write access: 'user', or user?: in the type of the params";
  return undefined;
}

function problemOfTypes(operation: Operation): string | undefined {
  const { name, contract, mount } = operation;
  const cure =
    mount === undefined
      ? `write its type, or static operations = { ${JSON.stringify(name)}: { unchecked: true } }`
      : 'write { unchecked: true } into the settings of mount()';
  const isUnchecked = contract?.data === undefined && contract?.uncheckedReason !== undefined;
  if (isUnchecked && !dataIsQuery(name) && verbOf(name) !== 'OPTIONS')
    return `nothing checks its data, and the service file says unchecked: 'refuse': ${cure}`;
  if (operation.unfilteredReason !== undefined)
    return `results: 'declared' does not limit its result (${operation.unfilteredReason}), and the service file says unchecked: 'refuse'`;
  const typedNames = contract?.path?.properties ?? {};
  const names = operation.settings.path === undefined ? namesOf(parseRouteName(name)?.segments ?? []) : [];
  const untypedName = names.find((captured) => !Object.hasOwn(typedNames, captured));
  return (
    untypedName &&
    `its path has {${untypedName}} without a type, and the service file says unchecked: 'refuse': ${cure}`
  );
}

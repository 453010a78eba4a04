// Applies the service file to a group. Operations without their own `access` get the access of the service file.
// Operations that the service file refuses make the load fail. Everything here happens at load.

import type { OperationContract } from '../contract/contract.ts';
import { ContractError } from '../contract/contract-error.ts';
import { requiresUser } from '../service/access.ts';
import { parseRouteName, verbRoutes } from './group-routes.ts';
import type { Group, Operation } from './operations.ts';
import type { LoadedService } from './service-file.ts';

/**
 * @param file the file of the group, which the error names when the place of the operation is not known
 * @throws ContractError when the service file does not allow an operation
 */
export function underService(group: Group, service: LoadedService, file: string): Group {
  const operations = new Map(
    Array.from(group.operations, ([name, operation]): [string, Operation] => {
      const { access = service.access } = operation.settings;
      const settings = access === operation.settings.access ? operation.settings : { ...operation.settings, access };
      const known = group.contract.operations.get(name);
      const problem = problemOf(operation, access, known, service);
      if (problem !== undefined) throw new ContractError(known?.at ?? file, `${name}: ${problem}`);
      return [name, { ...operation, settings: Object.freeze(settings) }];
    }),
  );
  const strictRoutes = group.strictRoutes ?? (service.strict ? verbRoutes(operations.keys()) : undefined);
  return { ...group, operations, strictRoutes };
}

/** Without a service file nothing authenticates, so this function refuses operations that need a user. */
export function refuseUserWithoutService(group: Group, file: string): void {
  for (const [name, { settings }] of group.operations) {
    const known = group.contract.operations.get(name);
    const problem = problemOfUser(settings.access ?? 'anyone', known, undefined);
    if (problem !== undefined) throw new ContractError(known?.at ?? file, `${name}: ${problem}`);
  }
}

function problemOf(
  operation: Operation,
  access: NonNullable<Operation['settings']['access']>,
  known: OperationContract | undefined,
  service: LoadedService,
): string | undefined {
  return (
    problemOfUser(access, known, service.authenticate) ??
    (service.refusesUnchecked && operation.settings.unchecked !== true ? problemOfTypes(operation, known) : undefined)
  );
}

function problemOfUser(
  access: NonNullable<Operation['settings']['access']>,
  known: OperationContract | undefined,
  authenticate: LoadedService['authenticate'],
): string | undefined {
  if (requiresUser(access) && authenticate === undefined)
    return "access asks for a 'user', and no service file has authenticate: write it in controllers/service.ts";
  if (known?.user === 'required' && !requiresUser(access))
    return "its params have a user that is always there: write access: 'user', or user?: in the type of the params";
  return undefined;
}

/** Operations whose `data` is the query. */
const BODILESS = /^(?:index|deleted|options|(?:GET|HEAD|DELETE|OPTIONS)(?: .*)?)$/;

function problemOfTypes({ name }: Operation, known: OperationContract | undefined): string | undefined {
  const cure = `write its type, or static operations = { ${JSON.stringify(name)}: { unchecked: true } }`;
  const isUnchecked = known?.data === undefined && known?.unchecked !== undefined;
  if (isUnchecked && !BODILESS.test(name))
    return `nothing checks its data, and the service file says unchecked: 'refuse': ${cure}`;
  const typed = Object.keys((known?.path?.properties ?? {}) as object);
  const untyped = parseRouteName(name)?.segments.find(
    (segment) => segment.literal === undefined && !typed.includes(segment.name),
  );
  return untyped === undefined || untyped.literal !== undefined
    ? undefined
    : `its path has {${untyped.name}} without a type, and the service file says unchecked: 'refuse': ${cure}`;
}

// Joins a loaded group with what its source says: the checks of its operations, and what documents and commands tell of it.
import type { GroupContract, OperationContract } from '../contract/contract.ts';
import type { RunTimeOperation } from '../contract/read-operation.ts';
import type { ControllerSource } from '../contract/source-reader.ts';
import type { Group } from './operations.ts';

/**
 * @param again reads the source once more, for a description of what needed no reading
 * @throws ContractError a request type is not understood
 */
export async function withContract(
  group: Omit<Group, 'describe'>,
  source: ControllerSource,
  again: () => ControllerSource,
): Promise<Group> {
  const asked = runTimeOperations(group);
  const read = await source.contract(asked);
  let description: Promise<GroupContract> | undefined = read === undefined ? undefined : Promise.resolve(read.contract);
  const describe = () => {
    description ??= again()
      .describe(runTimeOperations(group))
      // The file has changed since: its next generation will tell.
      .then(
        ({ contract }) => contract,
        () => bare(group),
      );
    return description;
  };
  if (read === undefined) return { ...group, describe };
  const operations = new Map(Array.from(group.operations, ([name, operation]) => [name, { ...operation, check: read.checks.get(name) }]));
  return { ...group, operations, describe };
}

function bare({ name: group, operations }: Omit<Group, 'describe'>): GroupContract {
  const nothing = { summary: undefined, description: undefined, deprecated: false, data: undefined, query: undefined, path: undefined };
  const of = (name: string): OperationContract => ({
    ...nothing,
    name,
    unchecked: undefined,
    results: [{ status: 200, body: 'json', schema: undefined }],
    undocumented: undefined,
    at: undefined,
  });
  return {
    group,
    summary: undefined,
    description: undefined,
    operations: new Map([...operations.keys()].map((name) => [name, of(name)])),
    defs: {},
  };
}

function runTimeOperations({ operations, routes }: Pick<Group, 'operations' | 'routes'>): RunTimeOperation[] {
  return Array.from(operations.values(), ({ name, method, own, settings }) => {
    const route = routes.find((one) => one.name === name);
    const pathNames = route?.segments.flatMap((segment) => (segment.literal === undefined ? [segment.name] : []));
    return { name, method, own, pathNames, given: settings };
  });
}

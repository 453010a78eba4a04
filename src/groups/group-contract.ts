// Joins a loaded group with what its source says: the checks of its operations, and what documents and commands tell of it.
import type { GroupContract, OperationContract } from '../contract/contract.ts';
import type { RunTimeOperation } from '../contract/read-operation.ts';
import type { ResultCheck } from '../contract/result-check.ts';
import type { ControllerSource } from '../contract/source-reader.ts';
import type { Group, Operation, OperationMethod } from './operations.ts';

interface ContractOptions {
  readonly levels: readonly { readonly className: string | undefined }[];
  /** Reads the source once more, for a description of what needed no reading. */
  readonly again: () => ControllerSource;
  readonly onResult?: ResultObserver | undefined;
}

/**
 * @throws ContractError a request type is not understood
 */
export async function withContract(
  group: Omit<Group, 'describe'>,
  source: ControllerSource,
  { levels, again, onResult }: ContractOptions,
): Promise<Group> {
  const asked = runTimeOperations(group);
  const read =
    (await source.contract(asked, levels)) ??
    (onResult === undefined ? undefined : await source.describe(asked, levels).catch(() => undefined));
  let description: Promise<GroupContract> | undefined = read === undefined ? undefined : Promise.resolve(read.contract);
  const describe = () => {
    description ??= again()
      .describe(runTimeOperations(group), levels)
      // The file has changed since: its next generation will tell.
      .then(
        ({ contract }) => contract,
        () => bare(group),
      );
    return description;
  };
  if (read === undefined) return { ...group, describe };
  const operations = new Map(
    Array.from(group.operations, ([name, operation]): [string, Operation] => {
      const checkResult = onResult === undefined ? undefined : read.resultCheckOf(name);
      const method =
        checkResult === undefined ? operation.method : observed(group.name, operation, checkResult, onResult as ResultObserver);
      return [name, { ...operation, method, check: read.checks.get(name) }];
    }),
  );
  return { ...group, operations, describe };
}

/** Told of a result that is not what its type says, in development. */
export type ResultObserver = (facts: { group: string; operation: string; pointer: string; message: string }) => void;

function observed(group: string, { name, method }: Operation, check: ResultCheck, tell: ResultObserver): OperationMethod {
  const look = (result: unknown): unknown => {
    try {
      const mistake = check(result);
      if (mistake !== undefined) tell({ group, operation: name, ...mistake });
    } catch {
      // What cannot be encoded is told by whoever sends it.
    }
    return result;
  };
  return function (this: unknown, data, params) {
    const result: unknown = method.call(this, data, params);
    return result instanceof Promise ? result.then(look) : look(result);
  };
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

// Adds to a loaded group what comes from its source: the checks of requests and results, and the contract.
import type { ControllerParams } from '../api/controller.ts';
import type { RequestIds } from '../base/events.ts';
import { attempt } from '../base/failure.ts';
import { idsOf } from '../base/log.ts';
import { namesOf, segmentsOf, splitRouteName } from '../base/route-name.ts';
import { isPromise } from '../base/values.ts';
import type { ResultCheck } from '../contract/check/result-check.ts';
import { ContractError } from '../contract/contract-error.ts';
import type { RunTimeOperation } from '../contract/read-operation.ts';
import type { ControllerReader } from '../contract/reader.ts';
import type { Group, Operation, OperationMethod } from './operations.ts';

export interface ContractOptions {
  /** Whether the service file says `results: 'declared'`. */
  readonly sendsDeclared: boolean;
  /** Reports results that differ from their type; when it is undefined, results are not checked. */
  readonly onMismatch?: ReportMismatch | undefined;
}

/** @throws ContractError when the type of a request is not understood, or an operation is not found in the source */
export function withContract(
  group: Omit<Group, 'contract'>,
  source: ControllerReader,
  { sendsDeclared, onMismatch }: ContractOptions,
): Group {
  const read = source.readContract(runTimeOperations(group));
  const { contract, requestChecks, resultCheckOf } = read;
  const operations = new Map(
    Array.from(group.operations, ([name, operation]): [string, Operation] => {
      const { settings } = operation;
      const isFiltered = sendsDeclared || settings.results === 'declared';
      const resultCheck = onMismatch && resultCheckOf(name, isFiltered);
      const onProblem: OnProblem = (problem, params) =>
        onMismatch?.({ ...idsOf(params), group: group.name, operation: name, ...problem });
      const method = resultCheck === undefined ? operation.method : withCheck(operation.method, resultCheck, onProblem);
      const filter = isFiltered ? read.resultFilterOf(name) : undefined;
      const own = contract.operations.get(name);
      const unfilteredReason = isFiltered ? own?.undocumentedReason : undefined;
      return [name, { ...operation, method, filter, unfilteredReason, check: requestChecks.get(name), contract: own }];
    }),
  );
  return { ...group, operations, contract };
}

export function refuseOperation({ contract }: Group, operation: string, problem: string, file: string): never {
  const place = contract.operations.get(operation)?.at ?? file;
  throw new ContractError(place, `${operation}: ${problem}`, 'INVALID_SETTING');
}

export type ReportMismatch = (
  mismatch: RequestIds & { group: string; operation: string; pointer: string; message: string },
) => void;

type OnProblem = (problem: NonNullable<ReturnType<ResultCheck>>, params: ControllerParams) => void;

/** Wraps a method, so that each result is checked. A result that does not fit its type is returned all the same. */
function withCheck(method: OperationMethod, resultCheck: ResultCheck, onProblem: OnProblem): OperationMethod {
  const inspect = (result: unknown, params: ControllerParams): unknown => {
    // A result that cannot be encoded as JSON makes the check throw. The code that sends the answer reports it.
    const problem = attempt(() => resultCheck(result), undefined);
    if (problem !== undefined) onProblem(problem, params);
    return result;
  };
  function checked(this: unknown, data: unknown, params: ControllerParams): unknown {
    const result: unknown = method.call(this, data, params);
    return isPromise(result) ? result.then((value) => inspect(value, params)) : inspect(result, params);
  }
  // The document says GET for a method without parameters, and If-Match for one whose text calls ifMatch.
  return Object.defineProperties(checked, {
    length: { value: method.length },
    toString: { value: () => String(method) },
  });
}

function runTimeOperations({ operations }: Pick<Group, 'operations'>): RunTimeOperation[] {
  return Array.from(operations.values(), ({ name, method, depth, settings }) => {
    const route = splitRouteName(name);
    return { name, method, depth, pathNames: route && namesOf(segmentsOf(route)), settings };
  });
}

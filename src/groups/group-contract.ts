// Joins a loaded group with its source. The types of the source become the checks of the operations, and the contract
// that the OpenAPI document and the commands show.

import type { RequestIds } from '../base/events.ts';
import { namesOf, segmentsOf, splitRouteName } from '../base/route-name.ts';
import type { ResultCheck } from '../contract/check/result-check.ts';
import type { RunTimeOperation } from '../contract/read-operation.ts';
import type { ControllerSource } from '../contract/reader.ts';
import { requestIdsOf } from '../controller/trace.ts';
import type { ControllerParams } from '../controller.ts';
import type { Group, Operation, OperationMethod } from './operations.ts';

/**
 * @param onResult reports results that differ from their type; when it is undefined, results are not checked
 * @throws ContractError when a request type is not understood, or an operation is not found in the source
 */
export function withContract(
  group: Omit<Group, 'contract'>,
  source: ControllerSource,
  onResult: ResultObserver | undefined,
): Group {
  const { contract, checks, resultCheckOf } = source.contract(runTimeOperations(group));
  const operations = new Map(
    Array.from(group.operations, ([name, operation]): [string, Operation] => {
      const checkResult = onResult === undefined ? undefined : resultCheckOf(name);
      const method =
        checkResult === undefined
          ? operation.method
          : withResultCheck(group.name, operation, checkResult, onResult as ResultObserver);
      return [name, { ...operation, method, check: checks.get(name) }];
    }),
  );
  return { ...group, operations, contract };
}

/** Reports, in development, a result that differs from its type. */
export type ResultObserver = (
  facts: RequestIds & { group: string; operation: string; pointer: string; message: string },
) => void;

/** Wraps a method: each result is checked, and returned as it is. */
function withResultCheck(
  group: string,
  { name, method }: Operation,
  check: ResultCheck,
  report: ResultObserver,
): OperationMethod {
  const inspect = (result: unknown, params: ControllerParams): unknown => {
    let mistake: ReturnType<ResultCheck>;
    try {
      mistake = check(result);
    } catch {
      // The check threw an error, because the value cannot be encoded. The code that sends the answer reports this
      // mistake.
    }
    if (mistake !== undefined) report({ ...requestIdsOf(params), group, operation: name, ...mistake });
    return result;
  };
  return function (this: unknown, data, params) {
    const result: unknown = method.call(this, data, params);
    return result instanceof Promise ? result.then((value) => inspect(value, params)) : inspect(result, params);
  };
}

function runTimeOperations({ operations }: Pick<Group, 'operations'>): RunTimeOperation[] {
  return Array.from(operations.values(), ({ name, method, depth, settings }) => {
    const route = splitRouteName(name);
    return { name, method, depth, pathNames: route && namesOf(segmentsOf(route)), given: settings };
  });
}

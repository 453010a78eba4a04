// Reads the source of controllers: which methods it hides, and the types that it gives to operations. This is the door
// of the parser, which a worker loads with its first controller.

import { isDataGiven, queryAsData } from './check/library.ts';
import { createCompilers, createRequestCheck, type RequestCheck, type RequestSchemas } from './check/request-check.ts';
import { createResultCheck, type ResultCheck } from './check/result-check.ts';
import type { GroupContract } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { type GroupSource, type ReadSource, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { createTypeFiles, type ImportedFiles } from './source/files.ts';

export interface ControllerSource extends Pick<ReadSource, 'isHidden'> {
  /** @throws ContractError a request type that is not understood, an operation that is not found */
  contract(operations: readonly RunTimeOperation[]): ReadContract;
}

export interface ReadContract {
  readonly contract: GroupContract;
  /** By operation; none for one that has nothing to check. */
  readonly checks: ReadonlyMap<string, RequestCheck>;
  /** The check of its results, for development; undefined: its type says nothing. */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
}

/** @throws ContractError */
export type Reader = (source: GroupSource) => ControllerSource;

export function createReader(sources: ImportedFiles): Reader {
  const files = createTypeFiles(sources);
  return (source) => {
    const read = readGroup(source, files, sources);
    return {
      isHidden: read.isHidden,
      contract: (operations) => withChecks(read.contract(operations), operations, source.path),
    };
  };
}

function withChecks(contract: GroupContract, operations: readonly RunTimeOperation[], file: string): ReadContract {
  const checks = new Map<string, RequestCheck>();
  const compilers = createCompilers(contract.defs);
  for (const { name, given } of operations) {
    const { data, optional = false, query, path, at = file } = contract.operations.get(name) ?? {};
    const body = given.body === 'stream' ? undefined : given.body;
    // A library's schema is checked by the library; its JSON Schema is for the document.
    const isGiven = body !== undefined || given.query !== undefined;
    const schemas: RequestSchemas = {
      data: isDataGiven(name, given) ? undefined : data,
      optional,
      query: given.query === undefined ? query : undefined,
      path,
      compilers,
      given: isGiven ? { body, query: given.query, queryAsData: queryAsData(name, given) } : {},
    };
    const check = compiled(name, at, () => createRequestCheck(schemas));
    if (check !== undefined) checks.set(name, check);
  }
  const resultCheckOf = (name: string) => {
    const operation = contract.operations.get(name);
    const isGiven = operations.some((one) => one.name === name && one.given.result !== undefined);
    return operation === undefined || isGiven ? undefined : createResultCheck(operation, contract.defs);
  };
  return { contract, checks, resultCheckOf };
}

/** A schema that does not compile would answer each request with 500, so it refuses the file. */
function compiled<T>(name: string, at: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new ContractError(at, `${name}: the check of its types cannot be made: ${(error as Error).message}`);
  }
}

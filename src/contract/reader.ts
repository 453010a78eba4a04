// The entry to this room: reads which methods a controller's source hides, and the types of its operations. Then it
// compiles their checks. A worker imports this file, and so the parser, with its first controller.

import { isDataGiven, queryAsData } from './check/library.ts';
import { createCompilers, createRequestCheck, type RequestCheck, type RequestSchemas } from './check/request-check.ts';
import { createResultCheck, type ResultCheck } from './check/result-check.ts';
import type { GroupContract } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { type GroupReader, type GroupSource, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { type ErrorBody, readErrorBody } from './read-service.ts';
import { createTypeFiles, type ImportedFiles } from './source/files.ts';

export interface ControllerSource extends Pick<GroupReader, 'isHidden'> {
  /** @throws ContractError for a request type that is not understood, and for an operation that is not in the source */
  contract(operations: readonly RunTimeOperation[]): ReadContract;
}

export interface ReadContract {
  readonly contract: GroupContract;
  /** By operation. An operation that declares nothing to check has no entry. */
  readonly checks: ReadonlyMap<string, RequestCheck>;
  /** Compiles the check of an operation's results, for development. Undefined: its result type checks nothing. */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
}

export interface Reader {
  /** @throws ContractError */
  group(source: GroupSource): ControllerSource;
  /** The bodies that `formatError` of a service file returns. */
  errorBody(path: string): ErrorBody;
}

export function createReader(sources: ImportedFiles): Reader {
  const files = createTypeFiles(sources);
  return {
    group(source) {
      const groupReader = readGroup(source, files, sources);
      return {
        isHidden: groupReader.isHidden,
        contract: (operations) => addChecks(groupReader.contract(operations), operations, source.path),
      };
    },
    errorBody: (path) => readErrorBody(path, files),
  };
}

function addChecks(contract: GroupContract, operations: readonly RunTimeOperation[], file: string): ReadContract {
  const checks = new Map<string, RequestCheck>();
  const compilers = createCompilers(contract.defs);
  for (const { name, given } of operations) {
    const { data, optional = false, query, path, at = file } = contract.operations.get(name) ?? {};
    const body = given.body === 'stream' ? undefined : given.body;
    // The library itself checks its schema. The contract has the JSON Schema of it for the document only.
    const hasLibrarySchema = body !== undefined || given.query !== undefined;
    const schemas: RequestSchemas = {
      data: isDataGiven(name, given) ? undefined : data,
      optional,
      query: given.query === undefined ? query : undefined,
      path,
      compilers,
      given: hasLibrarySchema ? { body, query: given.query, queryAsData: queryAsData(name, given) } : {},
    };
    const check = compileAt(name, at, () => createRequestCheck(schemas));
    if (check !== undefined) checks.set(name, check);
  }
  const resultCheckOf = (name: string) => {
    const operation = contract.operations.get(name);
    const hasLibrarySchema = operations.some((one) => one.name === name && one.given.result !== undefined);
    return operation === undefined || hasLibrarySchema ? undefined : createResultCheck(operation, contract.defs);
  };
  return { contract, checks, resultCheckOf };
}

/** Refuses the controller when a schema does not compile. Otherwise each request would end with a 500. */
function compileAt<T>(name: string, place: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    throw new ContractError(place, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
  }
}

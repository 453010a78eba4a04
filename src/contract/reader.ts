// The entry to the folder `contract`. The reader finds out which methods a controller's source hides, and reads the
// types of the operations. When the controller loads, the reader compiles each check once, to refuse a schema that does
// not compile. At the first request it compiles the check again, for use. A worker imports this file, and with it the
// parser, when the worker loads its first controller.

import { type CachingReader, type ContractCache, createCachingReader } from './cached-contract.ts';
import { isDataGiven, queryAsData } from './check/library.ts';
import {
  type Compilers,
  createCompilers,
  createRequestCheck,
  declaresCheck,
  type RequestCheck,
  type RequestSchemas,
} from './check/request-check.ts';
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
  /** The checks, by the name of the operation. An operation that declares nothing to check has no entry. */
  readonly checks: ReadonlyMap<string, RequestCheck>;
  /**
   * Compiles the check of an operation's results, for development. Returns undefined when there is nothing to check.
   */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
}

export interface Reader {
  /** @throws ContractError */
  group(source: GroupSource): ControllerSource;
  /** The bodies that `formatError` of a service file returns. */
  errorBody(path: string): ErrorBody;
  /**
   * Frees the memory that controllers share, such as parsed files. The caller calls this function once the whole folder
   * has been read.
   */
  release(): void;
}

/** @param cache the contracts that earlier processes have read. Without a cache, each contract is read anew. */
export function createReader(sources: ImportedFiles, cache?: ContractCache): Reader {
  const files = createTypeFiles(sources);
  return {
    group(source) {
      const reader: GroupReader & Partial<CachingReader> =
        cache === undefined ? readGroup(source, files, sources) : createCachingReader(source, files, sources, cache);
      return {
        isHidden: reader.isHidden,
        contract(operations) {
          const contract = reader.contract(operations);
          const read = addChecks(contract, operations, source.path, reader.wasCached?.() === true);
          if (reader.wasCached?.() === false) reader.cache?.();
          return read;
        },
      };
    },
    errorBody: (path) => readErrorBody(path, files),
    release: files.release,
  };
}

/** @param hasCompiled whether the schemas of the contract are known to compile */
function addChecks(
  contract: GroupContract,
  operations: readonly RunTimeOperation[],
  file: string,
  hasCompiled: boolean,
): ReadContract {
  const checks = new Map<string, RequestCheck>();
  let compilers: Compilers | undefined;
  for (const { name, given } of operations) {
    const { data, optional = false, query, path, at = file } = contract.operations.get(name) ?? {};
    const body = given.body === 'stream' ? undefined : given.body;
    // The library checks its schema itself. The contract has the JSON Schema of that schema for the document only.
    const hasLibrarySchema = body !== undefined || given.query !== undefined;
    const schemas: RequestSchemas = {
      data: isDataGiven(name, given) ? undefined : data,
      optional,
      query: given.query === undefined ? query : undefined,
      path,
      get compilers() {
        compilers ??= createCompilers(contract.defs);
        return compilers;
      },
      given: hasLibrarySchema ? { body, query: given.query, queryAsData: queryAsData(name, given) } : {},
    };
    if (!hasCompiled) compileNow(name, at, schemas);
    if (declaresCheck(schemas)) checks.set(name, compileLater(schemas));
  }
  compilers = undefined;
  const resultCheckOf = (name: string) => {
    const operation = contract.operations.get(name);
    const hasLibrarySchema = operations.some((one) => one.name === name && one.given.result !== undefined);
    return operation === undefined || hasLibrarySchema ? undefined : createResultCheck(operation, contract.defs);
  };
  return { contract, checks, resultCheckOf };
}

/**
 * Compiles the check at the first request and not before, because most groups of a large folder get no request for a
 * long time.
 */
function compileLater(schemas: RequestSchemas): RequestCheck {
  let check: RequestCheck | undefined;
  return (parts, dataSource, verb) => {
    check ??= createRequestCheck(schemas) as RequestCheck;
    return check(parts, dataSource, verb);
  };
}

/** Refuses the controller when a schema does not compile. Otherwise each request would end with a 500. */
function compileNow(name: string, place: string, schemas: RequestSchemas): void {
  try {
    createRequestCheck(schemas);
  } catch (error) {
    throw new ContractError(place, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
  }
}

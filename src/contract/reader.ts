// The entry to the folder `contract`. The reader finds out which methods a controller's source hides, and reads the
// types of the operations. When a controller loads without a cached contract, the reader compiles each check once, to
// refuse a schema that does not compile. The check of an operation is compiled again, for use, at its first request. A
// worker imports this file, and with it the parser, when the worker loads its first controller.

import { type CachingReader, type ContractCache, createCachingReader } from './cached-contract.ts';
import { needsNoDataType, queryAsData } from './check/library.ts';
import {
  type Compilers,
  createCompilers,
  createRequestCheck,
  type RequestCheck,
  type RequestSchemas,
} from './check/request-check.ts';
import { createResultCheck, type ResultCheck } from './check/result-check.ts';
import { factsOf, type GroupContract, type OperationFacts } from './contract.ts';
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
  /** The facts of the operations, by their names. */
  readonly facts: ReadonlyMap<string, OperationFacts>;
  /** The checks of requests, by the name of the operation. An operation that declares nothing to check has no entry. */
  readonly requestChecks: ReadonlyMap<string, RequestCheck>;
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
  /** Frees the memory that controllers share, such as parsed files. Called when the whole folder has been read. */
  release(): void;
}

/** @param cache the contracts that earlier processes have read; without it, each contract is read from its source */
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
          const cachedFacts = reader.cachedFacts?.();
          const withChecks = addChecks(contract, cachedFacts, operations, source.path);
          if (cachedFacts === undefined) reader.addToCache?.();
          return withChecks;
        },
      };
    },
    errorBody: (path) => readErrorBody(path, files),
    release: files.release,
  };
}

/**
 * @param cachedFacts the facts of the operations when the contract is cached. The schemas of such a contract are known
 *   to compile, and nothing here reads the contract itself, because it would be decoded
 */
function addChecks(
  contract: GroupContract,
  cachedFacts: ReadContract['facts'] | undefined,
  operations: readonly RunTimeOperation[],
  file: string,
): ReadContract {
  const facts =
    cachedFacts ?? new Map(Array.from(contract.operations, ([name, operation]) => [name, factsOf(operation)]));
  const requestChecks = new Map<string, RequestCheck>();
  let compilers: Compilers | undefined;
  const schemasOf = ({ name, settings }: RunTimeOperation): RequestSchemas => {
    const { data, dataIsOptional = false, query, path } = contract.operations.get(name) ?? {};
    const body = settings.body === 'stream' ? undefined : settings.body;
    // A library checks data by its own schema. The contract has a JSON Schema of it only for the document.
    const hasLibrarySchema = body !== undefined || settings.query !== undefined;
    return {
      data: needsNoDataType(name, settings) ? undefined : data,
      dataIsOptional,
      query: settings.query === undefined ? query : undefined,
      path,
      get compilers() {
        compilers ??= createCompilers(contract.defs);
        return compilers;
      },
      librarySchemas: hasLibrarySchema ? { body, query: settings.query, queryAsData: queryAsData(name, settings) } : {},
    };
  };
  for (const operation of operations) {
    const { name } = operation;
    if (cachedFacts === undefined)
      refuseUncompilable(name, contract.operations.get(name)?.at ?? file, schemasOf(operation));
    if (declaresCheck(operation, facts.get(name)))
      requestChecks.set(
        name,
        compileLater(() => schemasOf(operation)),
      );
  }
  // Frees what was compiled. The getter creates the compilers again at the first request.
  compilers = undefined;
  const resultCheckOf = (name: string) => {
    const operation = contract.operations.get(name);
    const hasLibrarySchema = operations.some((one) => one.name === name && one.settings.result !== undefined);
    return operation === undefined || hasLibrarySchema ? undefined : createResultCheck(operation, contract.defs);
  };
  return { contract, facts, requestChecks, resultCheckOf };
}

/** Whether the operation declares a schema for a part of its requests. */
function declaresCheck({ name, settings }: RunTimeOperation, facts: OperationFacts | undefined): boolean {
  const { body, query } = settings;
  if ((body !== undefined && body !== 'stream') || query !== undefined || facts?.hasQuery || facts?.pathNames)
    return true;
  return facts?.hasData === true && !needsNoDataType(name, settings);
}

/** Compiles the check at the first request, because most groups of a large folder get no request for a long time. */
function compileLater(schemas: () => RequestSchemas): RequestCheck {
  let check: RequestCheck | undefined;
  return (parts, dataSource, verb) => {
    check ??= createRequestCheck(schemas()) as RequestCheck;
    return check(parts, dataSource, verb);
  };
}

/** Refuses the controller when a schema does not compile. Otherwise each request would end with a 500. */
function refuseUncompilable(name: string, place: string, schemas: RequestSchemas): void {
  try {
    createRequestCheck(schemas);
  } catch (error) {
    throw new ContractError(place, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
  }
}

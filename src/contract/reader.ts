// The entry to the folder `contract`. A contract is what the source of a controller declares: the types of its
// operations, and their comments. From the contract, this file makes the check of each operation's requests.
// When a controller loads, each check is compiled once, so that a schema which does not compile refuses the controller.
// To save memory, the compiled check is dropped after the load. The operation's first request compiles the check again.
// A worker imports this file only when it loads its first controller, because the parser takes time to load.
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
import { factsOf, type GroupContract, type OperationContract, type OperationFacts } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { type GroupReader, type LoadedController, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { type ErrorBody, readErrorBody } from './read-service.ts';
import { createSourceFiles, type ImportedFiles } from './source/files.ts';

export interface ControllerReader extends Pick<GroupReader, 'isHidden'> {
  /** @throws ContractError for an unsupported request type, and for an operation that is not found in the source */
  readContract(operations: readonly RunTimeOperation[]): ContractWithChecks;
}

export interface ContractWithChecks {
  readonly contract: GroupContract;
  /** By the operation's name. */
  readonly facts: ReadonlyMap<string, OperationFacts>;
  /** By the operation's name. An operation without a checked type has no entry. */
  readonly requestChecks: ReadonlyMap<string, RequestCheck>;
  /** Compiles the check of an operation's results, for development. Returns undefined for unchecked results. */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
}

export interface Reader {
  /** @throws ContractError */
  openController(controller: LoadedController): ControllerReader;
  /** Reads the type of the error bodies that `formatError` of a service file returns. */
  readErrorBody(path: string): ErrorBody;
  /** Frees the parsed files, which controllers share. Called when the whole folder has been read. */
  release(): void;
}

/** @param cache contracts that earlier processes have read; without a cache, each contract is read from its source */
export function createReader(importedFiles: ImportedFiles, cache?: ContractCache): Reader {
  const files = createSourceFiles(importedFiles);
  return {
    openController(controller) {
      const reader: GroupReader & Partial<CachingReader> =
        cache === undefined
          ? readGroup(controller, files, importedFiles)
          : createCachingReader(controller, files, importedFiles, cache);
      return {
        isHidden: reader.isHidden,
        readContract(operations) {
          const contract = reader.readContract(operations);
          const cachedFacts = reader.cachedFacts?.();
          const withChecks = addChecks(contract, cachedFacts, operations, controller.path);
          if (cachedFacts === undefined) reader.addToCache?.();
          return withChecks;
        },
      };
    },
    readErrorBody: (path) => readErrorBody(path, files),
    release: files.release,
  };
}

/**
 * @param cachedFacts the facts of the operations if the contract comes from the cache. An earlier process has then
 *   compiled the schemas successfully. The first read of a cached contract decodes its text, which takes time. So the
 *   load does not read such a contract
 */
function addChecks(
  contract: GroupContract,
  cachedFacts: ContractWithChecks['facts'] | undefined,
  operations: readonly RunTimeOperation[],
  file: string,
): ContractWithChecks {
  const facts =
    cachedFacts ?? new Map(Array.from(contract.operations, ([name, operation]) => [name, factsOf(operation)]));
  const requestChecks = new Map<string, RequestCheck>();
  const contractOf = (name: string) => contract.operations.get(name) as OperationContract;
  let compilers: Compilers | undefined;
  const schemasOf = ({ name, settings }: RunTimeOperation): RequestSchemas => {
    const { data, dataIsOptional, query, path } = contractOf(name);
    const body = settings.body === 'stream' ? undefined : settings.body;
    return {
      // A schema of a library (such as zod) replaces the type in the source, and the library does the check. The JSON
      // Schema in the contract is then only for the document.
      data: needsNoDataType(name, settings) ? undefined : data,
      dataIsOptional,
      query: settings.query === undefined ? query : undefined,
      path,
      get compilers() {
        compilers ??= createCompilers(contract.defs);
        return compilers;
      },
      librarySchemas: { body, query: settings.query, queryAsData: queryAsData(name, settings) },
    };
  };
  for (const operation of operations) {
    const { name } = operation;
    if (cachedFacts === undefined) refuseUncompilable(name, contractOf(name).at ?? file, schemasOf(operation));
    const check = compileLater(() => schemasOf(operation));
    if (declaresCheck(operation, facts.get(name))) requestChecks.set(name, check);
  }
  // Frees the compiled checks. The getter of `compilers` creates new compilers at the first request.
  compilers = undefined;
  const resultCheckOf = (name: string) => {
    const hasLibrarySchema = operations.some((other) => other.name === name && other.settings.result !== undefined);
    return hasLibrarySchema ? undefined : createResultCheck(contractOf(name), contract.defs);
  };
  return { contract, facts, requestChecks, resultCheckOf };
}

function declaresCheck({ name, settings }: RunTimeOperation, facts: OperationFacts | undefined): boolean {
  const { body, query } = settings;
  if ((body !== undefined && body !== 'stream') || query !== undefined || facts?.hasQuerySchema || facts?.pathNames)
    return true;
  return facts?.hasDataSchema === true && !needsNoDataType(name, settings);
}

/** Returns a check that is compiled at its first call. In a large folder, most operations get their first call late. */
function compileLater(schemas: () => RequestSchemas): RequestCheck {
  let check: RequestCheck | undefined;
  return (parts, dataSource, verb) => {
    check ??= createRequestCheck(schemas()) as RequestCheck;
    return check(parts, dataSource, verb);
  };
}

/** Refuses the controller when a schema does not compile. Otherwise each request would get a 500. */
function refuseUncompilable(name: string, place: string, schemas: RequestSchemas): void {
  try {
    createRequestCheck(schemas);
  } catch (error) {
    throw new ContractError(place, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
  }
}

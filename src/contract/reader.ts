// The entry to the folder `contract`: from the source of a controller to the checks of its requests. Each check is
// compiled at load, so that a schema which does not compile refuses the controller. A worker imports this file only
// when it loads its first controller, because the parser takes time to load.
import { needsNoDataType, queryAsData } from './check/library.ts';
import { createCompilers, createRequestCheck, type RequestCheck, type RequestSchemas } from './check/request-check.ts';
import { createResultCheck, type ResultCheck } from './check/result-check.ts';
import { createCopyCompiler } from './check/result-copy.ts';
import { createReporter, createResultFilter, type ResultFilter } from './check/result-filter.ts';
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
  readonly facts: ReadonlyMap<string, OperationFacts>;
  /** By the operation's name. An operation without a checked type has no entry. */
  readonly requestChecks: ReadonlyMap<string, RequestCheck>;
  /** Compiles the check of an operation's results, for development. Returns undefined for unchecked results. */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
  /**
   * Compiles the filter of an operation's results. Returns undefined when all fields of them are declared.
   *
   * @param report gets the fields that are not declared. When it is given, the filter drops no field
   */
  readonly resultFilterOf: (
    operation: string,
    report?: (fields: readonly string[]) => void,
  ) => ResultFilter | undefined;
}

export interface Reader {
  /** @throws ContractError */
  openController(controller: LoadedController): ControllerReader;
  readErrorBody(path: string): ErrorBody;
  /** Frees the parsed files, which controllers share. Called when the whole folder has been read. */
  release(): void;
}

export function createReader(importedFiles: ImportedFiles): Reader {
  const files = createSourceFiles(importedFiles);
  return {
    openController(controller) {
      const { isHidden, readContract } = readGroup(controller, files, importedFiles);
      return {
        isHidden,
        readContract: (operations) => addChecks(readContract(operations), operations, controller.path),
      };
    },
    readErrorBody: (path) => readErrorBody(path, files),
    release: files.release,
  };
}

/** @throws ContractError when a schema does not compile. Otherwise each request would get a 500 */
function addChecks(contract: GroupContract, operations: readonly RunTimeOperation[], file: string): ContractWithChecks {
  const facts = new Map(Array.from(contract.operations, ([name, operation]) => [name, factsOf(operation)]));
  const requestChecks = new Map<string, RequestCheck>();
  const contractOf = (name: string) => contract.operations.get(name) as OperationContract;
  const compilers = createCompilers(contract.defs);
  for (const { name, settings } of operations) {
    const { data, dataIsOptional, query, path, headers, at = file } = contractOf(name);
    const body = settings.body === 'stream' ? undefined : settings.body;
    const schemas: RequestSchemas = {
      // A schema of a library (such as zod) replaces the type in the source, and the library does the check. The JSON
      // Schema in the contract is then only for the document.
      data: needsNoDataType(name, settings) ? undefined : data,
      dataIsOptional,
      query: settings.query === undefined ? query : undefined,
      path: settings.path === undefined ? path : undefined,
      headers,
      isClosed: settings.closed === true,
      isPatch: /^(?:patch|PATCH)(?: |$)/.test(name),
      compilers,
      librarySchemas: { body, query: settings.query, path: settings.path, queryAsData: queryAsData(name, settings) },
    };
    try {
      const check = createRequestCheck(schemas);
      if (check !== undefined) requestChecks.set(name, check);
    } catch (error) {
      throw new ContractError(at, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
    }
  }
  const librarySchemaOf = (name: string) => operations.find((other) => other.name === name)?.settings.result;
  const resultCheckOf = (name: string) =>
    librarySchemaOf(name) === undefined ? createResultCheck(contractOf(name), contract.defs) : undefined;
  const compileCopy = createCopyCompiler(contract.defs);
  const resultFilterOf: ContractWithChecks['resultFilterOf'] = (name, report) => {
    const filter = createResultFilter(contractOf(name), compileCopy, librarySchemaOf(name));
    return filter === undefined || report === undefined ? filter : createReporter(filter, report);
  };
  return { contract, facts, requestChecks, resultCheckOf, resultFilterOf };
}

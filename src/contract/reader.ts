// The entry to the folder `contract`: from the source of a controller to the checks of its requests. Each check is
// compiled at load, so that a schema which does not compile refuses the controller. A worker imports this file only
// when it loads its first controller, because the parser takes time to load.
import { join } from 'node:path';
import type { OperationSettings } from '../api/controller/operations.ts';
import { type Compilers, createCompilers, createRequestCheck, type RequestCheck } from './check/request-check.ts';
import { createResultCheck } from './check/result-check.ts';
import { createCopyCompiler } from './check/result-copy.ts';
import { createResultFilter } from './check/result-filter.ts';
import { flattenParts } from './check/unions.ts';
import type { OperationContract, Schema } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { createMadeTypes, MADE_TYPES_FILE } from './made-types.ts';
import type { PartSchemas } from './part-schemas.ts';
import { type LoadedController, type ReadContract, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { type ErrorBody, readErrorBody } from './read-service.ts';
import { isFile } from './schema/schema.ts';
import { createSourceFiles, type ImportedFiles } from './source/files.ts';

export type ControllerReader = ReturnType<Reader['openController']>;

export type Reader = ReturnType<typeof createReader>;

/** @param folder the folder of controllers. @param madeTypes the file with made types; default: the folder's */
export function createReader(importedFiles: ImportedFiles, folder: string, madeTypes = join(folder, MADE_TYPES_FILE)) {
  const files = createSourceFiles(importedFiles);
  const made = createMadeTypes(folder, madeTypes, files);
  return {
    openController(controller: LoadedController) {
      const { isHidden, readContract } = readGroup(controller, files, importedFiles, made);
      return {
        isHidden,
        /** @throws ContractError for an unsupported request type, and for an operation that the source does not have */
        readContract: (operations: readonly RunTimeOperation[]) =>
          addChecks(readContract(operations), operations, controller.path),
      };
    },
    readErrorBody: (path: string): ErrorBody => readErrorBody(path, files),
    /** Frees what controllers share: the parsed files, and what made types were compared with. */
    release(): void {
      files.release();
      made.release();
    },
  };
}

/** @throws ContractError when a schema does not compile. Otherwise each request would get a 500 */
function addChecks(read: ReadContract, operations: readonly RunTimeOperation[], file: string) {
  const { contract, schemas: schemasByName } = read;
  /** By the operation's name. An operation without a checked type has no entry. */
  const requestChecks = new Map<string, RequestCheck>();
  const contractOf = (name: string) => contract.operations.get(name) as OperationContract;
  const compilers = createCompilers(contract.defs);
  for (const { name, settings } of operations) {
    const { at = file } = contractOf(name);
    const schemas = schemasByName.get(name) as PartSchemas;
    const problem = problemOf(contractOf(name), settings, compilers);
    if (problem !== undefined) throw new ContractError(at, `${name}: ${problem}`, 'INVALID_SETTING');
    try {
      const check = createRequestCheck(contractOf(name), settings, schemas, compilers);
      if (check !== undefined) requestChecks.set(name, check);
    } catch (error) {
      throw new ContractError(at, `${name}: cannot compile the check of its types: ${(error as Error).message}`);
    }
  }
  const resultSchemaOf = (name: string) => schemasByName.get(name)?.result;
  /** Compiles the check of an operation's results, for development. Returns undefined for unchecked results. */
  const resultCheckOf = (name: string, isLimited: boolean) =>
    resultSchemaOf(name) === undefined ? createResultCheck(contractOf(name), contract.defs, isLimited) : undefined;
  const compileCopy = createCopyCompiler(contract.defs);
  /** Compiles the filter of an operation's results. Returns undefined when all fields of them are declared. */
  const resultFilterOf = (name: string) => createResultFilter(contractOf(name), compileCopy, resultSchemaOf(name));
  return { contract, requestChecks, resultCheckOf, resultFilterOf };
}

/** Returns why the types of an operation contradict its settings. */
function problemOf(contract: OperationContract, settings: OperationSettings, compilers: Compilers): string | undefined {
  const openReason = settings.closed === true ? whyOpen(contract, compilers) : undefined;
  if (openReason !== undefined) return `closed: true has no effect: ${openReason}, or write closed: false for it`;
  const { name, data, dataIsOptional } = contract;
  const takesBytes = settings.accepts !== undefined || settings.body === 'stream';
  if (data === undefined || dataIsOptional || takesBytes || !isFile(compilers.values.resolve(data))) return undefined;
  const cure = `static operations = { '${name}': { accepts: ['image/*'] } }, or a field of a form: { file: File }`;
  return `its data is a file, and it takes no body of bytes; write ${cure}`;
}

/** Says why an operation would keep undeclared fields in spite of `closed: true`. */
function whyOpen(contract: OperationContract, { values }: Compilers): string | undefined {
  const { data, uncheckedReason, runsAuthorsCode } = contract;
  if (runsAuthorsCode) return 'a library checks its requests: make its schema strict';
  if (uncheckedReason !== undefined) return `data is not checked (${uncheckedReason}): declare its fields`;
  const isOpen = ({ type, properties, additionalProperties, patternProperties }: Schema) =>
    [type].flat().includes('object') && !(properties || additionalProperties || patternProperties);
  const parts = flattenParts(data === undefined ? [] : [data], values).map(values.resolve);
  return parts.some(isOpen) ? 'the type of data takes any field: declare its fields' : undefined;
}

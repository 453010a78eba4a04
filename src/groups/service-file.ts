// Turns the module of the service file into the definition that a worker applies. callers/access/definition.ts checks
// the content of a definition.
import { basename } from 'node:path';
import { readSourceOrEmpty } from '../base/source-file.ts';
import { type Fields, isObject } from '../base/values.ts';
import {
  DefinitionError,
  isServiceProperty,
  readDefinition,
  type ServiceDefinition,
} from '../callers/access/definition.ts';
import { ContractError } from '../contract/contract-error.ts';
import type { ErrorBody } from '../contract/read-service.ts';
import type { Task } from '../live/tasks/task.ts';

export interface LoadedService extends ServiceDefinition {
  readonly file: string;
  readonly errorBody: ErrorBody;
  readonly tasks?: ReadonlyMap<string, Task>;
}

/** @param path the real path of the file. @throws ContractError with the line of a wrong property */
export function createService(path: string, module: Fields, readErrorBody: () => ErrorBody): LoadedService {
  try {
    const exported = exportsOf(module);
    const definition = readDefinition(exported.default);
    // An `export const access` was probably meant as the property `access` of the default export. Without an error, the
    // service would serve without this protection.
    const strayName = Object.keys(exported).find(isServiceProperty);
    if (strayName !== undefined) {
      const message = `it exports ${strayName} beside its default: write it into defineService({ … })`;
      throw new DefinitionError(message, strayName);
    }
    return Object.freeze({ ...definition, file: basename(path), errorBody: readErrorBody() });
  } catch (error) {
    throw error instanceof DefinitionError ? refuseProperty(path, error.message, error.property) : error;
  }
}

export function refuseProperty(path: string, message: string, property: string | undefined): ContractError {
  const line = lineOfProperty(readSourceOrEmpty(path), property);
  return new ContractError(`${path}:${line}`, message, 'INVALID_SERVICE_FILE');
}

/** `tsx` can compile to CommonJS. The import of such a file has a default export that holds all exports. */
function exportsOf(module: Fields): Fields {
  const nested = module.default;
  return isObject(nested) && '__esModule' in nested ? nested : module;
}

/** Returns the line of a property, from 1. Returns the line of `defineService` when the property is not found. */
function lineOfProperty(source: string, property: string | undefined): number {
  const callIndex = Math.max(source.search(/\bdefineService\s*[<(]/), 0);
  const name = property?.replace(/[^\w$]/g, '\\$&');
  const offset =
    name === undefined ? -1 : source.slice(callIndex).search(new RegExp(`(?<![\\w$.])${name}['"]?\\s*[:(,}]`));
  return source.slice(0, callIndex + Math.max(offset, 0)).split('\n').length;
}

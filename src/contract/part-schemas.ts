// The schemas of an operation that are values of the author's code: those in `static operations`, and those from which
// its annotations are inferred. A Standard Schema is called with each request. A JSON Schema is checked like a type.
import type { OperationSettings } from '../api/controller/operations.ts';
import { jsonSchemaOf, needsNoDataType, type QueryAsData, queryAsData, type StandardSchema } from './check/library.ts';
import type { Definitions, OperationContract, ResultContract, Schema } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { sentForm } from './results.ts';
import type { MoveDefinitions } from './schema/bundle.ts';
import { readJsonSchema } from './schema/json-schema.ts';
import { Unsupported } from './source/source-error.ts';
import type { SchemaReference } from './types/shape.ts';

export type ModuleExports = { readonly exports: Readonly<Record<string, unknown>> } | { readonly error: unknown };

/** Thrown when a contract needs a schema of a file that is not imported. The caller imports it, and reads again. */
export class ModuleNeeded extends Error {
  readonly neededModule: string;
  constructor(path: string) {
    super(`${path} is not imported`);
    this.neededModule = path;
  }
}

export type PartSchema = ({ readonly standard: StandardSchema } | { readonly json: Schema }) & {
  /** Whether the part is a list whose items fit the schema. Only a result is. */
  readonly isList?: boolean;
};
export type PartName = 'body' | 'query' | 'path' | 'result';

/** By part. `body` is the schema of `data`, also where the data is the query. */
export interface PartSchemas extends Readonly<Partial<Record<PartName, PartSchema | undefined>>> {
  readonly queryAsData: QueryAsData;
}

/** @param at the place of the operation. @throws ContractError for a JSON Schema that no check implements */
export function schemasOfSettings(name: string, settings: OperationSettings, at: string): PartSchemas {
  const read = (part: PartName): PartSchema | undefined => {
    const value = settings[part];
    if (value === undefined || value === 'stream') return undefined;
    if (isStandardSchema(value)) return { standard: value };
    try {
      return { json: readJsonSchema(value) };
    } catch (error) {
      throw new ContractError(at, `${name}: the schema of its ${part}: ${(error as Error).message}`, 'INVALID_SETTING');
    }
  };
  const parts = { body: read('body'), query: read('query'), path: read('path'), result: read('result') };
  return { ...parts, queryAsData: queryAsData(name, settings) };
}

/** @throws Unsupported when the value is no schema that the annotation can be inferred from, and ModuleNeeded */
export function schemaOfReference(reference: SchemaReference, module: ModuleExports | undefined): PartSchema {
  const { name, path, keys, vendor, from, at } = reference;
  const fail = (message: string, cure?: string): never => {
    throw new Unsupported(message, from, at, cure);
  };
  if (module === undefined) throw new ModuleNeeded(path);
  if ('error' in module)
    return fail(`the module of the schema ${name} cannot be imported: ${String(module.error)}`, 'mend this import');
  // A compiler has made a CommonJS module of this file. Node then shows its exports only as the default export.
  const { default: compiled } = module.exports;
  let value: unknown = Object(compiled).__esModule === true ? compiled : module.exports;
  try {
    for (const key of keys) value = Object(value)[key];
  } catch (error) {
    fail(`the schema ${name} cannot be read: ${String(error)}`);
  }
  if (value === undefined)
    fail(`the module of the schema ${name} exports no ${keys.join('.')}`, 'export it as a value');
  if (isStandardSchema(value)) {
    const { vendor: actual } = value['~standard'];
    if (vendor === 'any' || vendor === actual) return { standard: value };
    return fail(
      `${name} is a schema of ${String(actual)}, and the type is of ${vendor === 'json' ? 'TypeBox' : vendor}`,
    );
  }
  if (vendor !== 'json')
    return fail(
      `${name} is no Standard Schema`,
      vendor === 'effect'
        ? `write const ${name} = Schema.toStandardSchemaV1(…), and for Effect 3 Schema.standardSchemaV1(…)`
        : 'use a version of the library that has the interface of standardschema.dev',
    );
  try {
    return { json: readJsonSchema(value) };
  } catch (error) {
    return fail(`the schema ${name}: ${(error as Error).message}`);
  }
}

function isStandardSchema(value: unknown): value is StandardSchema {
  return typeof Object(Object(value)['~standard']).validate === 'function';
}

/**
 * Opens the objects that a schema closes: an undeclared field of a result is sent, or left out without an error. An
 * object without `properties` gets empty ones, so that it still declares no field.
 */
function withoutClosing(schema: Schema): Schema {
  const open = (_name: string, value: unknown) => {
    const { additionalProperties, ...others } = Object(value) as Schema;
    const isClosed = /^(?:false|\{"not":\{\}\})$/.test(JSON.stringify(additionalProperties));
    // A default or an example is data, which can have this name, too.
    return isClosed && [others.type].flat().includes('object') ? { properties: {}, ...others } : value;
  };
  return JSON.parse(JSON.stringify(schema, open));
}

/** Puts the settings of an operation, and the JSON Schema of each schema, into its contract. */
export function applySchemas(
  contract: OperationContract,
  settings: OperationSettings,
  { body, query, path, result, queryAsData: asData }: PartSchemas,
  moveDefinitions: MoveDefinitions,
  defs: Definitions,
): OperationContract {
  const { name } = contract;
  const gaps: string[] = [];
  const write = (schema: PartSchema, part: PartName): Schema => {
    const side = part === 'result' ? 'output' : 'input';
    const onGap = (message: string) => gaps.push(`${part}: ${message}`);
    const json = 'json' in schema ? schema.json : jsonSchemaOf(schema.standard, side, onGap);
    const moved = moveDefinitions(part === 'result' ? withoutClosing(json) : json, `${name}_${part}`);
    return schema.isList === true ? { type: 'array', items: moved } : moved;
  };
  const [first, ...others] = contract.results as [ResultContract, ...ResultContract[]];
  const resultSchema = result && write(result, 'result');
  const firstResult = {
    ...first,
    // A JSON Schema also decides what `results: 'declared'` sends. The schema of a library is called instead.
    ...(result && 'json' in result && { returnedSchema: resultSchema }),
    // The setting `status` does not replace the status of a `Reply<201, …>`.
    status: first.status === 200 ? (settings.status ?? 200) : first.status,
    ...(resultSchema && sentForm(resultSchema, defs)),
  };
  const bodySchema = body && write(body, 'body');
  const querySchema = query && write(query, 'query');
  const applied = {
    ...contract,
    summary: settings.summary ?? contract.summary,
    data: bodySchema ?? (asData === 'always' ? querySchema : undefined) ?? contract.data,
    query: querySchema ?? contract.query,
    path: path === undefined ? contract.path : write(path, 'path'),
    uncheckedReason: needsNoDataType(name, settings) ? undefined : contract.uncheckedReason,
    results: [firstResult, ...others],
    undocumentedReason: result === undefined ? contract.undocumentedReason : undefined,
    ...([body, query, path].some((part) => part && 'standard' in part) && { runsAuthorsCode: true as const }),
  };
  return gaps.length === 0
    ? applied
    : { ...applied, schemaGaps: `its schema has no JSON Schema in one place (${gaps.join('; ')})` };
}

// The JSON Schemas of a tool, made from the contract of its operation (the types in the source): that of its arguments
// `{ path, query, body }`, and that of its result. Each schema contains the named schemas that it uses.
import { namesOf, type Segment } from '../../base/route-name.ts';
import { hasRequiredField, resolveReference } from '../../contract/check/run.ts';
import { type OperationContract, type Schema, TYPE_IS_UNKNOWN } from '../../contract/contract.ts';
import type { Operation } from '../../groups/operations.ts';

type Defs = Readonly<Record<string, Schema>>;

export interface InputParts {
  readonly operation: Pick<Operation, 'method' | 'settings'>;
  readonly contract: OperationContract;
  readonly endpoint: { readonly verb: string; readonly segments: readonly Segment[] };
  readonly defs: Defs;
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly [keyword: string]: unknown;
}

const BODILESS_VERBS: ReadonlySet<string> = new Set(['GET', 'DELETE']);
/** Keywords by which an object can have more fields than its `properties`. */
const OPENING_KEYWORDS = ['additionalProperties', 'patternProperties', 'allOf', 'anyOf', 'oneOf'];

export function inputSchema({ operation, contract, endpoint, defs }: InputParts): ObjectSchema {
  const dataIsQuery = BODILESS_VERBS.has(endpoint.verb);
  const data = dataSchema(operation, contract, dataIsQuery);
  const queries = [dataIsQuery ? data : undefined, contract.query].filter((part) => part !== undefined);
  const path = pathSchema(contract.path, namesOf(endpoint.segments), defs);
  const query = queries.length === 0 ? undefined : closeSchema(joinSchemas(queries, defs), defs);
  const body = dataIsQuery || data === undefined ? undefined : closeSchema(data, defs);
  const isBodyRequired =
    body !== undefined &&
    contract.data !== undefined &&
    !contract.dataIsOptional &&
    (resolveReference(body, defs).type !== 'object' || hasRequiredField(body, defs));
  const properties = { ...(path && { path }), ...(query && { query }), ...(body && { body }) };
  const required = [
    ...(path ? ['path'] : []),
    ...(queries.some((part) => hasRequiredField(part, defs) && !(part === data && contract.dataIsOptional))
      ? ['query']
      : []),
    ...(isBodyRequired ? ['body'] : []),
  ];
  const schema = { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false };
  return withDefs(schema, defs);
}

function pathSchema(schema: Schema | undefined, names: readonly string[], defs: Defs): Schema | undefined {
  if (names.length === 0) return undefined;
  const typedProperties = resolveReference(schema, defs).properties ?? {};
  const properties = Object.fromEntries(names.map((name) => [name, typedProperties[name] ?? { type: 'string' }]));
  return { type: 'object', properties, required: names, additionalProperties: false };
}

/** Joins the schemas of the query, because the types of `data` and of `params.query` may both declare its fields. */
function joinSchemas(parts: readonly Schema[], defs: Defs): Schema {
  const [firstPart = {}] = parts;
  if (parts.length < 2) return firstPart;
  const objects = parts.map((part) => resolveReference(part, defs));
  const required = [...new Set(objects.flatMap(({ required }) => required ?? []))];
  const joined = objects.some(isOpen)
    ? { allOf: parts }
    : { properties: Object.assign({}, ...objects.map(({ properties }) => properties)) };
  return { type: 'object', ...joined, ...(required.length > 0 && { required }) };
}

function isOpen(schema: Schema): boolean {
  return schema.properties === undefined || OPENING_KEYWORDS.some((keyword) => keyword in schema);
}

/**
 * Returns the schema of the data of an operation; undefined when the operation takes no data. If the data has no type,
 * the schema accepts any data. Returns undefined also for a query of the type `unknown`: a model could only guess.
 */
function dataSchema(
  { method }: InputParts['operation'],
  contract: OperationContract,
  isQuery: boolean,
): Schema | undefined {
  if (contract.data !== undefined) return contract.data;
  const takesNoData = method.length === 0 || contract.uncheckedReason === undefined;
  if (takesNoData || (isQuery && contract.uncheckedReason === TYPE_IS_UNKNOWN)) return undefined;
  return isQuery ? { type: 'object' } : {};
}

/** Forbids undeclared fields. A model that misspells a filter would else take the whole list for the filtered one. */
function closeSchema(schema: Schema, defs: Defs): Schema {
  const target = resolveReference(schema, defs);
  return isOpen(target) ? schema : { ...target, additionalProperties: false };
}

/**
 * Returns the schema of the results. Clients refuse a result that does not match its schema. So the schema is undefined
 * when a result has no type, is not JSON, or may be empty: the body of an empty result is made by the service.
 */
export function outputSchema(contract: OperationContract, defs: Defs): object | undefined {
  const schemas = contract.results.map(({ body, schema, mayBeSuccessMessage }) =>
    body === 'json' && schema !== undefined && mayBeSuccessMessage !== true ? objectSchema(schema, defs) : undefined,
  );
  const [first] = schemas;
  if (first === undefined || !schemas.every((schema) => schema !== undefined)) return undefined;
  return withDefs(schemas.length === 1 ? first : { type: 'object', anyOf: schemas }, defs);
}

/** The root of a tool's schema must be an object, so a list becomes `{ items }`. Undefined for any other result. */
function objectSchema(schema: Schema, defs: Defs): Schema | undefined {
  const target = resolveReference(schema, defs);
  if (target.type === 'object') return target;
  if (target.type === 'array') return { type: 'object', properties: { items: schema }, required: ['items'] };
  const parts = target.anyOf;
  const areObjects = parts?.every((part) => resolveReference(part, defs).type === 'object');
  return areObjects ? { type: 'object', ...target } : undefined;
}

/** Adds the named schemas that a schema uses, also indirectly. Writes each schema so that clients can read it. */
function withDefs<S extends Schema>(schema: S, defs: Defs): S {
  const usedSchemas = new Map<string, Schema>();
  const pending: Schema[] = [schema];
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    for (const [, name = ''] of JSON.stringify(current).matchAll(/"\$ref":"#\/\$defs\/([\w.-]+)"/g)) {
      const target = defs[name];
      if (usedSchemas.has(name) || target === undefined) continue;
      usedSchemas.set(name, target);
      pending.push(target);
    }
  }
  const fullSchema = usedSchemas.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(usedSchemas) };
  return JSON.parse(JSON.stringify(fullSchema), (_, value) =>
    isEnumOfTexts(value) ? { type: 'string', ...value } : withPlainTuple(value),
  );
}

/** Lets `items` fit each entry of a tuple: the SDK for TypeScript checks by draft-07, which has no `prefixItems`. */
function withPlainTuple(value: unknown): unknown {
  const { prefixItems, items, ...others } = Object(value) as Schema;
  if (!Array.isArray(prefixItems) || items === undefined) return value;
  if (items === false) return { ...others, prefixItems, maxItems: prefixItems.length };
  return { ...others, prefixItems, items: { anyOf: [...prefixItems, items] } };
}

/** Some model providers refuse an `enum` of texts without a type. */
function isEnumOfTexts(value: unknown): boolean {
  const { enum: literals } = Object(value) as { readonly enum?: unknown };
  return Array.isArray(literals) && literals.every((literal) => typeof literal === 'string');
}

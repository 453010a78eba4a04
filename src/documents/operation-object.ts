// Describes one operation in the OpenAPI document: its parameters, body, answers and callers.
import { STATUS_CODES } from '../base/builtins.ts';
import { isBuiltInType, isExactList } from '../base/media-kinds.ts';
import { isObject } from '../base/values.ts';
import { METHODS_WITHOUT_BODY } from '../contract/check/library.ts';
import { hasRequiredField, resolveReference } from '../contract/check/run.ts';
import type { OperationContract, ResultContract, Schema } from '../contract/contract.ts';
import { isFile } from '../contract/schema/schema.ts';
import { type AccessWriter, refusalsOf } from './access.ts';
import { type Components, hasFile, type SchemaGroup } from './components.ts';
import type { DocumentedOperation } from './documented.ts';

export interface Endpoint {
  readonly verb: string;
  readonly path: string;
  /** Whether the last segment captures the rest of the path. */
  readonly hasRest?: boolean;
  /** The names of the captured segments: as the document shows them, and as the operation's route declares them. */
  readonly names: readonly { readonly shownName: string; readonly declaredName: string }[];
}

export interface OperationParts {
  readonly operation: DocumentedOperation;
  readonly contract: OperationContract;
  readonly endpoint: Endpoint;
  readonly group: SchemaGroup;
  readonly components: Components;
  readonly access: AccessWriter;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly [key: string]: unknown;
}

export function describeOperation(parts: OperationParts): object {
  const { operation, contract, endpoint } = parts;
  const dataIsQuery = METHODS_WITHOUT_BODY.has(endpoint.verb);
  const dataParameters = dataIsQuery ? describeQuery(contract.data, parts) : [];
  const parameters = [
    ...describePath(parts),
    // Optional data may be left out, with all its fields.
    ...dataParameters.map((parameter) => (contract.dataIsOptional ? { ...parameter, required: undefined } : parameter)),
    ...describeQuery(contract.query, parts),
    ...describeQuery(contract.headers, parts, 'header'),
    ...(ETAG_CHECK.test(String(operation.method)) ? [IF_MATCH] : []),
  ];
  return {
    summary: operation.settings.summary ?? contract.summary,
    description: contract.description,
    deprecated: contract.isDeprecated || undefined,
    parameters: parameters.length === 0 ? undefined : removeDuplicates(parameters),
    requestBody: dataIsQuery ? undefined : describeBody(parts),
    responses: describeResponses(parts),
    security: parts.access.requirementsOf(operation.settings.access),
  };
}

/** Matches a call of `ifMatch` in the source text of an operation, and its option `required`. */
const ETAG_CHECK = /\bifMatch\)?\s*\((?:[^;]*\brequired:\s*(true)\b)?/;
const IF_MATCH: Parameter = {
  ...{ name: 'if-match', in: 'header', schema: { type: 'string' } },
  description: 'The entity tag of what the client has read.',
};

function describePath({ endpoint, contract, group, components }: OperationParts): Parameter[] {
  const properties = resolveReference(contract.path, group.defs).properties;
  return endpoint.names.map(({ shownName, declaredName }) => {
    const { description, ...schema } = properties?.[declaredName] ?? { type: 'string' };
    return { name: shownName, in: 'path', required: true, description, schema: components.publish(group, schema) };
  });
}

/**
 * Each property of an object becomes a parameter. Another schema, such as a union, becomes one parameter. So do the
 * other names of `{ page: Int } & Record<string, string>`.
 */
function describeQuery(
  schema: Schema | undefined,
  { group, components }: OperationParts,
  where: 'query' | 'header' = 'query',
): Parameter[] {
  if (schema === undefined) return [];
  const { properties, required = [], anyOf, additionalProperties: others } = resolveReference(schema, group.defs);
  const publishWhole = (whole: Schema, isRequired?: true): Parameter => {
    const form = { style: 'form', explode: true, schema: components.publish(group, whole) };
    return { name: 'query', in: 'query', required: isRequired, ...form };
  };
  if (anyOf !== undefined || properties === undefined)
    return [publishWhole(schema, hasRequiredField(schema, group.defs) || undefined)];
  const parameters = Object.entries(properties).map(([name, { description, deprecated, ...property }]): Parameter => {
    const isRequired = required.includes(name) || undefined;
    const published = components.publish(group, property);
    return { name, in: where, required: isRequired, description, deprecated, schema: published };
  });
  const isOpen = others === true || (isObject(others) && !('not' in others));
  return isOpen ? [publishWhole({ type: 'object', additionalProperties: others }), ...parameters] : parameters;
}

/** `data` and `params.query` may both declare a parameter. The one of `params.query`, which comes later, counts. */
function removeDuplicates(parameters: readonly Parameter[]): Parameter[] {
  return [...new Map(parameters.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter])).values()];
}

function describeBody({ operation, contract, group, components }: OperationParts): object | undefined {
  const { method, settings } = operation;
  const { data: schema, dataIsOptional, uncheckedReason } = contract;
  const isBytes = settings.body === 'stream' || isFile(resolveReference(schema, group.defs));
  const mediaTypes = settings.accepts ?? (isBytes ? ['application/octet-stream'] : undefined);
  const bytes = { schema: { type: 'string', format: 'binary' } };
  const decoded = isBytes ? bytes : { schema: schema === undefined ? {} : components.publish(group, schema) };
  const content = Object.fromEntries(
    (mediaTypes ?? []).map((type): [string, object] => [type, isBuiltInType(type) ? decoded : bytes]),
  );
  if (schema !== undefined && !isBytes) {
    const type = hasFile(schema, group.defs) ? 'multipart/form-data' : 'application/json';
    const { required = [], type: kind } = resolveReference(schema, group.defs);
    return {
      required: !dataIsOptional && (kind !== 'object' || required.length > 0),
      content: isExactList(mediaTypes) ? content : { [type]: decoded, ...content },
    };
  }
  if (mediaTypes !== undefined) return { required: true, content };
  // The method has no parameter, or its source declares no data.
  const takesNoData = method.length === 0 || uncheckedReason === undefined;
  return takesNoData ? undefined : { content: { 'application/json': { schema: {} } } };
}

function describeResponses({ operation, contract, group, components }: OperationParts): object {
  const { settings, method } = operation;
  const { data, query, path, headers, results } = contract;
  const isChecked = [data, query, path, headers, settings.query, settings.path].some((schema) => schema !== undefined);
  const refer = (name: string) => ({ $ref: `#/components/responses/${name}` });
  const responses: Record<string, object> = {};
  const contents = new Map<number, [type: string, schema: Schema][]>();
  for (const result of results) {
    const { status } = result;
    const schemas = describeContent(result, (schema) => components.publish(group, schema));
    contents.set(status, [...(contents.get(status) ?? []), ...schemas]);
  }
  for (const [status, schemas] of contents) {
    const entries = schemas.map(([type]) => [type, { schema: uniteSchemas(schemas, type) }] as const);
    const content = entries.length === 0 ? undefined : Object.fromEntries(entries);
    responses[status] = { description: STATUS_CODES[status] ?? 'Done', content };
  }
  for (const [status, name] of Object.entries(refusalsOf(settings.access))) responses[status] = refer(name);
  const etagCheck = ETAG_CHECK.exec(String(method));
  if (etagCheck !== null) responses[412] = refer('PreconditionFailed');
  if (etagCheck?.[1] !== undefined) responses[428] = refer('PreconditionRequired');
  if (isChecked || settings.body !== undefined) responses[422] = refer('InvalidData');
  return { ...responses, default: refer('Refused') };
}

function uniteSchemas(schemas: readonly [type: string, schema: Schema][], type: string): Schema {
  const parts = schemas.filter(([other]) => other === type).map(([, schema]) => schema);
  return parts.length === 1 ? (parts[0] as Schema) : { anyOf: parts };
}

/** Returns the schemas of a result by their media types. */
function describeContent(result: ResultContract, publish: (schema: Schema) => Schema): [type: string, Schema][] {
  const { body, schema, returnedSchema, mayBeAbsent, mayBeSuccessMessage, isReplyWithBody } = result;
  const isEmpty = schema === undefined && mayBeAbsent === true;
  if (body === 'none' || (isEmpty && isReplyWithBody)) return [];
  if (body === 'bytes') return [['*/*', { type: 'string', format: 'binary' }]];
  if (body === 'events') {
    // The data of each event is the JSON of one item.
    const item = returnedSchema && { contentMediaType: 'application/json', contentSchema: publish(returnedSchema) };
    return [['text/event-stream', { type: 'string', ...item }]];
  }
  const shown = isEmpty ? SUCCESS_SCHEMA : mayBeSuccessMessage ? { anyOf: [schema ?? {}, SUCCESS_SCHEMA] } : schema;
  return [['application/json', publish(shown ?? {})]];
}

/** The body for a result that is undefined, null or true. */
const SUCCESS_SCHEMA: Schema = {
  type: 'object',
  properties: { status: { const: 'success' }, message: { type: 'string' }, timestamp: { type: 'integer' } },
  required: ['status', 'message', 'timestamp'],
};

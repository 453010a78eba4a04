// Describes one operation in the OpenAPI document: its parameters, body, answers and callers.
import { STATUS_CODES } from '../base/builtins.ts';
import { isBuiltInType, isExactList } from '../base/media-kinds.ts';
import { resolveReference } from '../contract/check/run.ts';
import type { OperationContract, ResultContract, Schema } from '../contract/contract.ts';
import { type AccessWriter, refusalsOf } from './access.ts';
import { type Components, hasFile, isFile, type SchemaGroup } from './components.ts';
import type { DocumentedOperation } from './documented.ts';

export interface Endpoint {
  readonly verb: string;
  readonly path: string;
  /** The names of the captured segments: as the document shows them, and as the operation's route declares them. */
  readonly names: readonly { readonly shownName: string; readonly declaredName: string }[];
}

export interface OperationParts {
  readonly operation: DocumentedOperation;
  readonly contract: OperationContract | undefined;
  readonly endpoint: Endpoint;
  readonly group: SchemaGroup;
  readonly components: Components;
  readonly access: AccessWriter;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly [key: string]: unknown;
}

/** The methods whose data is the query, because their requests have no body. */
const BODILESS_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

export function describeOperation(parts: OperationParts): object {
  const { operation, contract, endpoint } = parts;
  const dataIsQuery = BODILESS_METHODS.has(endpoint.verb);
  const parameters = [
    ...describePath(parts),
    ...(dataIsQuery ? describeQuery(contract?.data, parts) : []),
    ...describeQuery(contract?.query, parts),
  ];
  return {
    summary: operation.settings.summary ?? contract?.summary,
    description: contract?.description,
    deprecated: contract?.isDeprecated || undefined,
    parameters: parameters.length === 0 ? undefined : removeDuplicates(parameters),
    requestBody: dataIsQuery ? undefined : describeBody(parts),
    responses: describeResponses(parts),
    security: parts.access.requirementsOf(operation.settings.access),
  };
}

function describePath({ endpoint, contract, group, components }: OperationParts): Parameter[] {
  const properties = resolveReference(contract?.path, group.defs).properties;
  return endpoint.names.map(({ shownName, declaredName }) => {
    const { description, ...schema } = properties?.[declaredName] ?? { type: 'string' };
    return { name: shownName, in: 'path', required: true, description, schema: components.publish(group, schema) };
  });
}

/** Each property of an object becomes a parameter. Another schema, such as a union, becomes one parameter. */
function describeQuery(schema: Schema | undefined, { group, components }: OperationParts): Parameter[] {
  if (schema === undefined) return [];
  const { properties, required = [], anyOf } = resolveReference(schema, group.defs);
  if (anyOf !== undefined || properties === undefined)
    return [{ name: 'query', in: 'query', style: 'form', explode: true, schema: components.publish(group, schema) }];
  return Object.entries(properties).map(([name, { description, deprecated, ...property }]) => {
    const isRequired = required.includes(name) || undefined;
    const published = components.publish(group, property);
    return { name, in: 'query', required: isRequired, description, deprecated, schema: published };
  });
}

/** `data` and `params.query` may both declare a parameter. The one of `params.query`, which comes later, counts. */
function removeDuplicates(parameters: readonly Parameter[]): Parameter[] {
  return [...new Map(parameters.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter])).values()];
}

function describeBody({ operation, contract, group, components }: OperationParts): object | undefined {
  const { method, settings } = operation;
  const schema = contract?.data;
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
      required: contract?.dataIsOptional !== true && (kind !== 'object' || required.length > 0),
      content: isExactList(mediaTypes) ? content : { [type]: decoded, ...content },
    };
  }
  if (mediaTypes !== undefined) return { required: true, content };
  // The method has no parameter, or its source has been read and declares no data.
  const takesNoData = method.length === 0 || (contract !== undefined && contract.uncheckedReason === undefined);
  return takesNoData ? undefined : { content: { 'application/json': { schema: {} } } };
}

function describeResponses({ operation: { settings }, contract, group, components }: OperationParts): object {
  const { data, query, path, results = [{ status: 200, body: 'json', schema: undefined }] } = contract ?? {};
  const isChecked = [data, query, path].some((schema) => schema !== undefined);
  const refer = (name: string) => ({ $ref: `#/components/responses/${name}` });
  const responses: Record<string, object> = {};
  for (const [i, { status: declaredStatus, body, schema }] of results.entries()) {
    // The setting `status` replaces a 200 of the first result.
    const status = i === 0 && declaredStatus === 200 ? (settings.status ?? 200) : declaredStatus;
    responses[status] = {
      description: STATUS_CODES[status] ?? 'Done',
      content: describeContent({ body, schema: schema && components.publish(group, schema) }),
    };
  }
  for (const [status, name] of Object.entries(refusalsOf(settings.access))) responses[status] = refer(name);
  if (isChecked || settings.body !== undefined || settings.query !== undefined) responses[422] = refer('InvalidData');
  return { ...responses, default: refer('Refused') };
}

function describeContent({ body, schema }: Pick<ResultContract, 'body' | 'schema'>): object | undefined {
  if (body === 'none') return undefined;
  if (body === 'events') return { 'text/event-stream': { schema: { type: 'string' } } };
  if (body === 'bytes') return { '*/*': { schema: { type: 'string', format: 'binary' } } };
  return { 'application/json': { schema: schema ?? {} } };
}

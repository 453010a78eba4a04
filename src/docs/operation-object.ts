// One operation in the OpenAPI document: parameters, body, answers, and who may call it. Where an operation stands in
// the document is openapi.ts.
import { STATUS_CODES } from '../base/builtins.ts';
import { resolveReference } from '../contract/check/run.ts';
import type { OperationContract, ResultContract, Schema } from '../contract/contract.ts';
import { type Components, hasFile, isFile, type SchemaGroup } from './components.ts';
import type { DocumentedOperation } from './openapi.ts';

/** Where an operation stands in the document. */
export interface Place {
  readonly verb: string;
  readonly path: string;
  /** What is captured of the path: by the name that the document shows, and the operation's own. */
  readonly names: readonly { readonly shown: string; readonly own: string }[];
}

export interface OperationParts {
  readonly operation: DocumentedOperation;
  readonly known: OperationContract | undefined;
  readonly place: Place;
  readonly group: SchemaGroup;
  readonly components: Components;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly [key: string]: unknown;
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);
const ERROR = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };

/** What every document has beside the groups' own. */
export const OWN_SCHEMAS: Readonly<Record<string, Schema>> = {
  Error: {
    type: 'object',
    description: 'Every error has this shape.',
    properties: {
      status: { const: 'error' },
      error_code: { type: 'string', examples: ['GROUP_NOT_FOUND'] },
      message: { type: 'string' },
      timestamp: { type: 'integer', description: 'Unix time in seconds.' },
      request_id: { type: 'string', description: 'To be looked for in the log of the service.' },
      errors: { type: 'array', items: { $ref: '#/components/schemas/FieldError' } },
    },
    required: ['status', 'error_code', 'message', 'timestamp', 'request_id'],
  },
  FieldError: {
    type: 'object',
    properties: {
      in: { enum: ['body', 'query', 'path'] },
      pointer: { type: 'string', description: 'A JSON pointer (RFC 6901); empty for the whole.' },
      message: { type: 'string' },
    },
    required: ['pointer', 'message'],
  },
};

export const OWN_RESPONSES: Readonly<Record<string, object>> = {
  Refused: { description: 'Refused, or failed', content: ERROR },
  InvalidData: {
    description: 'The data is not what the operation takes: errors names each wrong field',
    content: ERROR,
  },
  CredentialRequired: { description: 'There is no credential, or it is not valid', content: ERROR },
  ScopeMissing: { description: 'The credential may not do this', content: ERROR },
};

export function describeOperation(parts: OperationParts): object {
  const { operation, known, place } = parts;
  const isInQuery = BODILESS.has(place.verb);
  const parameters = [
    ...pathParameters(parts),
    ...(isInQuery ? queryParameters(known?.data, parts) : []),
    ...queryParameters(known?.query, parts),
  ];
  return {
    summary: operation.settings.summary ?? known?.summary,
    description: known?.description,
    deprecated: known?.deprecated || undefined,
    parameters: parameters.length === 0 ? undefined : onceEach(parameters),
    requestBody: isInQuery ? undefined : requestBody(parts),
    responses: responses(parts),
    security: security(operation.settings.access),
  };
}

function pathParameters({ place, known, group, components }: OperationParts): Parameter[] {
  const properties = resolveReference(known?.path, group.defs).properties as Record<string, Schema> | undefined;
  return place.names.map(({ shown, own }) => {
    const { description, ...schema } = properties?.[own] ?? { type: 'string' };
    return { name: shown, in: 'path', required: true, description, schema: components.publish(group, schema) };
  });
}

/** The properties of an object, each for itself. Any other schema is the query as a whole. */
function queryParameters(schema: Schema | undefined, { group, components }: OperationParts): Parameter[] {
  if (schema === undefined) return [];
  const {
    properties,
    required = [],
    anyOf,
  } = resolveReference(schema, group.defs) as { properties?: object; required?: string[]; anyOf?: unknown };
  if (anyOf !== undefined || properties === undefined) {
    return [{ name: 'query', in: 'query', style: 'form', explode: true, schema: components.publish(group, schema) }];
  }
  return Object.entries(properties as Record<string, Schema>).map(
    ([name, { description, deprecated, ...property }]) => {
      const published = components.publish(group, property);
      return {
        name,
        in: 'query',
        required: required.includes(name) || undefined,
        description,
        deprecated,
        schema: published,
      };
    },
  );
}

/** `data` and `params.query` may both speak of the query. */
function onceEach(parameters: readonly Parameter[]): Parameter[] {
  return [...new Map(parameters.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter])).values()];
}

function requestBody({
  operation: { method, settings },
  known,
  group,
  components,
}: OperationParts): object | undefined {
  const schema = known?.data;
  const isBytes = settings.body === 'stream' || isFile(resolveReference(schema, group.defs));
  const types = settings.accepts ?? (isBytes ? ['application/octet-stream'] : undefined);
  const bytes = { schema: { type: 'string', format: 'binary' } };
  const content = Object.fromEntries((types ?? []).map((type): [string, object] => [type, bytes]));
  if (schema !== undefined && !isBytes) {
    const type = hasFile(schema, group.defs) ? 'multipart/form-data' : 'application/json';
    const { required = [], type: kind } = resolveReference(schema, group.defs) as {
      required?: string[];
      type?: unknown;
    };
    return {
      required: known?.optional !== true && (kind !== 'object' || required.length > 0),
      content: { [type]: { schema: components.publish(group, schema) }, ...content },
    };
  }
  if (types !== undefined) return { required: true, content };
  const takesNothing = method.length === 0 || (known !== undefined && known.unchecked === undefined);
  return takesNothing ? undefined : { content: { 'application/json': { schema: {} } } };
}

function responses({ operation: { settings }, known, group, components }: OperationParts): object {
  const results = known?.results ?? [{ status: 200, body: 'json', schema: undefined }];
  const isChecked = [known?.data, known?.query, known?.path].some((schema) => schema !== undefined);
  const { access = 'anyone' } = settings;
  const refer = (name: string) => ({ $ref: `#/components/responses/${name}` });
  const found: Record<string, object> = {};
  for (const [i, { status, body, schema }] of results.entries()) {
    const shown = i === 0 && status === 200 ? (settings.status ?? 200) : status;
    found[shown] = {
      description: STATUS_CODES[shown] ?? 'Done',
      content: contentOf({ body, schema: schema && components.publish(group, schema) }),
    };
  }
  if (access !== 'anyone') found[401] = refer('CredentialRequired');
  if (typeof access === 'object') found[403] = refer('ScopeMissing');
  if (isChecked || settings.body !== undefined || settings.query !== undefined) found[422] = refer('InvalidData');
  return { ...found, default: refer('Refused') };
}

function contentOf({ body, schema }: Pick<ResultContract, 'body' | 'schema'>): object | undefined {
  if (body === 'none') return undefined;
  if (body === 'events') return { 'text/event-stream': { schema: { type: 'string' } } };
  if (body === 'bytes') return { '*/*': { schema: { type: 'string', format: 'binary' } } };
  return { 'application/json': { schema: schema ?? {} } };
}

/** Undefined: as the whole document says. */
function security(access: DocumentedOperation['settings']['access']): object[] | undefined {
  if (access === undefined || access === 'anyone') return undefined;
  return [{ application: access === 'application' ? [] : [access.scope] }];
}

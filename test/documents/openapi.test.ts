// The OpenAPI document as a function of groups: the path and the description of each operation. docs.test.ts tests the
// way from source to document over a socket. judges/ runs other tools on the document.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OperationSettings } from '../../src/api/controller/operations.ts';
import type { GroupContract, OperationContract, Schema } from '../../src/contract/contract.ts';
import type { DocumentedGroup } from '../../src/documents/documented.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { createRoutes } from '../../src/groups/group-routes.ts';

interface Row extends Partial<OperationContract> {
  readonly name: string;
  readonly settings?: OperationSettings;
  /** How many parameters the method has; default: 2. */
  readonly takes?: number;
}

const METHODS = [() => {}, (_: unknown) => {}, (_: unknown, __: unknown) => {}];
const EMPTY = {
  summary: undefined,
  description: undefined,
  dataIsOptional: false,
  isDeprecated: false,
  data: undefined,
  query: undefined,
  path: undefined,
  user: undefined,
};
const NOTHING = { ...EMPTY, uncheckedReason: undefined, undocumented: undefined, at: undefined };
const ANY = [{ status: 200, body: 'json', schema: undefined }] as const;

function group(name: string, rows: readonly Row[], defs: Record<string, Schema> = {}): DocumentedGroup {
  const operations = rows.map(({ name: of, settings = {}, takes = 2 }) => ({
    name: of,
    method: METHODS[takes] ?? (() => {}),
    settings,
  }));
  const known = rows.map(
    ({ settings: _, takes: __, ...contract }): OperationContract => ({ ...NOTHING, results: ANY, ...contract }),
  );
  const contract: GroupContract = {
    group: name,
    ...EMPTY,
    operations: new Map(known.map((one) => [one.name, one])),
    defs,
  };
  const routes = createRoutes(rows.map((row) => row.name));
  return { name, operations: new Map(operations.map((one) => [one.name, one])), routes, contract };
}

/** The document as a client receives it. */
function documentOf(...groups: readonly DocumentedGroup[]) {
  const text = JSON.stringify(createDocument(groups, { title: 'test', version: '1' }));
  return JSON.parse(text) as {
    tags: object[];
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, Schema> };
  };
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Record<string, { readonly schema: Schema }> };
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: Schema }> }>;
  readonly security?: object[];
  readonly [key: string]: unknown;
}

const placesOf = (...groups: readonly DocumentedGroup[]) =>
  Object.entries(documentOf(...groups).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([verb, { operationId }]) => `${verb} ${path} ${operationId}`),
  );

const only = (...rows: readonly Row[]): Operation => {
  const [path = {}] = Object.values(documentOf(group('Order', rows)).paths);
  return Object.values(path)[0] as Operation;
};

describe('an operation is listed under', () => {
  const rows: Record<string, [rows: readonly Row[], places: readonly string[]]> = {
    'the method of the verb table': [
      ['index', 'created', 'red', 'patch', 'deleted', 'options'].map((name) => ({ name })),
      ['get index', 'post created', 'put red', 'patch patch', 'delete deleted', 'options options'].map((words) => {
        const [verb, name] = words.split(' ');
        return `${verb} /api/order order_${name}`;
      }),
    ],
    'its name: GET without a parameter, POST with a parameter, PUT for updated': [
      [{ name: 'hello', takes: 0 }, { name: 'find' }, { name: 'updated' }],
      ['get /api/order/hello order_hello', 'post /api/order/find order_find', 'put /api/order/updated order_updated'],
    ],
    'its name in a strict group: POST alone': [
      [{ name: 'hello', takes: 0 }, { name: 'updated' }, { name: 'GET x' }],
      ['post /api/order/hello order_hello', 'post /api/order/updated order_updated', 'get /api/order/x order_GET_x'],
    ],
    'its route': [
      [{ name: 'GET {id}/items/{item}' }, { name: 'PUT files/{path*}' }, { name: 'GET export.csv' }],
      [
        'get /api/order/{id}/items/{item} order_GET_by_id_items_by_item',
        'put /api/order/files/{path} order_PUT_files_by_path',
        'get /api/order/export.csv order_GET_export_csv',
      ],
    ],
    'the bare group, for a method without a pattern': [
      ['index', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'find'].map((name) => ({ name })),
      [
        'get /api/order order_index',
        'post /api/order order_POST',
        'put /api/order order_PUT',
        'patch /api/order order_PATCH',
        'delete /api/order order_DELETE',
        'options /api/order order_OPTIONS',
        'post /api/order/find order_find',
      ],
    ],
    'the bare group: GET and HEAD separately': [
      [{ name: 'GET' }, { name: 'HEAD' }],
      ['get /api/order order_GET', 'head /api/order order_HEAD'],
    ],
    'one path when the names of its captures differ': [
      [{ name: 'GET {id}' }, { name: 'DELETE {order}' }],
      ['get /api/order/{id} order_GET_by_id', 'delete /api/order/{id} order_DELETE_by_order'],
    ],
    'a unique id when two ids would be equal': [
      [{ name: 'GET a.b' }, { name: 'GET a_b' }],
      ['get /api/order/a.b order_GET_a_b', 'get /api/order/a_b order_GET_a_b_2'],
    ],
    'no path when it is hidden': [
      [{ name: 'index', settings: { hidden: true } }, { name: 'created' }],
      ['post /api/order order_created'],
    ],
  };
  for (const [name, [given, places]] of Object.entries(rows)) {
    test(name, () => assert.deepEqual(placesOf(group('Order', given)), places));
  }
  test('its group in lower camel case, in alphabetical order', () => {
    assert.deepEqual(placesOf(group('B', [{ name: 'index' }]), group('AItem', [{ name: 'index' }])), [
      'get /api/aItem aItem_index',
      'get /api/b b_index',
    ]);
    assert.deepEqual(documentOf(group('A', [{ name: 'index', settings: { hidden: true } }])).tags, []);
  });
});

const ITEM = {
  type: 'object',
  properties: { page: { type: 'integer' }, sort: { enum: ['a', 'b'] } },
  required: ['page'],
};

describe('the request of an operation', () => {
  const named = (operation: Operation) =>
    operation.parameters?.map(({ name, in: at, required }) => `${at} ${name}${required ? '!' : ''}`);
  test('has the data and the query of a GET as parameters, each once', () => {
    const query = { type: 'object', properties: { sort: { type: 'string' }, dryRun: { type: 'boolean' } } };
    assert.deepEqual(named(only({ name: 'index', data: ITEM, query })), ['query page!', 'query sort', 'query dryRun']);
    assert.equal(only({ name: 'index', data: ITEM }).requestBody, undefined);
  });
  test('has the data of a POST as its body, required when a field is required', () => {
    const { requestBody } = only({ name: 'created', data: ITEM });
    assert.deepEqual([requestBody?.required, Object.keys(requestBody?.content ?? {})], [true, ['application/json']]);
    assert.equal(only({ name: 'created', data: { type: 'object', properties: {} } }).requestBody?.required, false);
  });
  test('has a body of any type for unchecked data, and no body without data', () => {
    assert.deepEqual(only({ name: 'created', uncheckedReason: 'it has no annotation' }).requestBody?.content, {
      'application/json': { schema: {} },
    });
    assert.equal(only({ name: 'created', takes: 0 }).requestBody, undefined);
    assert.equal(only({ name: 'PUT x' }).requestBody, undefined);
  });
  test('has the types of the path captures under their listed names', () => {
    const path = { type: 'object', properties: { order: { type: 'integer' } } };
    const { paths } = documentOf(group('Order', [{ name: 'GET {id}' }, { name: 'DELETE {order}', path }]));
    const parameters = paths['/api/order/{id}']?.delete?.parameters;
    assert.deepEqual(parameters, [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }]);
  });
  test('has a form for data with a file, and bytes for data that is a file', () => {
    const file = { type: 'string', contentMediaType: 'application/octet-stream' };
    const typesOf = (data: Schema, settings: OperationSettings = {}) =>
      Object.keys(only({ name: 'created', data, settings }).requestBody?.content ?? {});
    assert.deepEqual(typesOf({ type: 'object', properties: { pages: { type: 'array', items: file } } }), [
      'multipart/form-data',
    ]);
    assert.deepEqual(typesOf(file), ['application/octet-stream']);
    assert.deepEqual(typesOf(file, { accepts: ['image/*'] }), ['image/*']);
    const json = ['application/json'];
    assert.deepEqual(typesOf(ITEM, { accepts: ['image/*'] }), ['application/json', 'image/*']);
    assert.deepEqual(typesOf(ITEM, { accepts: ['application/x-www-form-urlencoded'] }), [
      'application/x-www-form-urlencoded',
    ]);
    assert.deepEqual(
      only({ name: 'created', data: { type: 'integer' }, settings: { accepts: json } }).requestBody?.content,
      { 'application/json': { schema: { type: 'integer' } } },
    );
    assert.deepEqual(only({ name: 'created', settings: { accepts: json, body: 'stream' } }).requestBody?.content, {
      'application/json': { schema: { type: 'string', format: 'binary' } },
    });
    assert.deepEqual(Object.keys(only({ name: 'created', settings: { body: 'stream' } }).requestBody?.content ?? {}), [
      'application/octet-stream',
    ]);
  });
  test('has a form for a file at any depth, and JSON for a type with many fields of itself', () => {
    const file: Schema = { type: 'string', contentMediaType: 'application/octet-stream' };
    const levels = Array.from({ length: 12 }, (_, i) => `level${i}`);
    const deep = levels.reduce<Schema>((inner, name) => ({ type: 'object', properties: { [name]: inner } }), file);
    const tree = { $ref: '#/$defs/Tree' };
    const defs = { Tree: { type: 'object', properties: Object.fromEntries(levels.map((name) => [name, tree])) } };
    const rows = [
      { name: 'POST deep', data: deep },
      { name: 'POST tree', data: tree },
    ];
    const { paths } = documentOf(group('Order', rows, defs));
    const typesAt = (path: string) => Object.keys(paths[path]?.post?.requestBody?.content ?? {});
    assert.deepEqual(typesAt('/api/order/deep'), ['multipart/form-data']);
    assert.deepEqual(typesAt('/api/order/tree'), ['application/json']);
  });
  test('has a query that is not a plain object as one parameter', () => {
    assert.deepEqual(named(only({ name: 'index', data: { anyOf: [ITEM, { type: 'null' }] } })), ['query query']);
  });
});

describe('an operation in the document', () => {
  const statuses = (operation: Operation) => Object.keys(operation.responses).join(' ');
  test('has each status with its content type, and a default error', () => {
    const { responses } = only({
      name: 'index',
      results: [
        { status: 200, body: 'events', schema: undefined },
        { status: 201, body: 'bytes', schema: undefined },
        { status: 202, body: 'json', schema: { type: 'object' } },
        { status: 204, body: 'none', schema: undefined },
      ],
    });
    assert.deepEqual(
      Object.entries(responses).map(([status, { content }]) => [status, ...Object.keys(content ?? {})].join(' ')),
      ['200 text/event-stream', '201 */*', '202 application/json', '204', 'default'],
    );
  });
  test('has 422 for checked data, 401 for a credential and 403 for a scope', () => {
    assert.equal(statuses(only({ name: 'index' })), '200 default');
    assert.equal(statuses(only({ name: 'index', data: ITEM })), '200 422 default');
    const application = only({ name: 'index', settings: { access: 'application' } });
    assert.deepEqual([statuses(application), application.security], ['200 401 default', [{ application: [] }]]);
    const scope = only({ name: 'index', settings: { access: { scope: 'orders:write' } } });
    assert.deepEqual([statuses(scope), scope.security], ['200 401 403 default', [{ application: ['orders:write'] }]]);
    assert.equal(statuses(only({ name: 'index', settings: { status: 202 } })), '202 default');
  });
  test('has a summary, a description and a deprecation; `static operations` overrides the summary', () => {
    const { summary, description, deprecated } = only({
      name: 'index',
      summary: 'A',
      description: 'B',
      isDeprecated: true,
    });
    assert.deepEqual([summary, description, deprecated], ['A', 'B', true]);
    assert.equal(only({ name: 'index', summary: 'A', settings: { summary: 'C' } }).summary, 'C');
  });
});

describe('the named schemas of several groups', () => {
  const ref = { $ref: '#/$defs/User' };
  const schemasOf = (...groups: readonly DocumentedGroup[]) => Object.keys(documentOf(...groups).components.schemas);
  const index = { name: 'index', results: [{ status: 200, body: 'json', schema: ref }] } as const;
  test('become one schema when they are equal', () => {
    const defs = { User: { type: 'object' } };
    assert.deepEqual(schemasOf(group('A', [index], defs), group('B', [index], defs)), ['User', 'Error', 'FieldError']);
  });
  test('get the prefix of their group when they differ, like the schemas that refer to them', () => {
    const defs = (type: string) => ({
      User: { type: 'object', properties: { id: { $ref: '#/$defs/Id' } } },
      Id: { type },
    });
    const made = documentOf(group('A', [index], defs('string')), group('B', [index], defs('integer')));
    assert.deepEqual(Object.keys(made.components.schemas), ['a.Id', 'a.User', 'b.Id', 'b.User', 'Error', 'FieldError']);
    assert.deepEqual(made.components.schemas['b.User'], {
      type: 'object',
      properties: { id: { $ref: '#/components/schemas/b.Id' } },
    });
    const schema = made.paths['/api/b']?.get?.responses[200]?.content?.['application/json']?.schema;
    assert.deepEqual(schema, { $ref: '#/components/schemas/b.User' });
  });
  test('never replace the schemas of the document itself', () => {
    const defs = { Error: { type: 'object' }, User: { items: { $ref: '#/$defs/Error' } } };
    assert.deepEqual(schemasOf(group('A', [index], defs)), ['a.Error', 'a.User', 'Error', 'FieldError']);
  });
  test('are only the schemas of visible operations; hidden operations rename no schema', () => {
    const hidden = { name: 'created', data: { $ref: '#/$defs/Secret' }, settings: { hidden: true } };
    const defs = { User: { items: { $ref: '#/$defs/Id' } }, Id: { items: { $ref: '#/$defs/User' } } };
    const more = { Secret: { items: { $ref: '#/$defs/Id' } }, Idle: {} };
    const other = group('B', [{ ...index, settings: { hidden: true } }], { User: { type: 'string' }, Secret: {} });
    assert.deepEqual(schemasOf(group('A', [index, hidden], { ...defs, ...more }), other), [
      'Id',
      'User',
      'Error',
      'FieldError',
    ]);
  });
  test('have the type of constants and the format of files, which other tools need', () => {
    const defs = {
      User: { enum: ['a', 'b'] },
      One: { const: 1 },
      File: { type: 'string', contentMediaType: 'image/png' },
      Mixed: { enum: [1, 'a'] },
    };
    const data = { anyOf: Object.keys(defs).map((name) => ({ $ref: `#/$defs/${name}` })) };
    const {
      User,
      One,
      File: file,
      Mixed,
    } = documentOf(group('A', [{ name: 'created', data }], defs)).components.schemas;
    assert.deepEqual([User?.type, One?.type, file?.format, Mixed?.type], ['string', 'number', 'binary', undefined]);
  });
});

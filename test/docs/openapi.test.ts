// The OpenAPI document as a function of groups: the path and the description of each operation. docs.test.ts tests the
// way from source to document over a socket. judges/ runs other tools on the document.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GroupContract, OperationContract, Schema } from '../../src/contract/contract.ts';
import type { OperationSettings } from '../../src/controller/operations.ts';
import { createDocument, type DocumentedGroup } from '../../src/docs/openapi.ts';
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

describe('an operation stands under', () => {
  const rows: Record<string, [rows: readonly Row[], places: readonly string[]]> = {
    'the method of the verb table': [
      ['index', 'created', 'red', 'patch', 'deleted', 'options'].map((name) => ({ name })),
      ['get index', 'post created', 'put red', 'patch patch', 'delete deleted', 'options options'].map((words) => {
        const [verb, name] = words.split(' ');
        return `${verb} /api/order order_${name}`;
      }),
    ],
    'its name: GET when it takes nothing, POST when it does, PUT for updated': [
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
    'the bare group: GET and HEAD each for itself': [
      [{ name: 'GET' }, { name: 'HEAD' }],
      ['get /api/order order_GET', 'head /api/order order_HEAD'],
    ],
    'one path where the names in it differ': [
      [{ name: 'GET {id}' }, { name: 'DELETE {order}' }],
      ['get /api/order/{id} order_GET_by_id', 'delete /api/order/{id} order_DELETE_by_order'],
    ],
    'an id of its own where two would be the same': [
      [{ name: 'GET a.b' }, { name: 'GET a_b' }],
      ['get /api/order/a.b order_GET_a_b', 'get /api/order/a_b order_GET_a_b_2'],
    ],
    'nothing when it is hidden': [
      [{ name: 'index', settings: { hidden: true } }, { name: 'created' }],
      ['post /api/order order_created'],
    ],
  };
  for (const [name, [given, places]] of Object.entries(rows)) {
    test(name, () => assert.deepEqual(placesOf(group('Order', given)), places));
  }
  test('its group, as clients write it, in the order of the alphabet', () => {
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

describe('of its request it says', () => {
  const named = (operation: Operation) =>
    operation.parameters?.map(({ name, in: at, required }) => `${at} ${name}${required ? '!' : ''}`);
  test('the data of a GET and the query of its params as parameters, each once', () => {
    const query = { type: 'object', properties: { sort: { type: 'string' }, dryRun: { type: 'boolean' } } };
    assert.deepEqual(named(only({ name: 'index', data: ITEM, query })), ['query page!', 'query sort', 'query dryRun']);
    assert.equal(only({ name: 'index', data: ITEM }).requestBody, undefined);
  });
  test('the data of a POST as its body, needed when a field of it is', () => {
    const { requestBody } = only({ name: 'created', data: ITEM });
    assert.deepEqual([requestBody?.required, Object.keys(requestBody?.content ?? {})], [true, ['application/json']]);
    assert.equal(only({ name: 'created', data: { type: 'object', properties: {} } }).requestBody?.required, false);
  });
  test('a body of any kind where the data is not checked, none where there is no parameter', () => {
    assert.deepEqual(only({ name: 'created', uncheckedReason: 'it has no annotation' }).requestBody?.content, {
      'application/json': { schema: {} },
    });
    assert.equal(only({ name: 'created', takes: 0 }).requestBody, undefined);
    assert.equal(only({ name: 'PUT x' }).requestBody, undefined);
  });
  test('the types of the path, under the name that is shown', () => {
    const path = { type: 'object', properties: { order: { type: 'integer' } } };
    const { paths } = documentOf(group('Order', [{ name: 'GET {id}' }, { name: 'DELETE {order}', path }]));
    const parameters = paths['/api/order/{id}']?.delete?.parameters;
    assert.deepEqual(parameters, [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }]);
  });
  test('a form where there is a file in it, bytes where it is one', () => {
    const file = { type: 'string', contentMediaType: 'application/octet-stream' };
    const typesOf = (data: Schema, settings: OperationSettings = {}) =>
      Object.keys(only({ name: 'created', data, settings }).requestBody?.content ?? {});
    assert.deepEqual(typesOf({ type: 'object', properties: { pages: { type: 'array', items: file } } }), [
      'multipart/form-data',
    ]);
    assert.deepEqual(typesOf(file), ['application/octet-stream']);
    assert.deepEqual(typesOf(file, { accepts: ['image/*'] }), ['image/*']);
    assert.deepEqual(Object.keys(only({ name: 'created', settings: { body: 'stream' } }).requestBody?.content ?? {}), [
      'application/octet-stream',
    ]);
  });
  test('a query that is no plain object as one parameter', () => {
    assert.deepEqual(named(only({ name: 'index', data: { anyOf: [ITEM, { type: 'null' }] } })), ['query query']);
  });
});

describe('of its answers it says', () => {
  const statuses = (operation: Operation) => Object.keys(operation.responses).join(' ');
  test('each status, the kinds of body, and that all else is an error', () => {
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
  test('422 where it is checked, 401 and 403 where a credential is asked for', () => {
    assert.equal(statuses(only({ name: 'index' })), '200 default');
    assert.equal(statuses(only({ name: 'index', data: ITEM })), '200 422 default');
    const application = only({ name: 'index', settings: { access: 'application' } });
    assert.deepEqual([statuses(application), application.security], ['200 401 default', [{ application: [] }]]);
    const scope = only({ name: 'index', settings: { access: { scope: 'orders:write' } } });
    assert.deepEqual([statuses(scope), scope.security], ['200 401 403 default', [{ application: ['orders:write'] }]]);
    assert.equal(statuses(only({ name: 'index', settings: { status: 202 } })), '202 default');
  });
  test('its summary, a description and that it is deprecated; what `static operations` says wins', () => {
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
  test('are one where they mean the same', () => {
    const defs = { User: { type: 'object' } };
    assert.deepEqual(schemasOf(group('A', [index], defs), group('B', [index], defs)), ['User', 'Error', 'FieldError']);
  });
  test('keep apart where they do not, and so do those that refer to them', () => {
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
  test('never take the place of the document’s own', () => {
    const defs = { Error: { type: 'object' }, User: { items: { $ref: '#/$defs/Error' } } };
    assert.deepEqual(schemasOf(group('A', [index], defs)), ['a.Error', 'a.User', 'Error', 'FieldError']);
  });
  test('are those that a visible operation leads to, and a hidden one changes the name of none', () => {
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
  test('say what the tools of others ask for: the type of constants, the format of a file', () => {
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

// Annotations that a library infers from a schema (`z.infer<typeof NewUser>`), over a real socket. The schema is the
// check. A type that the schema does not decide as a whole is refused.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { type Service, startService } from '../support/service.ts';

/** A library by the name of zod, whose schemas are made of one function. */
const LIBRARY = `
  export const make = (check: (value: any) => unknown, vendor = 'zod', field = 'name') => ({
    '~standard': {
      version: 1 as const, vendor,
      validate: (value: unknown) => {
        const made = check(value);
        return made === undefined ? { issues: [{ message: 'does not fit', path: [field] }] } : { value: made };
      },
    },
  });
  /** The name has a letter, and the output has it in capitals. */
  export const named = make((v) => (v?.name ? { name: String(v.name).toUpperCase() } : undefined));`;

const Z = "import type { z } from 'zod';\n";
const PARAMS = "import type { ControllerParams } from 'gatefold';\n";

const CONTROLLERS = {
  'lib.ts': LIBRARY,
  'schemas.ts': `${Z}import { make, named } from './lib.ts';
    export const NewUser = named;
    export type NewUser = z.infer<typeof NewUser>;
    export const nested = { user: named };
    export const Page = make((v) => (/^\\d+$/.test(v?.page) ? { page: Number(v.page) } : undefined), 'zod', 'page');
    export type PageOf = z.output<typeof Page>;
    export const Slow = make(async (v) => v, 'zod');
    Slow['~standard'].validate = async (v: any) => (v?.name === 'slow' ? { value: v } : { issues: [{ message: 'no' }] }) as any;
    export const Id = make((v) => (v?.id === '7' ? { id: 7 } : undefined), 'zod', 'id');`,
  'only-types.ts': `${Z}import { make } from './lib.ts';
    const local = make((v) => (v?.name === 'only' ? v : undefined));
    export { local as Renamed };
    export type Only = z.infer<typeof local>;`,
  'built.js': `const validate = (value) =>
      value?.name ? { value: { name: value.name.toUpperCase() } } : { issues: [{ message: 'no', path: ['name'] }] };
    export const named = { '~standard': { version: 1, vendor: 'zod', validate } };`,
  'built.d.ts': `${Z}export declare const named: { name: string };\nexport type Built = z.infer<typeof named>;`,
  'barrel.ts': "export { NewUser as Person } from './schemas.ts';\nexport * as all from './schemas.ts';",
  'UserController.ts': `${Z}${PARAMS}
    import { NewUser, type PageOf, Id, Page, nested, Slow } from './schemas.ts';
    import { Person } from './barrel.ts';
    import * as schemas from './schemas.ts';
    import type { Only } from './only-types.ts';
    import type { Built } from './built.js';
    import { make } from './lib.ts';
    export const Own = make((v) => (v?.name === 'own' ? v : undefined));
    export class Model { static '~standard' = Own['~standard']; }
    type Alias = z.infer<typeof Own>;
    type Again = Alias;
    class Crud<T> { red(data: T) { return { data }; } }
    export default class UserController extends Crud<z.infer<typeof schemas.NewUser>> {
      created(user: NewUser) { return { user }; }
      index(query: PageOf) { return { query }; }
      own(data: Alias) { return { data }; }
      again(data: Again) { return { data }; }
      model(data: z.infer<typeof Model>) { return { data }; }
      built(data: Built) { return { data }; }
      only(data: Only) { return { data }; }
      person(data: z.infer<typeof Person>) { return { data }; }
      star(data: z.infer<typeof schemas.NewUser>) { return { data }; }
      deep(data: z.infer<typeof nested.user>) { return { data }; }
      slow(data: z.infer<typeof Slow>) { return { data }; }
      maybe(data?: z.infer<typeof NewUser>) { return { data: data ?? 'none' }; }
      paged(data: unknown, params: ControllerParams<{ query: z.infer<typeof Page> }>) { return { data, query: params.query }; }
      both(data: z.infer<typeof NewUser>, params: ControllerParams<{ query: PageOf }>) { return { data, query: params.query }; }
      patch(user: NewUser) { return { user }; }
    }`,
  'RouteController.ts': `${Z}${PARAMS}import { Id } from './schemas.ts';
    export default class RouteController {
      'GET {id}'(_: unknown, params: ControllerParams<{ path: z.infer<typeof Id> }>) { return { path: params.path }; }
    }`,
};

test('a file of schemas runs once, also when it is imported for types and for values', async (t) => {
  const count = Symbol.for('gatefold-test-schemas');
  const runs = globalThis as unknown as Record<symbol, number>;
  t.after(() => void delete runs[count]);
  const once = await startService({
    controllers: {
      'lib.ts': LIBRARY,
      't.ts': `${Z}import { named } from './lib.ts';\n(globalThis as any)[Symbol.for('gatefold-test-schemas')] = 1 + ((globalThis as any)[Symbol.for('gatefold-test-schemas')] ?? 0);\nexport const T = named;\nexport type Only = z.infer<typeof T>;`,
      'AController.ts':
        "import type { Only } from './t.ts';\nexport default class AController { created(data: Only) { return data; } }",
      'BController.ts':
        "import { T, type Only } from './t.ts';\nexport default class BController { created(data: Only) { return { data, T: typeof T }; } }",
    },
  });
  t.after(() => once.close());
  for (const name of ['a', 'b']) assert.equal((await fetch(`${once.url}/api/${name}`, { method: 'POST' })).status, 422);
  assert.equal(runs[count], 1);
});

let service: Service;
before(async () => {
  service = await startService({ controllers: CONTROLLERS });
});
after(() => service.close());

type Answer = { errors?: { in: string; pointer: string }[] };

async function send(method: string, path: string, body?: unknown): Promise<[status: number, body: Answer]> {
  const init =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`${service.url}/api/${path}`, { method, ...init });
  return [response.status, (await response.json()) as Answer];
}

describe('the schema checks and converts the data of', () => {
  const rows: [operation: string, method: string, path: string, body: unknown, expected: unknown][] = [
    ['a type with the name of its schema', 'POST', 'user', { name: 'a', more: 1 }, { user: { name: 'A' } }],
    ['another verb', 'PATCH', 'user', { name: 'a' }, { user: { name: 'A' } }],
    ['a query', 'GET', 'user?page=7', undefined, { query: { page: 7 } }],
    ['a schema of the controller', 'POST', 'user/own', { name: 'own' }, { data: { name: 'own' } }],
    ['an alias of an alias', 'POST', 'user/again', { name: 'own' }, { data: { name: 'own' } }],
    ['a class that is a schema', 'POST', 'user/model', { name: 'own' }, { data: { name: 'own' } }],
    ['declarations beside their JavaScript', 'POST', 'user/built', { name: 'b' }, { data: { name: 'B' } }],
    ['a file that is imported for its types', 'POST', 'user/only', { name: 'only' }, { data: { name: 'only' } }],
    ['a schema that is exported again by another name', 'POST', 'user/person', { name: 'b' }, { data: { name: 'B' } }],
    ['a schema of a namespace import', 'POST', 'user/star', { name: 'b' }, { data: { name: 'B' } }],
    ['a field of a constant', 'POST', 'user/deep', { name: 'b' }, { data: { name: 'B' } }],
    ['a type argument of a base class', 'PUT', 'user', { name: 'b' }, { data: { name: 'B' } }],
    ['an asynchronous schema', 'POST', 'user/slow', { name: 'slow' }, { data: { name: 'slow' } }],
    ['optional data', 'POST', 'user/maybe', { name: 'b' }, { data: { name: 'B' } }],
    ['params.query', 'GET', 'user/paged?page=7', undefined, { data: { page: '7' }, query: { page: 7 } }],
    ['data and query', 'POST', 'user/both?page=2', { name: 'b' }, { data: { name: 'B' }, query: { page: 2 } }],
    ['params.path', 'GET', 'route/7', undefined, { path: { id: 7 } }],
  ];
  for (const [name, method, path, body, expected] of rows)
    test(name, async () => {
      assert.deepEqual(await send(method, path, body), [200, expected]);
    });

  test('optional data that is left out, without a call of the schema', async () => {
    assert.deepEqual(await send('POST', 'user/maybe'), [200, { data: 'none' }]);
    assert.deepEqual(await send('GET', 'user/maybe'), [200, { data: 'none' }]);
  });
});

describe('a request that does not fit the schema gets 422 for', () => {
  const rows: [method: string, path: string, body: unknown, part: string, pointer: string][] = [
    ['POST', 'user', { name: '' }, 'body', '/name'],
    ['POST', 'user', {}, 'body', '/name'],
    ['POST', 'user', undefined, 'body', '/name'],
    ['GET', 'user?page=x', undefined, 'query', '/page'],
    ['POST', 'user/own', { name: 'other' }, 'body', '/name'],
    ['POST', 'user/again', { name: 'other' }, 'body', '/name'],
    ['POST', 'user/built', {}, 'body', '/name'],
    ['POST', 'user/only', { name: 'other' }, 'body', '/name'],
    ['POST', 'user/person', { name: '' }, 'body', '/name'],
    ['POST', 'user/star', {}, 'body', '/name'],
    ['POST', 'user/deep', {}, 'body', '/name'],
    ['PUT', 'user', {}, 'body', '/name'],
    ['POST', 'user/slow', { name: 'fast' }, 'body', ''],
    ['POST', 'user/maybe', { name: '' }, 'body', '/name'],
    ['GET', 'user/own?name=other', undefined, 'query', '/name'],
    ['GET', 'user/paged', undefined, 'query', '/page'],
    ['DELETE', 'user/own', { name: 'other' }, 'body', '/name'],
    ['GET', 'route/8', undefined, 'path', '/id'],
  ];
  for (const [method, path, body, part, pointer] of rows)
    test(`${method} ${path} ${JSON.stringify(body)}`, async () => {
      const [status, answer] = await send(method, path, body);
      assert.equal(status, 422, JSON.stringify(answer));
      assert.deepEqual([answer.errors?.[0]?.in, answer.errors?.[0]?.pointer], [part, pointer]);
    });
});

describe('a controller is refused for', () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'gatefold-schemas-'));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  });
  after(() => rmSync(dir, { recursive: true, force: true }));
  const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });

  async function load(name: string, files: Readonly<Record<string, string>>) {
    const path = join(dir, name.replace(/\W+/g, '-'));
    for (const [file, source] of Object.entries({ 'lib.ts': LIBRARY, ...files })) {
      mkdirSync(dirname(join(path, file)), { recursive: true });
      writeFileSync(join(path, file), source);
    }
    const groups = createGroups({ dir: path, log: silent });
    const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
    return load?.error ?? 'it loaded';
  }

  const HEAD = `${Z}${PARAMS}import { make, named } from './lib.ts';\nexport const S = named;\n`;
  const operation = (type: string, before = '') =>
    `${HEAD}${before}\nexport default class XController { created(data: ${type}) { return data; } }`;
  const WHOLE = /inferred from the schema S is the whole data, query, path or result; write a schema for this type/;
  const rows: [name: string, source: string, expected: RegExp, more?: Record<string, string>][] = [
    ['a list of it', operation('z.infer<typeof S>[]'), WHOLE],
    ['a union with it', operation("z.infer<typeof S> | 'all'"), WHOLE],
    ['a union with null', operation('z.infer<typeof S> | null'), WHOLE],
    ['a field of it', operation('{ user: z.infer<typeof S> }'), WHOLE],
    ['Partial of it', operation('Partial<z.infer<typeof S>>'), WHOLE],
    ['Omit of it', operation("Omit<z.infer<typeof S>, 'name'>"), WHOLE],
    ['an intersection with it', operation('z.infer<typeof S> & { id: string }'), WHOLE],
    ['a key of it', operation("z.infer<typeof S>['name']"), WHOLE],
    ['an interface that extends it', operation('X', 'interface X extends z.infer<typeof S> { id: string }'), WHOLE],
    ['a generic of its own', operation('Box<z.infer<typeof S>>', 'interface Box<T> { value: T }'), WHOLE],
    [
      'a type parameter of a schema',
      operation('Out<typeof S>', 'type Out<T> = z.infer<T>;'),
      /is not a constant|needs the name of a schema/,
    ],
    ['a constraint on its alias', operation('A', '/** @minLength 3 */\ntype A = z.infer<typeof S>;'), WHOLE],
    ['z.input', operation('z.input<typeof S>'), /z\.input is what a client sends; the operation gets the output/],
    ['typeof S.inferIn', operation('typeof S.inferIn'), /typeof S\.inferIn is what a client sends/],
    [
      'a schema that is not exported',
      `${HEAD}const T = named;\nexport default class XController { created(data: z.infer<typeof T>) { return data; } }`,
      /the schema T is not exported, so its value cannot be read; write export const T = …/,
    ],
    [
      'a schema in let',
      operation('z.infer<typeof T>', 'export let T = named;'),
      /T may have another value than the one in the source; declare it with const T/,
    ],
    [
      'a schema from a pattern',
      operation('z.infer<typeof T>', 'export const { T } = { T: named };'),
      /T may have another value than the one in the source/,
    ],
    [
      'an imported let',
      operation('z.infer<typeof T>', "import { T } from './t.ts';"),
      /T may have another value|T may get another value/,
      { 't.ts': "import { named } from './lib.ts';\nexport let T = named;" },
    ],
    [
      'an imported let by another name',
      operation('z.infer<typeof T>', "import { B as T } from './b.ts';"),
      /T may get another value after the start/,
      {
        't.ts': "import { named } from './lib.ts';\nexport let T = named;",
        'b.ts': "export { T as B } from './t.ts';",
      },
    ],
    [
      'a schema of a file with a query',
      operation('z.infer<typeof T>', "import { named as T } from './lib.ts?again';"),
      /T is imported by a specifier with a query/,
    ],
    [
      'a name that is no schema',
      operation('z.infer<typeof T>', 'export const T = { name: String };'),
      /T is no Standard Schema; use a version of the library that has the interface of standardschema\.dev/,
    ],
    [
      'a schema that is undefined when its module has loaded',
      operation('z.infer<typeof T>', 'export const T = undefined as any;'),
      /the module of the schema T exports no T; export it as a value/,
    ],
    [
      'a schema of another library',
      operation('z.infer<typeof T>', "export const T = make((v) => v, 'valibot');"),
      /T is a schema of valibot, and the type is of zod/,
    ],
    [
      'a parameter with the name of the schema',
      `${HEAD}export default class XController { created(S: z.infer<typeof S>) { return S; } }`,
      /typeof S means the parameter S/,
    ],
    [
      'a pattern with the name of the schema',
      `${HEAD}export default class XController { created({ S }: { S: string }, params: ControllerParams<{ query: z.infer<typeof S> }>) { return [S, params]; } }`,
      /typeof S means the parameter S/,
    ],
    [
      'a constant with the name of a parameter',
      `${HEAD}const mode = 'a';\nexport default class XController { created(mode: typeof mode) { return mode; } }`,
      /typeof mode means the parameter mode/,
    ],
    ['a value that is missing', operation('z.infer<typeof T>'), /there is no value T here/],
    [
      'a schema that a package exports',
      operation('z.infer<typeof T>', "import type { T } from 'shop';"),
      /T is imported from shop, which is a package; export it from a file of your own/,
      { 'node_modules/shop/package.json': '{"exports":"./index.js"}', 'node_modules/shop/index.js': 'export {};' },
    ],
    [
      'a schema of a package that is not installed',
      operation('z.infer<typeof T>', "import type { T } from 'gone';"),
      /T is imported from gone, which is not found; export it from a file of your own/,
    ],
    [
      'a schema whose getter throws',
      operation('z.infer<typeof all.T>', "export const all = { get T(): any { throw new Error('not yet'); } };"),
      /the schema all\.T cannot be read: Error: not yet/,
    ],
    ...(
      [
        ['valibot', 'InferOutput', 'valibot'],
        ['effect', 'Schema.Schema.Type', 'effect'],
        ['yup', 'InferType', 'yup'],
        ['typebox', 'Static', 'TypeBox'],
        ['json-schema-to-ts', 'FromSchema', 'TypeBox'],
      ] as const
    ).map(([library, type, vendor]): [string, string, RegExp] => [
      `a schema of zod where the type ${type} of ${library} is`,
      operation(`${type}<typeof S>`, `import type { ${type.replace(/\..*/, '')} } from '${library}';`),
      new RegExp(`S is a schema of zod, and the type is of ${vendor}`),
    ]),
    ...(
      [
        ['valibot', 'InferInput'],
        ['effect', 'Schema.Schema.Encoded'],
        ['typebox', 'StaticEncode'],
        ['typebox', 'StaticDecode'],
      ] as const
    ).map(([library, type]): [string, string, RegExp] => [
      `the type ${type} of ${library}`,
      operation(`${type}<typeof S>`, `import type { ${type.replace(/\..*/, '')} } from '${library}';`),
      /is what a client sends/,
    ]),
    [
      'a value of Effect that is no Standard Schema',
      operation('typeof T.Type', 'export const T = { Type: String };'),
      /T is no Standard Schema; write const T = Schema\.toStandardSchemaV1/,
    ],
    [
      'a function with the name of the schema',
      operation('z.infer<typeof T>', 'export function T() {}'),
      /T may have another value than the one in the source/,
    ],
    [
      'a file of types whose import fails',
      operation('Only', "import type { Only } from './t.ts';"),
      /the module of the schema T cannot be imported: Error: no database; mend this import/,
      {
        't.ts': `${Z}export const T = 1 as any; export type Only = z.infer<typeof T>;\nthrow new Error('no database');`,
      },
    ],
    ['a type of a package that infers nothing', operation('z.ZodType<typeof S>'), /z\.ZodType comes from a package/],
    [
      'a schema of another package',
      operation('Infer<typeof S>', "import type { Infer } from 'some-schemas';"),
      /Infer comes from a package/,
    ],
    [
      'a JSON Schema where zod is named',
      operation('z.infer<typeof T>', "export const T = { type: 'string' };"),
      /T is no Standard Schema/,
    ],
    [
      'code in a schema of TypeBox',
      operation(
        'Static<typeof T>',
        "import type { Static } from '@sinclair/typebox';\nexport const T = { type: 'object', properties: { a: { type: 'string', [Symbol('TypeBox.Transform')]: {} } } };",
      ),
      /T: #\/properties\/a has code of its library, which is not run/,
    ],
    [
      'a path that the route has not',
      `${HEAD}export default class XController { 'GET {no}'(_: unknown, params: ControllerParams<{ path: Static<typeof T> }>) { return params; } }\nimport type { Static } from 'typebox';\nexport const T = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };`,
      /its route has no \{id\}/,
    ],
  ];
  for (const [name, source, expected, more = {}] of rows)
    test(name, async () => {
      assert.match(await load(name, { 'XController.ts': source, ...more }), expected);
    });

  test('nothing, when a circle of imports exports the schema', async () => {
    const source = `${Z}import { T } from './t.ts';\nexport const base = 1;\nexport default class XController { created(data: z.infer<typeof T>) { return data; } }`;
    const t =
      "import { named } from './lib.ts';\nimport * as controller from './XController.ts';\nexport const T = named;\nexport const later = () => controller.base;";
    assert.equal(await load('circle', { 'XController.ts': source, 't.ts': t }), 'it loaded');
  });

  test('nothing, when its result is inferred from a schema whose file cannot be imported', async () => {
    const t = `${Z}export const T = 1 as any; export type Only = z.infer<typeof T>;\nthrow new Error('no database');`;
    const source =
      "import type { Only } from './t.ts';\nexport default class XController { index(): Only { return 1; } }";
    assert.equal(await load('result', { 'XController.ts': source, 't.ts': t }), 'it loaded');
  });
});

test('a controller is created once, even if a schema is imported for its contract', async (t) => {
  const created = await startService({
    controllers: {
      'lib.ts': LIBRARY,
      't.ts': `${Z}import { named } from './lib.ts';\nexport const T = named;\nexport type Only = z.infer<typeof T>;`,
      'XController.ts': `import type { Only } from './t.ts';\nlet count = 0;\nexport default class XController { constructor() { count++; } index() { return { count }; } created(data: Only) { return data; } }`,
    },
  });
  t.after(() => created.close());
  const response = await fetch(`${created.url}/api/x`);
  assert.deepEqual(await response.json(), { count: 1 });
});

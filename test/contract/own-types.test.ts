// Types of a project outside of its controllers: built packages of the workspace, declarations, path aliases, global
// declarations. A type that is not read is refused with its reason.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
let root: string;
before(() => {
  root = mkdtempSync(join(tmpdir(), 'gatefold-own-types-'));
  const files = {
    'package.json': '{"type":"module","imports":{"#lib/*":{"types":"./types/*.d.ts","default":"./built/*.js"}}}',
    'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["./src/*"],"models":["./src/user.ts"]}}}',
    'src/user.ts': 'export interface User { name: string }',
    'src/nameless.ts': 'export default class { name!: string }',
    'src/named.ts': 'export default class Store { name!: string }',
    'src/globals.d.ts': 'interface ApiUser { name: string }',
    'types/row.d.ts': 'export interface Row { id: number }',
    'built/row.js': 'export {};',
    'packages/shared/package.json':
      '{"name":"@acme/shared","type":"module","exports":{".":{"types":"./types/index.d.ts","default":"./dist/index.js"},"./sub/*":{"types":"./types/*.d.ts","default":"./dist/*.js"},"./plain":"./dist/plain.js"}}',
    'packages/shared/dist/index.js': 'export {};',
    'packages/shared/dist/part.js': 'export {};',
    'packages/shared/dist/plain.js': "export const ROLES = ['admin', 'user'];",
    'packages/shared/dist/plain.d.ts':
      "export interface Plain { p: string }\nexport declare const ROLES: readonly ['admin', 'user'];",
    'packages/shared/types/index.d.ts': "export { User } from './user.js';",
    'packages/shared/types/user.d.ts': 'export interface User { name: string }',
    'packages/shared/types/part.d.ts': 'export interface Part { part: string }',
    'packages/old/package.json': '{"name":"old","type":"module","main":"index.js","types":"types.d.ts"}',
    'packages/old/index.js': 'export {};',
    'packages/old/types.d.ts': 'export interface Old { old: string }',
    'packages/only/package.json': '{"name":"only","type":"module","exports":{".":{"types":"./index.d.ts"}}}',
    'packages/only/index.d.ts': 'export interface Only { only: string }',
    'packages/text/package.json': '{"name":"text","type":"module","exports":"./index.d.ts"}',
    'packages/text/index.d.ts': 'export interface Text { text: string }',
    'packages/table/package.json':
      '{"name":"table","type":"module","exports":{"browser":"./no.d.ts","types":"./index.d.ts","default":"./index.js"}}',
    'packages/table/index.d.ts': 'export interface Table { table: string }',
    'packages/table/no.d.ts': 'export interface Table { no: string }',
    'packages/many/package.json':
      '{"name":"many","type":"module","exports":{"./*":{"types":"./types/*.d.ts"},"./deep/*":{"types":"./own/*.d.ts"},"./deep/*.js":{"types":"./js/*.d.ts"}}}',
    'packages/many/types/deep/part.d.ts': 'export interface Part { any: string }',
    'packages/many/own/part.d.ts': 'export interface Part { deep: string }',
    'packages/many/js/part.d.ts': 'export interface Part { js: string }',
    'packages/many/types/near.d.ts': 'export interface Part { near: string }',
    'packages/list/package.json':
      '{"name":"list","type":"module","exports":{".":[{"browser":"./no.d.ts"},{"node":{"types":"./index.d.ts"}}]}}',
    'packages/list/index.d.ts': 'export interface List { list: string }',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  mkdirSync(join(root, 'node_modules/@acme'), { recursive: true });
  symlinkSync(join(root, 'packages/shared'), join(root, 'node_modules/@acme/shared'));
  for (const name of ['old', 'only', 'text', 'table', 'many', 'list'])
    symlinkSync(join(root, 'packages', name), join(root, 'node_modules', name));
});
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
async function load(type: string, head: string) {
  const dir = join(root, `controllers${count++}`);
  mkdirSync(dir);
  const source = `${head}\nexport default class XController { created(data: ${type}) { return data; } }`;
  writeFileSync(join(dir, 'XController.ts'), source);
  const groups = createGroups({ dir, log: silent });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  const [group] = await groups.all();
  const { data } = group?.contract?.operations.get('created') ?? {};
  const schema = data?.$ref === undefined ? data : group?.contract?.defs[data.$ref.slice('#/$defs/'.length)];
  return {
    error: load?.error,
    names: Object.keys(schema?.properties ?? {}),
    schemaNames: Object.keys(group?.contract?.defs ?? {}),
  };
}

describe('the fields are read of a type', () => {
  const rows: [name: string, type: string, head: string, fields: string[]][] = [
    ['by the types condition of a built package', 'User', "import type { User } from '@acme/shared';", ['name']],
    ['by a pattern of its exports', 'Part', "import type { Part } from '@acme/shared/sub/part';", ['part']],
    ['beside the built file', 'Plain', "import type { Plain } from '@acme/shared/plain';", ['p']],
    [
      'of a constant whose `as const` the built file has lost',
      '{ [K in (typeof ROLES)[number]]: 1 }',
      "import { ROLES } from '@acme/shared/plain';",
      ['admin', 'user'],
    ],
    ['by the field types', 'Old', "import type { Old } from 'old';", ['old']],
    ['of a package that has only types', 'Only', "import type { Only } from 'only';", ['only']],
    ['by the imports of package.json', 'Row', "import type { Row } from '#lib/row';", ['id']],
    ['of a package whose exports are one file', 'Text', "import type { Text } from 'text';", ['text']],
    ['of a package whose exports are conditions', 'Table', "import type { Table } from 'table';", ['table']],
    ['by the only pattern that fits', 'Part', "import type { Part } from 'many/near';", ['near']],
    ['by the pattern with the longest start', 'Part', "import type { Part } from 'many/deep/part';", ['deep']],
    ['by the longest of two patterns with one start', 'Part', "import type { Part } from 'many/deep/part.js';", ['js']],
    ['by a list of targets', 'List', "import type { List } from 'list';", ['list']],
  ];
  for (const [name, type, head, fields] of rows)
    test(name, async () => {
      const { error, names } = await load(type, head);
      assert.deepEqual({ error, names }, { error: undefined, names: fields });
    });
});

describe('the refusal has the reason for', () => {
  const rows: [name: string, type: string, head: string, expected: RegExp][] = [
    [
      'a path of tsconfig.json',
      'User',
      "import type { User } from '@/user.ts';",
      /User comes from @\/user\.ts, a path of tsconfig\.json, which Node does not follow; write a name such as #lib\/\* into the imports/,
    ],
    [
      'a whole name in the paths of tsconfig.json',
      'User',
      "import type { User } from 'models';",
      /User comes from models, a path of tsconfig\.json/,
    ],
    [
      'a name that only resembles a path of tsconfig.json',
      'User',
      "import type { User } from 'models2';",
      /User comes from a package/,
    ],
    ...['text/sub', 'table/sub'].map((name): [string, string, string, RegExp] => [
      `a part of a package that exports only its whole: ${name}`,
      'A',
      `import type { A } from '${name}';`,
      /A comes from a package/,
    ]),
    [
      'a global declaration',
      'ApiUser',
      '',
      /there is no type ApiUser here; global declarations are not read: export the type, and import it by name; or run/,
    ],
    ...['#none/user', '#lib/gone'].map((name): [string, string, string, RegExp] => [
      `a name for which package.json leads to no file: ${name}`,
      'User',
      `import type { User } from '${name}';`,
      new RegExp(`User comes from ${name}, and the imports of package\\.json lead to no such file; correct them$`),
    ]),
    [
      'a table of Drizzle',
      'typeof users.$inferInsert',
      "import type { users } from '../src/user.ts';",
      /export const NewRow = createInsertSchema\(users\), of drizzle-zod, and write z\.infer<typeof NewRow>/,
    ],
    [
      'a type of Drizzle',
      'InferInsertModel<typeof users>',
      "import type { InferInsertModel } from 'drizzle-orm';",
      /InferInsertModel comes from a package, whose types are not read; export const NewRow = createInsertSchema/,
    ],
    ['a request of express', 'Request', "import type { Request } from 'express';", /write data: T, params: Controller/],
    [
      'a builtin module',
      'URL',
      "import type { URL } from 'node:url';",
      /write the type out, or run gatefold contracts/,
    ],
  ];
  for (const [name, type, head, expected] of rows)
    test(name, async () => {
      assert.match((await load(type, head)).error ?? 'it loaded', expected);
    });
});

test('a union leaves out parts that no request has, and a union only of those is refused', async () => {
  const { error, names } = await load('{ id: bigint | number; f?: (() => void) | string }', '');
  assert.deepEqual([error, names], [undefined, ['id', 'f']]);
  assert.match((await load('{ id: bigint | null }', '')).error ?? 'it loaded', /bigint has no JSON form/);
});

test('the schema of a default export has its own name, or the name of the import', async () => {
  const nameless = await load('{ shop: Shop }', "import type Shop from '../src/nameless.ts';");
  assert.deepEqual([nameless.error, nameless.schemaNames], [undefined, ['Shop']]);
  const named = await load('{ shop: Shop }', "import type Shop from '../src/named.ts';");
  assert.deepEqual([named.error, named.schemaNames], [undefined, ['Store']]);
});

test('a format of OpenAPI is a note, and does not replace a format that is checked', async () => {
  const head = "import type { Email } from 'gatefold';";
  const type = '{\n/** @format password */ p: string;\n/** @format int32 */ n: number;\n/** @format byte */ e: Email }';
  assert.equal((await load(type, head)).error, undefined);
});

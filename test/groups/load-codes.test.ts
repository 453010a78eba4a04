// A file that does not load has the code of its kind of mistake, beside the message.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { LoadErrorCode } from '../../src/base/load-refusal.ts';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';

const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
const dir = mkdtempSync(join(tmpdir(), 'gatefold-codes-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const inClass = (members: string) => `export default class XController { ${members} }`;
const rows: [code: LoadErrorCode, name: string, file: string, source: string][] = [
  ['SYNTAX_ERROR', 'a missing brace', 'XController.mjs', 'export default class {'],
  ['SYNTAX_ERROR', 'a missing export', 'XController.mjs', "import { none } from 'node:fs';\nexport default none;"],
  ['IMPORT_FAILED', 'an error of the code', 'XController.mjs', "throw new Error('no database');"],
  ['IMPORT_FAILED', 'a missing file', 'XController.mjs', "import './none.mjs';"],
  [
    'LOAD_TIMEOUT',
    'an await that never ends',
    'XController.mjs',
    'await new Promise(() => setTimeout(() => {}, 1e6).unref());',
  ],
  ['INVALID_EXPORT', 'no group', 'XController.mjs', 'export const a = 1;'],
  ['INVALID_EXPORT', 'a proxy', 'XController.mjs', 'export default new Proxy({}, {});'],
  ['INVALID_ROUTE', 'a bad pattern', 'XController.mjs', inClass("'GET {'() {}")],
  ['INVALID_ROUTE', 'a field', 'XController.mjs', inClass("'POST' = (data) => data;")],
  [
    'INVALID_ROUTE',
    'a field with a schema',
    'XController.mjs',
    inClass("static operations = { 'GET {id}': { status: 201 } }; 'GET {id}' = () => 1;"),
  ],
  ['INVALID_ROUTE', 'a field that is an object', 'XController.mjs', inClass("'POST' = { run() {} };")],
  ['INVALID_ROUTE', 'a static field', 'XController.mjs', inClass("static 'POST' = (data) => data;")],
  [
    'INVALID_ROUTE',
    'a field of a base class',
    'XController.mjs',
    'class Base { PUT = () => 1; }\nexport default class extends Base { index() {} }',
  ],
  [
    'INVALID_ROUTE',
    'a name that the route lacks',
    'XController.ts',
    `import type { ControllerParams } from 'gatefold';\n${inClass("'GET {id}'(_: unknown, params: ControllerParams<{ path: { no: string } }>) { return params; }")}`,
  ],
  [
    'INVALID_SETTING',
    'an unknown property',
    'XController.mjs',
    inClass('static operations = { index: { acess: 1 } }; index() {}'),
  ],
  [
    'INVALID_SETTING',
    'a user without authenticate',
    'XController.mjs',
    inClass("static operations = { index: { access: 'user' } }; index() {}"),
  ],
  ['INVALID_GUARD', 'a static guard', 'XController.mjs', inClass('static _before() {}')],
  ['INVALID_SERVICE_FILE', 'an unknown property', 'service.mjs', 'export default { acess: 1 };'],
  [
    'UNREAD_OPERATION',
    'an instance',
    'XController.ts',
    'class X { created(data: { a: string }) { return data; } }\nexport default new X();',
  ],
  [
    'UNREAD_TYPE',
    'a conditional type',
    'XController.ts',
    inClass('created(data: string extends number ? 1 : 2) { return data; }'),
  ],
  [
    'TAG_WITHOUT_EFFECT',
    'a tag on a method',
    'XController.ts',
    inClass('/** @minLength 3 */ created(data: string) { return data; }'),
  ],
  [
    'TAG_WITHOUT_EFFECT',
    'a value that is no number',
    'XController.ts',
    inClass('created(data: { /** @minLength x */ a: string }) { return data; }'),
  ],
];

for (const [i, [code, name, file, source]] of rows.entries()) {
  test(`${code}: ${name}`, async () => {
    const folder = join(dir, String(i));
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, file), source);
    const groups = createGroups({ dir: folder, log, loadTimeout: code === 'LOAD_TIMEOUT' ? 50 : 10_000 });
    const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
    assert.equal(load?.code ?? 'it loaded', code, load?.error ?? 'no error');
  });
}

test('the refusal of a field that is a route says what to write', async () => {
  const folder = join(dir, 'field');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'XController.mjs'), inClass("'GET {id}' = () => 1;"));
  const members = "'POST'() {} private 'GET {id}' = () => 1; 'PUT'() {}";
  const base = `class Base { ${members} DELETE() {} }`;
  const source = `${base}\nexport default class extends Base { static operations = { PUT: { unchecked: true } }; PUT = () => 2; DELETE = undefined }`;
  writeFileSync(join(folder, 'YController.ts'), source);
  const loads = await createGroups({ dir: folder, log }).loadAll({ skip: new Map(), onLoading: () => {} });
  const method = "write a method, 'GET {id}'(data, params) { … }, with _around for what surrounds it";
  assert.deepEqual(
    loads.map(({ error }) => error),
    [
      `Error: GET {id} is a field, which answers no request: ${method}; or export an object with this property`,
      undefined,
    ],
  );
});

test('LOAD_CRASHED: a file that an earlier worker could not import', async () => {
  const folder = join(dir, 'crashed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'XController.mjs'), 'export default {}');
  const skip = new Map([['XController.mjs', 'it ended the worker']]);
  const [load] = await createGroups({ dir: folder, log }).loadAll({ skip, onLoading: () => {} });
  assert.equal(load?.code, 'LOAD_CRASHED');
});

test('INVALID_SERVICE_FILE: a service that has lost its file', async () => {
  const folder = join(dir, 'lost');
  mkdirSync(folder);
  const groups = createGroups({ dir: folder, log });
  const [load] = await groups.loadAll({ skip: new Map(), needsService: true, onLoading: () => {} });
  assert.equal(load?.code, 'INVALID_SERVICE_FILE');
});

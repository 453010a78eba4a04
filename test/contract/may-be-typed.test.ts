// An operation with types is checked or its file is refused, however it is written; one without is not, and the parser stays
// unloaded for a controller that has none.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { mayBeTyped } from '../../src/contract/may-be-typed.ts';
import { sourceText } from '../../src/contract/source-text.ts';
import { createGroups } from '../../src/groups/registry.ts';

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
const USER = 'interface User { name: string }\n';
const PARAMS = "import type { ControllerParams } from 'gatefold';\n";
const REFUSED = /created is an operation whose types cannot be read/;
/** A library that has typed operations, and a controller that is nothing but its name. */
const ELSEWHERE = {
  'impl.ts': `${USER}export default class XController { created(data: User) { return data; } }`,
  'object.ts': `${USER}export const impl = { created(data: User) { return data; } };`,
  'stars.ts': "export * from './object.ts';\nexport * from 'shop';\nexport * from './two.ts';",
  'two.ts': 'export interface Two { name: string }',
  'mine.ts': "import type { ControllerParams as Of } from 'gatefold';\nexport type ControllerParams = Of<{ query: { a: number } }>;",
};

let dir: string;
let count = 0;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-may-be-typed-'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
});
after(() => rmSync(dir, { recursive: true, force: true }));

async function outcomeOf(file: string, source: string): Promise<string> {
  const folder = join(dir, String(count++));
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ ...ELSEWHERE, [file]: source })) writeFileSync(join(folder, name), text);
  const groups = createGroups({ dir: folder, log: silent });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  if (load?.ok !== true) return load?.error ?? 'not loaded';
  return (await groups.find('x'))?.operations.get('created')?.check === undefined ? 'unchecked' : 'checked';
}

const inClass = (method: string): string => `export default class XController { ${method} }`;

describe('an operation with types is checked', () => {
  const rows: [name: string, file: string, source: string][] = [
    ['plain', 'XController.ts', USER + inClass('created(data: User) { return data; }')],
    [
      'a type of one’s own called Params',
      'XController.ts',
      `${PARAMS}interface Params { name: string }\n${inClass('created(data: Params) { return data; }')}`,
    ],
    [
      'params under a name of one’s own',
      'XController.ts',
      `${PARAMS}type Params = ControllerParams<{ query: { a: number } }>;\n${inClass('created(_: unknown, params: Params) { return params; }')}`,
    ],
    [
      'ControllerParams of another file, without semicolons',
      'XController.ts',
      `import type { ControllerParams } from './mine.ts'\nimport type { Int } from 'gatefold'\nconst one: Int = 1\n${inClass('created(_: unknown, params: ControllerParams) { return [params, one]; }')}`,
    ],
    [
      'ControllerParams as a name for another type',
      'XController.ts',
      `import type { ControllerParams as Of } from 'gatefold';\ntype ControllerParams = Of<{ query: { a: number } }>;\n${inClass('created(_: unknown, params: ControllerParams) { return params; }')}`,
    ],
    ['a parenthesis in a comment', 'XController.ts', USER + inClass('created( // 1) what to make\n data: User) { return data; }')],
    ['a parenthesis in a string', 'XController.ts', inClass("created({ name = ')' }: { name?: string }) { return name; }")],
    [
      'a comment before its parenthesis',
      'XController.ts',
      `${USER}// created() makes one\n${inClass('created /* one */ (data: User) { return data; }')}`,
    ],
    [
      'another function of its name',
      'XController.ts',
      `${USER}function created(data: unknown) { return data; }\n${inClass('index() { return created(1); } created(data: User) { return data; }')}`,
    ],
    ['a name with an escape', 'XController.ts', `${USER}// created(data)\n${inClass('cre\\u0061ted(data: User) { return data; }')}`],
    [
      'a class of another file, told of in a comment',
      'XController.ts',
      "// created(data) is in ./impl.ts\nexport { default } from './impl.ts';",
    ],
    [
      'an object of another file',
      'XController.ts',
      "import { impl } from './object.ts';\nfunction created(data: unknown) { return data; }\ncreated(1);\nexport default impl;",
    ],
    [
      'type parameters',
      'XController.ts',
      `${USER}${inClass('created<T extends string>(data: User, _?: T) { return data; }').replace('_?: T', '_?: unknown')}`,
    ],
    ['a default', 'XController.ts', inClass("created(data: { a: string } = { a: 'x' }) { return data; }")],
    ['generators and async', 'XController.ts', USER + inClass('async created(data: User) { return data; }')],
    [
      'a type behind several export *',
      'XController.ts',
      `import type { Two } from './stars.ts';\n${inClass('created(data: Two) { return data; }')}`,
    ],
    ['a parameter called this', 'XController.ts', USER + inClass('created(this: unknown, data: User) { return data; }')],
    ['JSDoc', 'XController.mjs', inClass('/** @param {{ name: string }} data */\ncreated(data) { return data; }')],
    [
      'JSDoc and a comment behind it',
      'XController.mjs',
      inClass('/** @param {{ name: string }} data */\n// as it is\ncreated(data) { return data; }'),
    ],
    [
      'JSDoc of a constant',
      'XController.mjs',
      '/** @param {{ name: string }} data */\nconst create = (data) => data;\nexport default { created: create };',
    ],
  ];
  for (const [name, file, source] of rows) test(name, async () => assert.equal(await outcomeOf(file, source), 'checked'));
});

describe('or its file is refused', () => {
  const rows: [name: string, file: string, source: string, expected?: RegExp][] = [
    [
      'a bound function',
      'XController.ts',
      `${USER}function create(data: User) { return data; }\nexport default { created: create.bind(null) };`,
    ],
    [
      'a wrapped function',
      'XController.ts',
      `${USER}const create = (data: User) => data;\nconst wrap = (f: Function) => (...all: unknown[]) => f(...all);\nexport default { created: wrap(create) };`,
    ],
    [
      'one that takes its arguments without naming them',
      'XController.ts',
      `${USER}const wrap = (f: Function) => function (this: unknown) { return f.apply(this, arguments); };\nexport default { created: wrap((data: User) => data) };`,
    ],
    [
      'one object of two',
      'XController.ts',
      `${USER}const a = { created(data: unknown) { return data; } };\nconst b = { created(data: User) { return data; } };\nexport default a && b;`,
    ],
    [
      'one object of two, on a line of its own',
      'XController.ts',
      `${USER}const a = { created(data: unknown) { return data; } };\nconst b = { created(data: User) { return data; } };\nexport default a\n  && b;`,
    ],
    [
      'a method that is replaced',
      'XController.ts',
      `${USER}const a: Record<string, unknown> = { created(data: unknown) { return data; } };\na.created = (data: User) => data;\nexport default a;`,
    ],
    [
      'a method that is replaced, of what is exported by a list',
      'XController.ts',
      `${USER}const a: Record<string, unknown> = { created(data: unknown) { return data; } };\na.created = (data: User) => data;\nexport { a as default };`,
    ],
    [
      'a script’s method that is put there',
      'XController.mjs',
      'class X { index() {} }\n/** @param {{ name: string }} data */\nX.prototype.created = function (data) { return data; };\nexport default X;',
    ],
    [
      '@type of a function',
      'XController.mjs',
      'export default {\n/** @type {(data: { name: string }) => unknown} */\ncreated: (data) => data };',
      /created: @type of an operation is not read/,
    ],
    [
      'a constraint before a method',
      'XController.ts',
      inClass('/** @minLength 1 */\ncreated(data: string) { return data; }'),
      /created: @minLength can have no effect here/,
    ],
    [
      'a constraint before a parameter',
      'XController.ts',
      inClass('created(/** @minLength 1 */ data: string) { return data; }'),
      /created: @minLength can have no effect here/,
    ],
    [
      'a constraint behind a @param',
      'XController.mjs',
      inClass('/** @param {string} data\n * @minLength 1 */\ncreated(data) { return data; }'),
      /created: @minLength can have no effect here/,
    ],
  ];
  for (const [name, file, source, expected = REFUSED] of rows) {
    test(name, async () => assert.match(await outcomeOf(file, source), expected));
  }
});

describe('one without types is not', () => {
  const rows: [name: string, file: string, source: string][] = [
    ['no annotation', 'XController.ts', inClass('created(data) { return data; }')],
    [
      'unknown, and the params',
      'XController.ts',
      `${PARAMS}${inClass('async created(data: unknown, params: ControllerParams,): Promise<User> { return [data, params] as never; }')}\ninterface User { a: 1 }`,
    ],
    ['any', 'XController.ts', inClass('created(data: any) { return data; }')],
    [
      'a pattern',
      'XController.ts',
      `${PARAMS}${inClass('created(_: unknown, { path: { id }, query }: ControllerParams) { return [id, query]; }')}`,
    ],
    ['nothing that it takes', 'XController.ts', inClass('created() { return 1; }')],
    ['a script', 'XController.mjs', inClass('async created(data, { path: { id } = {} }) { return [data, id]; }')],
    ['a script with comments', 'XController.mjs', inClass('/** Makes one. @returns {number} */\ncreated(data) { return data; }')],
    [
      'functions within',
      'XController.ts',
      inClass('created(data: unknown) { function one() { return 1; } const two = (a: number) => a; return [data, one(), two(2)]; }'),
    ],
    [
      'a helper with types',
      'XController.ts',
      `function find(id: string) { return id; }\n${inClass("created(data: unknown) { return [data, find('a')]; }")}`,
    ],
  ];
  for (const [name, file, source] of rows) {
    test(name, async () => {
      assert.equal(await outcomeOf(file, source), 'unchecked');
      // What decides it is the text alone: the parser is not loaded.
      const { default: loaded } = (await import(join(dir, String(count - 1), file))) as { default: { prototype: Record<string, never> } };
      assert.equal(
        mayBeTyped(sourceText(file, source), 'created', loaded.prototype.created as never, () => []),
        false,
      );
    });
  }
});

// The filesystem convention: names, files, operations, marks, and what happens to a file that does not load.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { groupNameOf } from '../../src/base/group-name.ts';
import { createLog } from '../../src/base/log.ts';
import { createGroup, instantiate } from '../../src/groups/operations.ts';
import type { GroupLoad } from '../../src/live/load/group-load.ts';
import { listControllers } from '../../src/live/load/naming.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { startService } from '../support/service.ts';

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });

let dir: string;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-groups-'));
});
after(() => rmSync(dir, { recursive: true, force: true }));

const folder = (files: Record<string, string>): string => {
  const path = mkdtempSync(join(dir, 'f-'));
  for (const [name, source] of Object.entries(files)) writeFileSync(join(path, name), source);
  return path;
};

const operations = async (path: string, page: string): Promise<string[]> => {
  const group = await createGroups({ dir: path, log: silent }).find(page);
  return [...(group?.operations.keys() ?? ['(no group)'])].sort();
};

describe('groupNameOf', () => {
  const rows: [page: string, name: string | undefined][] = [
    ['test', 'Test'],
    ['Test', 'Test'],
    ['userProfile', 'UserProfile'],
    ['a-b_c1', 'A-b_c1'],
    ['', undefined],
    ['1a', undefined],
    ['_a', undefined],
    ['a.b', undefined],
    ['..', undefined],
    ['a b', undefined],
    ['é', undefined],
    ['a\n', undefined],
  ];
  for (const [page, name] of rows)
    test(`${JSON.stringify(page)} → ${name}`, () => assert.equal(groupNameOf(page), name));
});

test('a method whose name is a keyword of JavaScript is an operation', async () => {
  const methods = ['class', 'classOf', 'delete', 'function', 'new'];
  const body = methods.map((name) => `${name}() { return {}; }`);
  const dir = folder({
    'AController.mjs': `export default class AController { ${body.join(' ')} }`,
    'BController.mjs': `export default { ${body.join(', ')} };`,
  });
  for (const page of ['a', 'b']) assert.deepEqual(await operations(dir, page), methods);
});

test('listControllers takes files by their exact name, .ts before .mjs before .js, and nothing else', () => {
  const names = [
    'AController.ts',
    'AController.js',
    'BController.mjs',
    'BController.js',
    'cController.ts',
    'Controller.ts',
    'DController.d.ts',
  ];
  const others = [
    'DController.test.ts',
    'EController.ts~',
    '.FController.ts',
    '.FController.ts.swp',
    'GController.ts.bak',
    '#HController.ts#',
    'IController.json',
  ];
  const path = folder(Object.fromEntries([...names, ...others].map((name) => [name, ''])));
  mkdirSync(join(path, 'JController.ts'));
  symlinkSync(join(path, 'absent'), join(path, 'KController.ts'));
  symlinkSync(join(path, 'AController.js'), join(path, 'LController.js'));
  assert.deepEqual([...listControllers(path)].sort(), [
    ['/', 'Controller.ts'],
    ['A', 'AController.ts'],
    ['B', 'BController.mjs'],
    ['L', 'LController.js'],
  ]);
});

describe('the operations of a controller file', () => {
  const rows: [name: string, source: string, expected: string[]][] = [
    ['a class as default', 'export default class { index() {} hello() {} }', ['hello', 'index']],
    ['a class under its name', 'export class XController { index() {} }', ['index']],
    [
      'an object',
      'export default { index() {}, arrow: () => 1, field: 1, Upper() {}, _hidden() {}, helper: class {} }',
      ['arrow', 'index'],
    ],
    ['an object under its name', 'export const XController = { index() {} }', ['index']],
    ['an object without prototype', 'export default Object.assign(Object.create(null), { index() {} })', ['index']],
    ['an instance', 'class A { index() {} field = () => 1 } export default new A()', ['index']],
    [
      'a class with statics, accessors, fields and other names',
      `export default class {
        static stat() {} get getter() { return () => 1 } set setter(x) {} #secret() {} [Symbol.iterator]() {} _under() {}
        constructor() { this.own = () => 1 } field = () => 1; Upper() {} with$() {} 'with-dash'() {} index() { this.#secret() }
      }`,
      ['index'],
    ],
    [
      'a class with methods that every object has',
      'export default class { index() {} toString() {} valueOf() {} hasOwnProperty() {} toLocaleString() {} }',
      ['index'],
    ],
    ['an object with a method that every object has', 'export default { index() {}, toString() {} }', ['index']],
    [
      'a subclass, which inherits only the verb operations and updated',
      'class Base { index() {} created() {} updated() {} helper() {} options() {} } export default class extends Base { own() {} }',
      ['created', 'index', 'options', 'own', 'updated'],
    ],
    [
      'a subclass that replaces a method with an accessor',
      'class Base { index() {} } export default class extends Base { get index() { return 1 } own() {} }',
      ['own'],
    ],
  ];
  for (const [name, source, expected] of rows) {
    test(name, async () => assert.deepEqual(await operations(folder({ 'XController.mjs': source }), 'x'), expected));
  }

  test('a CommonJS file with module.exports or a named export', async () => {
    const path = folder({
      'package.json': '{}',
      'XController.js': 'module.exports = class { index() {} }',
      'YController.js': 'exports.YController = { hello() {} }',
    });
    assert.deepEqual(await operations(path, 'x'), ['index']);
    assert.deepEqual(await operations(path, 'y'), ['hello']);
  });

  test('a TypeScript file below a package.json without a type', async () => {
    const path = folder({
      'package.json': '{}',
      'XController.ts': 'export default class { index(): number { return 1 } }',
      'YController.ts': 'export class YController { hello() {} }',
    });
    assert.deepEqual(await operations(path, 'x'), ['index']);
    assert.deepEqual(await operations(path, 'y'), ['hello']);
  });

  test('private and protected methods in TypeScript are hidden, also in an imported base class', async () => {
    const path = folder({
      'package.json': '{"type":"module"}',
      'base.ts': 'export class Base { protected created() {} index() {} private helper(): void {} }',
      'XController.ts': `import { Base } from './base.ts';
        class Other { private shown() {} }
        export default class XController extends Base {
          private async load<T>(x: T): Promise<T> { return x }
          protected static override y() {}
          public shown() { return new Other() }
          toString(): string { return 'shown by no request' }
          private readonly field = () => 1;
        }`,
    });
    assert.deepEqual(await operations(path, 'x'), ['index', 'shown']);
  });
});

test('each method that does not serve has its reason', () => {
  class Base {
    helper() {}
  }
  class X extends Base {
    static make() {}
    field = () => 1;
    get size() {
      return () => 1;
    }
    _under() {}
    Upper() {}
    secret() {}
    index() {}
  }
  const isHidden = (name: string) => name === 'secret';
  const reasonsOf = (exported: unknown) =>
    Object.fromEntries(
      createGroup('X', instantiate('X', { default: exported }), isHidden).unexposed.map(({ name, reason }) => [
        name,
        reason,
      ]),
    );
  const reasons = {
    field: 'it is a field and not a method',
    size: 'it is an accessor',
    _under: 'its name begins with _',
    Upper: 'its name is not a small letter and then letters and digits',
    secret: 'it is marked private or protected',
    helper: 'it is inherited, and only index, created, red, patch, deleted, options, updated and routes can be',
  };
  assert.deepEqual(reasonsOf(X), { ...reasons, make: 'it is static' });
  assert.deepEqual(reasonsOf(new X()), reasons);
});

const INHERITED_GUARD = "class Base { get _before() { return 'x' } } export default class extends Base { index() {} }";

describe('a file that does not load', () => {
  const rows: [name: string, file: string, source: string, reason: RegExp, at: RegExp | undefined][] = [
    [
      'does not parse',
      'XController.mjs',
      'export default class {\n index( {\n}',
      /SyntaxError/,
      /XController\.mjs:\d$/,
    ],
    [
      'does not parse, TypeScript',
      'XController.ts',
      'export default class {\n private index( {\n}',
      /SyntaxError|Expected/,
      /XController\.ts:\d$/,
    ],
    ['throws', 'XController.mjs', '\nthrow new Error("boom")', /Error: boom/, /XController\.mjs:2$/],
    ['throws a text', 'XController.mjs', 'throw "boom"', /it threw "boom"/, undefined],
    ['throws null', 'XController.mjs', 'throw null', /it threw null/, undefined],
    [
      'throws in its constructor',
      'XController.mjs',
      'export default class {\n constructor() { throw new TypeError("no") } }',
      /TypeError: no/,
      /XController\.mjs:2$/,
    ],
    [
      'imports a missing file',
      'XController.mjs',
      'import "./absent.mjs"; export default {}',
      /Cannot find module/,
      /XController\.mjs:1$/,
    ],
    [
      'imports a missing name',
      'XController.mjs',
      'import { no } from "node:path"; export default {}',
      /does not provide an export named 'no'/,
      /XController\.mjs:1$/,
    ],
    ['exports nothing', 'XController.mjs', '', /it exports no group/, undefined],
    ['exports a function', 'XController.mjs', 'export default function index() {}', /no group.*mount\.node/, undefined],
    [
      'exports an application',
      'XController.mjs',
      'export default new (class App { fetch = () => {}; ["_x"]() {} })()',
      /no operation: write export default mount\(handler\)/,
      undefined,
    ],
    ['exports null', 'XController.mjs', 'export default null', /it exports no group/, undefined],
    ['exports an array', 'XController.mjs', 'export default []', /it exports no group/, undefined],
    [
      'exports a promise',
      'XController.mjs',
      'export default (async () => ({ index() {} }))()',
      /write await/,
      undefined,
    ],
    ['exports another name', 'XController.mjs', 'export class YController {}', /as XController/, undefined],
    [
      'has a guard that is a text',
      'XController.mjs',
      "export default { index() {}, _before: 'x' }",
      /_before/,
      undefined,
    ],
    [
      'has a guard that is an object',
      'XController.mjs',
      'export default { index() {}, _before: {} }',
      /_before/,
      undefined,
    ],
    [
      'has a guard that is null',
      'XController.mjs',
      'export default { index() {}, _before: null }',
      /_before/,
      undefined,
    ],
    [
      'has a field as its guard',
      'XController.mjs',
      'export default class { index() {} _before = true }',
      /_before/,
      undefined,
    ],
    ['inherits a guard that is a text', 'XController.mjs', INHERITED_GUARD, /_before/, undefined],
    [
      'has a second guard that is a text',
      'XController.mjs',
      "export default { index() {}, _after: 'x' }",
      /_after/,
      undefined,
    ],
    [
      'never finishes',
      'XController.mjs',
      'await new Promise(() => {}); export default {}',
      /did not finish loading within 300 ms/,
      undefined,
    ],
  ];
  for (const [name, file, source, reason, at] of rows) {
    test(name, async () => {
      const path = folder({ [file]: source, 'GoodController.mjs': 'export default { index() {} }' });
      const groups = createGroups({ dir: path, log: silent, loadTimeout: name === 'never finishes' ? 300 : 10_000 });
      const loads = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      const load = loads.find(({ group }) => group === 'X') as GroupLoad;
      assert.equal(load.ok, false);
      assert.match(load.error ?? '', reason);
      if (at === undefined) assert.equal(load.at, undefined);
      else assert.match((load.at ?? '').replace(/\?.*?(?=:|$)/, ''), at);
      assert.deepEqual(
        (await groups.all()).map((group) => group.name),
        ['Good'],
      );
      assert.throws(() => groups.find('x'), /cannot be loaded/);
    });
  }

  test('that finishes late loads with patience', async () => {
    const late = 'await new Promise((resolve) => setTimeout(resolve, 500)); export default { index() {} }';
    const groups = createGroups({ dir: folder({ 'XController.mjs': late }), log: silent, loadTimeout: 100 });
    const loads = await groups.loadAll({ skip: new Map(), patience: 1000, onLoading: () => {} });
    assert.deepEqual(loads, [{ group: 'X', file: 'XController.mjs', ok: true }]);
  });

  test('is reported when it cannot be read, and skipped when it is gone', async () => {
    const path = folder({ 'GoodController.mjs': 'export default { index() {} }' });
    symlinkSync('LoopController.mjs', join(path, 'LoopController.mjs'));
    const groups = createGroups({ dir: path, log: silent });
    const files = ['GoodController.mjs', 'GoneController.mjs', 'LoopController.mjs', 'no controller'];
    const loads = await groups.loadAll({ files, skip: new Map(), onLoading: () => {} });
    assert.deepEqual(
      loads.map(({ file, ok }) => [file, ok]),
      [
        ['GoodController.mjs', true],
        ['LoopController.mjs', false],
      ],
    );
    assert.match(loads[1]?.error ?? '', /ELOOP/);
  });

  test('is not imported when it is in the skip list', async () => {
    const path = folder({ 'XController.mjs': 'globalThis.touchedByGroupsTest = true; export default {}' });
    const groups = createGroups({ dir: path, log: silent });
    const loads = await groups.loadAll({
      skip: new Map([['XController.mjs', 'it ended a worker']]),
      onLoading: () => assert.fail('the skipped file is loading'),
    });
    assert.deepEqual(loads, [
      { group: 'X', file: 'XController.mjs', ok: false, code: 'LOAD_CRASHED', error: 'it ended a worker' },
    ]);
    assert.throws(() => groups.find('x'));
    assert.equal((globalThis as { touchedByGroupsTest?: boolean }).touchedByGroupsTest, undefined);
  });
});

describe('the folder of a running service', () => {
  test('a new file and a repaired file answer the next request, and a deleted file is a 404', async (t) => {
    const service = await startService({ controllers: {}, expectedErrors: ['request-failed', 'group-not-loadable'] });
    t.after(service.close);
    const status = async (page: string) => (await fetch(`${service.url}/api/${page}`)).status;
    const write = (name: string, source: string) => {
      writeFileSync(join(service.dir, `.${name}`), source);
      renameSync(join(service.dir, `.${name}`), join(service.dir, name));
    };
    for (let i = 0; i < 20; i++) {
      assert.equal(await status(`g${i}`), 404);
      write(`G${i}Controller.mjs`, `export default { index: () => ({ i: ${i} }) }`);
      assert.equal(await status(`g${i}`), 200);
    }
    write('BadController.mjs', 'export default {');
    assert.equal(await status('bad'), 500);
    assert.equal(await status('bad'), 500);
    write('BadController.mjs', 'export default { index: () => 1 }');
    assert.equal(await status('bad'), 200);
    write('NeverController.mjs', 'export default { index: () => 1 }');
    unlinkSync(join(service.dir, 'NeverController.mjs'));
    assert.equal(await status('never'), 404);
  });

  test('a request waits for a half-written file to be complete', async (t) => {
    const service = await startService({ controllers: {} });
    t.after(service.close);
    const file = join(service.dir, 'SlowController.mjs');
    writeFileSync(file, 'export default {');
    const answer = fetch(`${service.url}/api/slow`);
    setTimeout(() => writeFileSync(file, 'export default { index: () => 1 }'), 100);
    assert.equal((await answer).status, 200);
  });

  test('an unchanged file is imported again after it failed with EMFILE or ENFILE', async (t) => {
    const failing = (name: string, code: string) =>
      `globalThis.${name} = (globalThis.${name} ?? 0) + 1;
       if (globalThis.${name} === 1) throw Object.assign(new Error('too many open files'), { code: '${code}' });
       export default { index: () => 1 };`;
    const controllers = {
      'ProcessController.mjs': failing('triesOfProcess', 'EMFILE'),
      'SystemController.mjs': failing('triesOfSystem', 'ENFILE'),
      'OtherController.mjs': failing('triesOfOther', 'EACCES'),
    };
    const service = await startService({ controllers, expectedErrors: ['request-failed', 'group-not-loadable'] });
    t.after(service.close);
    const status = async (page: string) => (await fetch(`${service.url}/api/${page}`)).status;
    for (const page of ['process', 'system'])
      assert.deepEqual([await status(page), await status(page)], [500, 200], page);
    assert.deepEqual([await status('other'), await status('other')], [500, 500]);
  });

  test('many first requests at once import the file once', async (t) => {
    const counter = 'globalThis.importsByGroupsTest = (globalThis.importsByGroupsTest ?? 0) + 1;';
    const service = await startService({
      controllers: { 'OnceController.mjs': `${counter} export default { index: () => 1 }` },
    });
    t.after(service.close);
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${service.url}/api/once`)));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.equal((globalThis as { importsByGroupsTest?: number }).importsByGroupsTest, 1);
  });

  test('a loaded group keeps serving after the folder is removed, and other groups are a 404', async (t) => {
    const service = await startService({
      controllers: { 'AController.mjs': 'export default { index: () => 1 }', 'BController.mjs': 'export default {}' },
    });
    t.after(service.close);
    assert.equal((await fetch(`${service.url}/api/a`)).status, 200);
    rmSync(service.dir, { recursive: true });
    assert.equal((await fetch(`${service.url}/api/a`)).status, 200);
    assert.equal((await fetch(`${service.url}/api/b`)).status, 404);
  });

  test('closure lists every imported file and a missing file', async () => {
    const path = folder({
      'lib.mjs': "export * from './deep.mjs'",
      'deep.mjs': 'export const x = 1',
      'XController.mjs': "import './lib.mjs'; export default {}",
      'YController.mjs': "import './absent.mjs'; export default {}",
    });
    const groups = createGroups({ dir: path, log: silent });
    await groups.loadAll({ skip: new Map(), onLoading: () => {} });
    const files = new Map(
      groups.closure().map(({ path: file, fingerprint }) => [file.slice(path.length + 1), fingerprint]),
    );
    for (const name of ['lib.mjs', 'deep.mjs', 'XController.mjs', 'YController.mjs'])
      assert.match(files.get(name) ?? '', /^\d+:/, name);
    assert.equal(files.get('absent.mjs'), 'absent');
  });
});

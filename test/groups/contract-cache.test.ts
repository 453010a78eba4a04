// The caches of a large folder. A cached contract is used only while all its sources are the same, and only from a
// place that no other user can change.
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createLog } from '../../src/base/log.ts';
import type { ContractCache } from '../../src/contract/cached-contract.ts';
import { createReader } from '../../src/contract/reader.ts';
import { openCacheFolder } from '../../src/groups/cache-folder.ts';
import { openContractCache } from '../../src/groups/contract-cache.ts';
import { withContract } from '../../src/groups/group-contract.ts';
import { createModuleLoader } from '../../src/groups/module-loader.ts';
import { createGroup, type Group, instantiate } from '../../src/groups/operations.ts';
import { createFolder, write } from '../support/folder.ts';

const FILES = {
  'types.ts': 'export interface Order { n: number; at?: Date }\n',
  'base.ts': 'export class Base { find(id: { id: string }) { return id; } private wipe() {} }\n',
  'XController.ts': `import type { Order } from './types.ts';
import { Base } from './base.ts';
/** Orders. */
export default class XController extends Base {
  /** Creates one. */
  created(data: Order): { n: number } { return data; }
  'GET {id}'(query: { page?: number }, params: { path: { id: string } }) { return {}; }
  private hide() {}
}
`,
};

/** Loads X as a new process would: with a new reader, and with a URL that Node has not imported. */
let loads = 0;
async function load(dir: string, store: ContractCache): Promise<Group> {
  const modules = createModuleLoader();
  const path = join(dir, 'XController.ts');
  const exported = instantiate('X', await modules.load(path, ++loads));
  const classNames = exported.levels.map(({ className }) => className);
  const reader = createReader(modules, store);
  const source = reader.openController({ path, group: 'X', exportName: exported.exportName, classNames });
  return withContract(createGroup('X', exported, source.isHidden), source, undefined);
}

/** Returns a contract without its undefined fields, which a cached contract does not have. */
function withoutAbsent(value: unknown): unknown {
  if (value instanceof Map) return new Map(Array.from(value, ([key, inner]) => [key, withoutAbsent(inner)]));
  if (Array.isArray(value)) return value.map(withoutAbsent);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Reflect.ownKeys(value).map((key) => [key, withoutAbsent(Reflect.get(value, key))] as const);
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
}

/** Counts the contracts that are read from the source. */
function counting(store: ContractCache): ContractCache & { kept: number } {
  const counted = {
    ...store,
    kept: 0,
    add(path: string, text: string) {
      counted.kept++;
      store.add(path, text);
    },
  };
  return counted;
}

/** A cache in memory. */
function memory(): ContractCache & { kept: number } {
  const texts = new Map<string, string>();
  return counting({
    digest: (text) => text,
    find: (path) => texts.get(path),
    add: (path, text) => texts.set(path, text),
  });
}

function mistakesOf(group: Group, data: unknown): number {
  const parts = { data, query: {}, path: {} };
  return (
    (group.operations.get('created')?.check?.(parts, 'body', 'POST') as readonly unknown[] | undefined)?.length ?? 0
  );
}

describe('a cached contract', () => {
  test('equals the contract from the source and checks the same data', async (t) => {
    const dir = createFolder(t, FILES);
    const store = memory();
    const first = await load(dir, store);
    const second = await load(dir, store);
    assert.equal(store.kept, 1);
    assert.deepEqual(withoutAbsent(second.contract), withoutAbsent(first.contract));
    assert.equal(Object.getPrototypeOf(second.contract.defs), null);
    assert.deepEqual([...second.operations.keys()], [...first.operations.keys()]);
    assert.deepEqual(
      second.unexposed.map(({ name }) => name),
      first.unexposed.map(({ name }) => name),
    );
    for (const group of [first, second]) {
      const parts = { data: { n: 1, at: '2026-01-01T00:00:00Z' }, query: {}, path: {} };
      assert.equal(group.operations.get('created')?.check?.(parts, 'body', 'POST'), undefined);
      assert.ok((parts.data as { at: unknown }).at instanceof Date);
      assert.equal(mistakesOf(group, { n: '1' }), 1);
    }
  });

  const changes: Readonly<Record<string, (dir: string) => void>> = {
    'the controller': (dir) =>
      write(dir, 'XController.ts', FILES['XController.ts'].replace('data: Order', 'data: { m: string }')),
    'a file that it imports types from': (dir) => write(dir, 'types.ts', 'export interface Order { m: string }\n'),
    'the file of its base class': (dir) => write(dir, 'base.ts', FILES['base.ts'].replace('id: string', 'id: number')),
    'the path of an import': (dir) => {
      write(dir, 'XController.ts', FILES['XController.ts'].replace("'./types.ts'", "'./types.js'"));
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    test(`is not used after a change of ${name}`, async (t) => {
      const dir = createFolder(t, FILES);
      const store = memory();
      await load(dir, store);
      change(dir);
      await load(dir, store);
      assert.equal(store.kept, 2);
    });
  }

  test('is used only for the same settings of the operations', async (t) => {
    const dir = createFolder(t, {
      'XController.ts': `export default class XController {
  static operations = { created: { unchecked: process.env.KEPT_UNCHECKED === 'yes' } };
  created(data: { n: number }) { return data; }
}`,
    });
    t.after(() => delete process.env.KEPT_UNCHECKED);
    const store = memory();
    for (const [unchecked, mistakes] of [
      ['yes', 0],
      ['no', 1],
      ['yes', 0],
    ] as const) {
      process.env.KEPT_UNCHECKED = unchecked;
      assert.equal(mistakesOf(await load(dir, store), {}), mistakes);
    }
    assert.equal(store.kept, 3);
  });

  test('is used only for the same export', (t) => {
    const dir = createFolder(t, {
      'XController.ts': `export class XController { created(data: { n: number }) {} }
export default class { created(data: { m: number }) {} }`,
    });
    const store = memory();
    const reader = createReader(createModuleLoader(), store);
    const path = join(dir, 'XController.ts');
    const read = (exportName: string, className: string) => {
      const operation = { name: 'created', method() {}, depth: 0, pathNames: undefined, settings: {} };
      const source = reader.openController({ path, group: 'X', exportName, classNames: [className] });
      return Object.keys(
        source.readContract([operation]).contract.operations.get('created')?.data?.properties as object,
      );
    };
    assert.deepEqual(read('XController', 'XController'), ['n']);
    assert.deepEqual(read('default', 'default'), ['m']);
    assert.deepEqual(read('default', 'default'), ['m']);
    assert.equal(store.kept, 2);
  });

  test('is not used after a .js file appears that Node runs instead of the .ts file', (t) => {
    const dir = createFolder(t, {
      'base.ts': 'export class Base { created(data: { n: number }) {} }',
      'XController.ts': "import { Base } from './base.js';\nexport default class X extends Base {}",
    });
    const store = memory();
    const path = join(dir, 'XController.ts');
    const read = () => {
      const operation = { name: 'created', method() {}, depth: 1, pathNames: undefined, settings: {} };
      const reader = createReader(createModuleLoader(), store);
      reader
        .openController({ path, group: 'X', exportName: 'default', classNames: ['X', 'Base'] })
        .readContract([operation]);
    };
    read();
    read();
    assert.equal(store.kept, 1);
    write(dir, 'base.js', 'export class Base { created(data) {} }');
    assert.throws(read, /'\.\/base\.js' is base\.js for Node/);
  });

  test('is not used after a file appears that an import resolves to first', async (t) => {
    const dir = createFolder(t, { ...FILES, 'types.d.ts': FILES['types.ts'] });
    rmSync(join(dir, 'types.ts'));
    write(dir, 'XController.ts', FILES['XController.ts'].replace("'./types.ts'", "'./types.js'"));
    const store = memory();
    assert.equal(mistakesOf(await load(dir, store), { n: 1 }), 0);
    write(dir, 'types.ts', 'export interface Order { m: string }\n');
    const after = await load(dir, store);
    assert.equal(store.kept, 2);
    assert.equal(mistakesOf(after, { n: 1 }), 1);
  });

  test('is not used after a type changes, even if the file keeps its size and time', async (t) => {
    const { statSync, utimesSync } = await import('node:fs');
    const dir = createFolder(t, FILES);
    const store = memory();
    await load(dir, store);
    const { atime, mtime } = statSync(join(dir, 'types.ts'));
    writeFileSync(join(dir, 'types.ts'), FILES['types.ts'].replace('n: number', 'm: number'));
    utimesSync(join(dir, 'types.ts'), atime, mtime);
    assert.equal(mistakesOf(await load(dir, store), { n: 1 }), 1);
  });

  test('is not written for an operation whose schema comes from a library', async (t) => {
    const dir = createFolder(t, {
      ...FILES,
      'XController.ts': `const body = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };
export default class XController { static operations = { created: { body } }; created(data: unknown) { return data; } }`,
    });
    const store = memory();
    await load(dir, store);
    assert.equal(store.kept, 0);
  });

  test('is not written for an operation whose source is not found', async (t) => {
    const dir = createFolder(t, {
      'XController.ts': `const make = () => class { created() { return 1; } };\nexport default class XController extends make() {}`,
    });
    const store = memory();
    await load(dir, store);
    assert.equal(store.kept, 0);
  });

  test('is decoded at its first use, and a load reads its facts without decoding', async (t) => {
    const dir = createFolder(t, {
      'XController.ts': `import type { ControllerParams, EventStream } from 'gatefold';
interface User { name: string }
export default class XController {
  static operations = { patch: { unchecked: true } };
  index(query: { page: number }, params: ControllerParams<{ user: User }>) { return {}; }
  created(data: { n: number }) { return data; }
  patch(data: { n: number }) { return data; }
  'GET {id}'(_: undefined, params: ControllerParams<{ path: { id: string }; query: { page: number }; user?: User }>) { return {}; }
  'GET feed'(): EventStream<{ n: number }> { return undefined as never; }
  'PUT {id}'(data: unknown) { return data; }
}
`,
    });
    const store = memory();
    const first = await load(dir, store);
    const factsIn = (group: Group) => Array.from(group.operations.values(), ({ name, facts }) => ({ name, ...facts }));
    const facts = { isFound: true, hasDataSchema: false, hasQuerySchema: false, hasOnlyEvents: false };
    assert.deepEqual(withoutAbsent(factsIn(first)), [
      { name: 'index', ...facts, user: 'required', hasDataSchema: true },
      { name: 'created', ...facts, hasDataSchema: true },
      { name: 'patch', ...facts, uncheckedReason: 'static operations says so' },
      { name: 'GET {id}', ...facts, user: 'optional', hasQuerySchema: true, pathNames: ['id'] },
      { name: 'GET feed', ...facts, hasOnlyEvents: true },
      { name: 'PUT {id}', ...facts, uncheckedReason: 'its type is unknown or any' },
    ]);
    const text = store.find(join(dir, 'XController.ts')) ?? '';
    const undecodable = `${text.slice(0, text.indexOf('\t'))}\tno JSON`;
    const second = await load(dir, { ...store, find: () => undecodable });
    assert.equal(store.kept, 1);
    assert.deepEqual(withoutAbsent(factsIn(second)), withoutAbsent(factsIn(first)));
    const checked = (group: Group) =>
      [...group.operations.values()].filter(({ check }) => check !== undefined).map(({ name }) => name);
    assert.deepEqual(checked(first), ['index', 'created', 'GET {id}']);
    assert.deepEqual(checked(second), checked(first));
    assert.equal(second.contract.group, 'X');
    assert.throws(() => second.contract.operations, SyntaxError);
    assert.throws(() => mistakesOf(second, { n: 1 }), SyntaxError);
    // A decoded contract is kept.
    const third = await load(dir, store);
    assert.equal(third.contract.operations, third.contract.operations);
  });

  test('is not used when its text is damaged', async (t) => {
    const dir = createFolder(t, FILES);
    const cut = (text: string) => text.slice(0, text.indexOf('\t') - 9);
    for (const damage of [cut, (text: string) => text.slice(9), () => '', () => 'null', () => '{}', () => '[1]\t{}']) {
      const store = memory();
      const first = await load(dir, store);
      const found = store.find(join(dir, 'XController.ts')) ?? '';
      const second = await load(dir, { ...store, find: () => damage(found) });
      assert.ok(isDeepStrictEqual(withoutAbsent(second.contract), withoutAbsent(first.contract)));
    }
  });
});

/** A folder that is removed after the test. */
function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-caches-')));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Saves one text, as a process does after the load of the folder. */
function save(file: string, build?: string): void {
  const store = openContractCache(file, build);
  store.add('/x', '{"a":1}');
  store.release();
}

describe('the contract cache file', () => {
  test('returns its contracts only to the same build', async (t) => {
    const file = join(scratch(t), 'contracts');
    save(file, 'build');
    assert.equal(openContractCache(file, 'build').find('/x'), '{"a":1}');
    assert.equal(openContractCache(file, 'other').find('/x'), undefined);
    save(file);
    assert.equal(openContractCache(file).find('/x'), '{"a":1}');
  });

  test('is written once, when the load of the folder ends', async (t) => {
    const file = join(scratch(t), 'contracts');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const store = openContractCache(file, 'build');
    store.add('/x', '{"a":1}');
    store.release();
    assert.equal(openContractCache(file, 'build').find('/x'), '{"a":1}');
    rmSync(file);
    t.mock.timers.tick(1000);
    assert.deepEqual(readdirSync(join(file, '..')), []);
  });

  test('is not used when a byte has changed or is missing', async (t) => {
    const file = join(scratch(t), 'contracts');
    save(file, 'build');
    const whole = readFileSync(file, 'utf8');
    for (const text of [whole.replace('"a":1', '"a":2'), whole.slice(0, -3), whole.slice(3), '', '\n', `${whole}\n`]) {
      writeFileSync(file, text);
      assert.equal(openContractCache(file, 'build').find('/x'), undefined, text);
    }
  });

  test('replaces a damaged file and keeps the contracts that were used', async (t) => {
    const file = join(scratch(t), 'contracts');
    writeFileSync(file, 'damaged');
    save(file, 'build');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const store = openContractCache(file, 'build');
    assert.equal(store.find('/x'), '{"a":1}');
    store.release();
    store.add('/y', '{}');
    t.mock.timers.tick(1000);
    const next = openContractCache(file, 'build');
    assert.deepEqual([next.find('/x'), next.find('/y')], ['{"a":1}', '{}']);
    next.add('/z', '{}');
    rmSync(file);
    next.release();
    assert.equal(openContractCache(file, 'build').find('/z'), undefined);
    assert.deepEqual(readdirSync(join(file, '..')), []);
  });

  test('contains every contract of a load that takes longer than the save delay', async (t) => {
    const file = join(scratch(t), 'contracts');
    save(file, 'build');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const store = openContractCache(file, 'build');
    store.add('/a', '{}');
    t.mock.timers.tick(5000);
    store.add('/b', '{}');
    assert.equal(store.find('/x'), '{"a":1}');
    store.release();
    const next = openContractCache(file, 'build');
    assert.deepEqual(['/a', '/b', '/x'].map(next.find), ['{}', '{}', '{"a":1}']);
  });
});

describe('the cache folder', { skip: process.geteuid === undefined }, () => {
  test('keeps its entries when it is opened again', (t) => {
    const parent = scratch(t);
    const folder = openCacheFolder('one', parent) as string;
    writeFileSync(join(folder, 'entry'), '');
    assert.equal(openCacheFolder('one', parent), folder);
    assert.deepEqual(readdirSync(folder), ['entry']);
  });

  test('is refused when other users can read, write or replace it', (t) => {
    const parent = scratch(t);
    const folder = openCacheFolder('one', parent) as string;
    const rows: [path: string, mode: number][] = [
      [folder, 0o777],
      [folder, 0o770],
      [folder, 0o755],
      [join(folder, '..'), 0o777],
      [parent, 0o777],
      [parent, 0o770],
    ];
    for (const [path, mode] of rows) {
      chmodSync(path, mode);
      assert.throws(() => openCacheFolder('one', parent), /is not used/, `${path} ${mode.toString(8)}`);
      chmodSync(path, 0o700);
    }
    // In a folder with the sticky bit, only the owner can rename an entry.
    chmodSync(parent, 0o1777);
    assert.equal(openCacheFolder('one', parent), folder);
  });

  test('is refused when a link or a file has its name', (t) => {
    const parent = scratch(t);
    const folder = openCacheFolder('one', parent) as string;
    rmSync(folder, { recursive: true });
    mkdirSync(join(parent, 'elsewhere'), { mode: 0o700 });
    symlinkSync(join(parent, 'elsewhere'), folder);
    assert.throws(() => openCacheFolder('one', parent), /is not used/);
    rmSync(folder);
    writeFileSync(folder, '', { mode: 0o700 });
    assert.throws(() => openCacheFolder('one', parent), /is not used/);
  });

  test('removes nothing behind a link to other files of this user', (t) => {
    const parent = scratch(t);
    const documents = join(parent, 'documents');
    for (let i = 0; i < 30; i++) mkdirSync(join(documents, String(i)), { recursive: true, mode: 0o700 });
    symlinkSync(documents, join(parent, `gatefold-${process.geteuid?.()}`));
    assert.throws(() => openCacheFolder('one', parent), /is not used/);
    assert.equal(readdirSync(documents).length, 30);
  });

  test('is refused when another user owns it', { skip: process.geteuid?.() !== 0 }, async (t) => {
    const { chownSync } = await import('node:fs');
    const parent = scratch(t);
    const folder = openCacheFolder('one', parent) as string;
    chownSync(folder, 12345, 12345);
    assert.throws(() => openCacheFolder('one', parent), /is not used/);
  });

  test('is undefined when it cannot be created', (t) => {
    const parent = scratch(t);
    assert.equal(openCacheFolder('one', join(parent, 'none')), undefined);
    assert.equal(openCacheFolder('one', '/proc'), undefined);
  });

  test('is removed unless it is among the twenty used last', (t) => {
    const parent = scratch(t);
    for (let i = 0; i < 25; i++) openCacheFolder(`f${i}`, parent);
    const root = join(openCacheFolder('f24', parent) as string, '..');
    assert.equal(readdirSync(root).length, 20);
    assert.ok(readdirSync(root).includes('f24'));
  });
});

test('a folder of thirty controllers uses the caches, and a smaller folder does not', async (t) => {
  const { createGroups } = await import('../../src/groups/registry.ts');
  const { prepareLoad } = await import('../../src/groups/prepared-load.ts');
  const parent = scratch(t);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = parent;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const events: string[] = [];
  const log = createLog({ level: 'warn', sink: { write: (line) => events.push(line), flush: () => {} } });
  const controllers = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) => [
        `G${i}Controller.ts`,
        'export default class { created(data: { n: number }) { return data; } }',
      ]),
    );
  const loadAll = async (count: number) => {
    const dir = createFolder(t, controllers(count));
    const groups = createGroups({ dir, log, prepared: await prepareLoad(dir) });
    return groups.loadAll({ skip: new Map(), onLoading: () => {} });
  };
  assert.ok((await loadAll(29)).every(({ ok }) => ok));
  assert.deepEqual(
    readdirSync(parent).filter((name) => /^gatefold-\d+$/.test(name)),
    [],
  );
  assert.ok((await loadAll(30)).every(({ ok }) => ok));
  const [own = ''] = readdirSync(parent).filter((name) => /^gatefold-\d+$/.test(name));
  assert.notEqual(own, '');
  chmodSync(join(parent, own), 0o777);
  assert.ok((await loadAll(30)).every(({ ok }) => ok));
  assert.match(events.join(''), /cache-refused/);
});

// A made type that no longer is the type refuses its file, whatever has changed since `gatefold contracts` has written
// it. Each case is a copy of one project, in which something has changed.
import assert from 'node:assert/strict';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createLog } from '../../src/base/log.ts';
import { indexDigestOf } from '../../src/contract/made-types.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { makeProject, runProcess } from '../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
/** A type that the reader refuses, of another type. */
const operation = (type: string, from?: string) =>
  `${from === undefined ? '' : `import type { ${type} } from '${from}';\n`}export default class { created(data: ${type} extends string ? never : ${type}) { return { data }; } }\n`;
const manifest = (name: string, version: string, more: object = {}) => JSON.stringify({ name, version, ...more });
const options = {
  ...{
    target: 'es2023',
    module: 'esnext',
    moduleResolution: 'bundler',
    resolveJsonModule: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
  },
  ...{ skipLibCheck: true, types: ['ambient'] },
};

const FILES = {
  'app/package.json': '{"name":"app","type":"module","imports":{"#user":"./src/user.ts"}}',
  'app/tsconfig.json': '{"extends":"./base.json","include":["controllers","src","../shared/*.d.ts"]}',
  'app/base.json': JSON.stringify({ compilerOptions: options }),
  'app/src/user.ts': 'export interface User { name: string }',
  'app/src/middle.ts': "export * from './inner.ts';",
  'app/src/inner.ts': 'export interface Inner { name: string }',
  'app/src/globals.d.ts': 'interface Global { name: string }',
  'app/src/data.json': '{"name":"a"}',
  'app/src/json.ts':
    "import data from './data.json' with { type: 'json' };\nexport type Json = { [K in keyof typeof data]: string };",
  'app/src/script.ts': 'interface Script { name: string }',
  'app/src/bom.ts': '\ufeffexport interface Bom { name: string }\r\n',
  'shared/more.d.ts': 'interface More { name: string }',
  'app/node_modules/shop/package.json': manifest('shop', '1.0.0', { dependencies: { core: '*' } }),
  'app/node_modules/shop/index.d.ts':
    "import type { Core } from 'core';\nexport interface Shop { name: Core }\nexport interface File { name: Core }",
  'app/node_modules/core/package.json': manifest('core', '1.0.0'),
  'app/node_modules/core/index.d.ts': 'export type Core = string;',
  'app/node_modules/@types/ambient/package.json': manifest('@types/ambient', '1.0.0'),
  'app/node_modules/@types/ambient/index.d.ts': 'interface Ambient { name: string }',
  'app/node_modules/client/package.json': manifest('client', '1.0.0'),
  'app/node_modules/client/index.d.ts': "export * from '.client/made';",
  'app/node_modules/.client/made/index.d.ts': 'export interface Client { name: string }',
  'lib/package.json': manifest('lib', '1.0.0', { exports: './src/lib.ts' }),
  'lib/src/lib.ts': "import type { Nested } from 'nested';\nexport interface Lib { name: Nested }",
  'lib/node_modules/nested/package.json': manifest('nested', '1.0.0'),
  'lib/node_modules/nested/index.d.ts': 'export type Nested = string;',
  'app/controllers/AController.ts': operation('User', '#user'),
  'app/controllers/BController.ts': operation('Inner', '../src/middle.ts'),
  'app/controllers/CController.ts': operation('Global'),
  'app/controllers/DController.ts': operation('More'),
  'app/controllers/EController.ts': operation('Shop', 'shop'),
  'app/controllers/FController.ts': operation('Client', 'client'),
  'app/controllers/GController.ts': operation('Lib', 'lib'),
  'app/controllers/HController.ts': operation('Ambient'),
  'app/controllers/IController.ts': operation('Json', '../src/json.ts'),
  'app/controllers/JController.ts': `\ufeff${operation('Bom', '../src/bom.ts').replaceAll('\n', '\r\n')}`,
  'app/controllers/KController.ts': operation('Script'),
  'app/controllers/LController.ts':
    "import type { File } from 'shop';\nexport default class { created(data: File) { return { data }; } }\n",
};
const GROUPS = 'ABCDEFGHIJKL';
const MADE = 'app/controllers/contracts.gen.ts';

const write = (home: string, name: string, text: string) => {
  mkdirSync(dirname(join(home, name)), { recursive: true });
  writeFileSync(join(home, name), text);
};
const edit = (name: string, change: (text: string) => string) => (home: string) =>
  write(home, name, change(readFileSync(join(home, name), 'utf8')));
const remove = (name: string) => (home: string) => rmSync(join(home, name), { recursive: true });
const set = (name: string, text: string) => (home: string) => write(home, name, text);
/** Edits a made type, and writes a digest that fits it. */
const forge = edit(MADE, (text) => {
  const [made = '', index = ''] = text.replace('name: string', 'name: unknown').split('/*gatefold ');
  const { entries, sources } = JSON.parse(index.slice(0, -3));
  const digest = indexDigestOf(made, { entries, sources });
  return `${made}/*gatefold ${JSON.stringify({ digest, entries, sources })}*/\n`;
});

/** By what has changed: the groups whose files are refused. */
const CASES: readonly [name: string, change: (home: string) => void, refused: string][] = [
  ['nothing', () => {}, ''],
  ['an own file', edit('app/src/user.ts', (text) => text.replace('string', 'number')), 'A'],
  ['an own file, to CRLF', edit('app/src/user.ts', (text) => `${text}\r\n`), 'A'],
  ['an own file, by a BOM', edit('app/src/user.ts', (text) => `\ufeff${text}`), ''],
  ['an own file that is gone', remove('app/src/user.ts'), 'A'],
  [
    'an own file that a folder replaces',
    (home) => {
      remove('app/src/inner.ts')(home);
      mkdirSync(join(home, 'app/src/inner.ts'));
    },
    'B',
  ],
  [
    'an own file that a link to the same text elsewhere replaces',
    (home) => {
      mkdirSync(join(home, 'app/src/other'));
      renameSync(join(home, 'app/src/middle.ts'), join(home, 'app/src/other/middle.ts'));
      write(home, 'app/src/other/inner.ts', 'export interface Inner { name: number }');
      symlinkSync('other/middle.ts', join(home, 'app/src/middle.ts'));
    },
    'B',
  ],
  [
    'an own file with another name',
    (home) => renameSync(join(home, 'app/src/inner.ts'), join(home, 'app/src/inner2.ts')),
    'B',
  ],
  ['the inner file of a type that two files export', set('app/src/inner.ts', 'export interface Inner { a: 1 }'), 'B'],
  ['a controller', edit('app/controllers/AController.ts', (text) => `${text}\n`), 'A'],
  ['a JSON file whose type is taken', set('app/src/data.json', '{"other":"a"}'), 'I'],
  ['a file of global types', set('app/src/globals.d.ts', 'interface Global { name: 1 }'), GROUPS],
  ['a file of global types outside of the project', set('shared/more.d.ts', 'interface More { name: 1 }'), GROUPS],
  ['a file of global types that is no .d.ts', set('app/src/script.ts', 'interface Script { name: 1 }'), GROUPS],
  ['a new file of global types', set('app/src/new.d.ts', 'interface New { name: 1 }'), GROUPS],
  [
    'a new file of global types in React',
    set('app/src/new.tsx', 'export {};\ndeclare global { interface New {} }'),
    GROUPS,
  ],
  ['tsconfig.json', edit('app/tsconfig.json', (text) => `${text}\n`), GROUPS],
  [
    'what tsconfig.json extends',
    edit('app/base.json', (text) => text.replace('"strict"', '"exactOptionalPropertyTypes":true,"strict"')),
    GROUPS,
  ],
  ['a tsconfig.json nearer to the controllers', set('app/controllers/tsconfig.json', '{}'), GROUPS],
  ['a package in another version', set('app/node_modules/shop/package.json', manifest('shop', '1.0.1')), 'EL'],
  [
    'a package of a package in another version',
    set('app/node_modules/core/package.json', manifest('core', '2.0.0')),
    'EL',
  ],
  [
    'a package without a version, in its content',
    set('app/node_modules/.client/made/index.d.ts', 'export interface Client { a: 1 }'),
    GROUPS,
  ],
  [
    'a package of a linked package in another version',
    set('lib/node_modules/nested/package.json', manifest('nested', '2.0.0')),
    'G',
  ],
  [
    'a package with global types in another version',
    set('app/node_modules/@types/ambient/package.json', manifest('@types/ambient', '2.0.0')),
    'H',
  ],
  ['a file of a linked package', set('lib/src/lib.ts', 'export interface Lib { a: 1 }'), 'G'],
  [
    'a linked package that is installed now',
    (home) => {
      rmSync(join(home, 'app/node_modules/lib'));
      write(home, 'app/node_modules/lib/package.json', manifest('lib', '1.0.0', { types: 'index.d.ts' }));
      write(home, 'app/node_modules/lib/index.d.ts', 'export interface Lib { a: 1 }');
    },
    'G',
  ],
  ['a package with types alone, which is absent', remove('app/node_modules/shop'), ''],
  ['tsconfig.json, which is absent', remove('app/tsconfig.json'), ''],
  ['the lock file, which is absent', () => {}, ''],
  ['the file of made types, which is absent', remove(MADE), GROUPS],
  ['the file of made types, to CRLF', edit(MADE, (text) => text.replaceAll('\n', '\r\n')), ''],
  ['the file of made types, by a BOM', edit(MADE, (text) => `\ufeff${text}`), ''],
  ['a made type, by hand', edit(MADE, (text) => text.replace('string', 'unknown')), GROUPS],
  ['a digest of a source, by hand', edit(MADE, (text) => text.replace(/("file","[^"]*","\w{3})/, '$1x')), GROUPS],
  ['a made type and its digest, by hand, which only --check can tell', forge, ''],
];

let home: string;
const cleanUp: (() => void)[] = [];
const contracts = (cwd: string, ...words: string[]) => runProcess(['contracts', ...words], { cwd: join(cwd, 'app') });
before(async () => {
  home = makeProject({ after: (done) => void cleanUp.push(done) }, FILES);
  symlinkSync('../../lib', join(home, 'app/node_modules/lib'));
  symlinkSync(join(ROOT, 'node_modules/typescript'), join(home, 'app/node_modules/typescript'));
  const out = `Wrote contracts.gen.ts: ${GROUPS.length} types\n`;
  assert.deepEqual(await contracts(home), { code: 0, out, err: '' });
});
after(() => {
  for (const done of cleanUp) done();
});

function copyProject(t: TestContext): string {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-stale-')));
  t.after(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(home, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

describe('a change refuses the files that need the type, and names the command to run:', () => {
  for (const [name, change, refused] of CASES)
    test(name, async (t) => {
      const copy = copyProject(t);
      change(copy);
      const groups = createGroups({ dir: join(copy, 'app/controllers'), log: silent });
      const results = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      const failed = results.filter(({ ok }) => !ok);
      assert.equal(failed.map(({ file }) => file[0]).join(''), refused, failed.map(({ error }) => error).join('\n'));
      for (const { error } of failed) assert.match(error ?? '', /run gatefold contracts$/);
    });
});

test('a new group is compared with what its sources are now', async (t) => {
  const copy = copyProject(t);
  const [file = '', text = ''] = ['app/controllers/AController.ts', FILES['app/controllers/AController.ts']];
  remove(file)(copy);
  const groups = createGroups({ dir: join(copy, 'app/controllers'), log: silent });
  await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  write(copy, 'app/src/globals.d.ts', 'interface Global { name: 1 }');
  write(copy, file, text);
  // The folder is listed once in a turn of the event loop.
  await setImmediate();
  const load = await groups.importNew('A');
  assert.match(load?.error ?? '', /from another \.\.\/src\/globals\.d\.ts/);
});

test('each version of TypeScript names the same sources, and a made type does not hide a global one', async (t) => {
  const copy = copyProject(t);
  assert.match(readFileSync(join(copy, MADE), 'utf8'), /export type File2 = /);
  rmSync(join(copy, 'app/node_modules/typescript'));
  symlinkSync(join(ROOT, 'node_modules/typescript-5'), join(copy, 'app/node_modules/typescript'));
  assert.deepEqual((await contracts(copy, '--check')).err, '');
  forge(copy);
  assert.match((await contracts(copy, '--check')).err, /is out of date/);
});

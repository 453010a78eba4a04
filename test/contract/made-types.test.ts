// `contracts.gen.ts`: the types that TypeScript has written out are read in their places. A type whose sources have
// changed refuses its file, and so does a file that was edited.
import assert from 'node:assert/strict';
import fs, { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import module, { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import {
  digestOf,
  findPackage,
  indexDigestOf,
  listGlobalFiles,
  placeKey,
  type Source,
} from '../../src/contract/made-types.ts';
import { createGroups } from '../../src/live/load/registry.ts';

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
let root: string;
before(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-made-')));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
});
after(() => rmSync(root, { recursive: true, force: true }));

const TYPE = 'User extends { id: number } ? { name: string } : never';
const SOURCE = `import type { User } from '../src/user.ts';
export default class XController { created(data: ${TYPE}) { return data; } }`;
const USER = 'export interface User { id: number; name: string }';
const TEXT = 'export type Made = {\n  name: string;\n};\n';

interface Project {
  readonly files?: Readonly<Record<string, string>>;
  readonly sources?: readonly Source[];
  readonly key?: (key: string) => string;
  readonly edit?: (text: string) => string;
}

let count = 0;
async function load({ files = {}, sources, key = (text) => text, edit = (text) => text }: Project) {
  const home = join(root, String(count++));
  const folder = join(home, 'controllers');
  const path = join(folder, 'XController.ts');
  const place = placeKey(folder, path, { at: SOURCE.indexOf(TYPE), kind: 'unsupported' }, SOURCE);
  const defaults: Source[] = [
    ['file', 'XController.ts', digestOf(SOURCE)],
    ['file', '../src/user.ts', digestOf(USER)],
  ];
  const list = sources ?? defaults;
  const index = { entries: { [key(place)]: ['Made', [...list.keys()]] as const }, sources: list };
  const made = `${TEXT}/*gatefold ${JSON.stringify({ digest: indexDigestOf(TEXT, index), ...index })}*/\n`;
  const all = { 'controllers/XController.ts': SOURCE, 'src/user.ts': USER, 'controllers/contracts.gen.ts': edit(made) };
  for (const [name, text] of Object.entries({ ...all, ...files })) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), text);
  }
  const groups = createGroups({ dir: folder, log: silent });
  const [result] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  const [group] = await groups.all();
  const data = group?.contract?.operations.get('created')?.data;
  const watched = groups.closure().map(({ path: file }) => file.slice(home.length + 1));
  return { error: result?.error ?? 'it loaded', wanted: result?.wanted, defs: group?.contract?.defs, data, watched };
}

test('a made type is the check in the place of the refused one, and its sources are watched', async () => {
  const { error, defs, watched } = await load({});
  assert.equal(error, 'it loaded');
  assert.deepEqual(
    { ...defs },
    {
      Made: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  );
  for (const file of ['src/user.ts', 'controllers/contracts.gen.ts']) assert.ok(watched.includes(file), file);
});

test('a made type is found where Git for Windows has checked out all files with CRLF', async () => {
  const withCrlf = (text: string) => text.replaceAll('\n', '\r\n');
  const files = { 'controllers/XController.ts': withCrlf(SOURCE), 'src/user.ts': withCrlf(USER) };
  assert.equal((await load({ files, edit: withCrlf })).error, 'it loaded');
});

test('without the file the type is refused, wanted, and the file is watched', async () => {
  const { error, wanted, watched } = await load({ key: () => 'XController.ts@1 name' });
  assert.match(error, /a conditional type is not understood; write the type out, or run gatefold contracts$/);
  assert.deepEqual([wanted?.at, wanted?.kind], [SOURCE.indexOf(TYPE), 'unsupported']);
  assert.ok(watched.includes('controllers/contracts.gen.ts'));
});

describe('a file is refused with the command to run', () => {
  const rows: [name: string, project: Project, expected: RegExp][] = [
    [
      'when an own source has changed',
      { files: { 'src/user.ts': `${USER}\n` } },
      /contracts\.gen\.ts was made from another \.\.\/src\/user\.ts; write the type out, or run gatefold contracts/,
    ],
    [
      'when the controller has changed',
      { files: { 'controllers/XController.ts': `${SOURCE}\n` } },
      /from another XController\.ts/,
    ],
    ['when an own source is gone', { sources: [['file', '../src/gone.ts', 'x']] }, /from another \.\.\/src\/gone\.ts/],
    [
      'when a package has another version',
      { sources: [['package', 'shop', '1.0.0']], files: { 'node_modules/shop/package.json': '{"version":"1.0.1"}' } },
      /from another shop/,
    ],
    [
      'when tsconfig.json has changed',
      { sources: [['config', '../tsconfig.json', 'x']], files: { 'tsconfig.json': '{}' } },
      /from another \.\.\/tsconfig\.json/,
    ],
    [
      'when a file with global declarations is new',
      { files: { 'controllers/sub/new.d.ts': 'interface User { id: 2 }' } },
      /from another sub\/new\.d\.ts/,
    ],
    [
      'when a file of the project declares something for all files',
      {
        sources: [['config', '../tsconfig.json', digestOf('{}')]],
        files: { 'tsconfig.json': '{}', 'src/more.ts': 'export {};\ndeclare global { interface User { id: 2 } }' },
      },
      /from another \.\.\/src\/more\.ts/,
    ],
    [
      'when the made type was edited',
      { edit: (text) => text.replace('string', 'unknown') },
      /contracts\.gen\.ts has been edited; run gatefold contracts/,
    ],
    [
      'when a type was added',
      { edit: (text) => `export type Other = 1;\n${text}` },
      /contracts\.gen\.ts has been edited/,
    ],
    ['when the comment is gone', { edit: () => TEXT }, /contracts\.gen\.ts has been edited/],
    [
      'when the comment is broken',
      { edit: (text) => text.replace('"entries"', '"entries') },
      /contracts\.gen\.ts has been edited/,
    ],
    [
      'when text follows the comment',
      { edit: (text) => `${text}export type Made = unknown;` },
      /contracts\.gen\.ts has been edited/,
    ],
    ['when it cannot be parsed', { edit: (text) => `type A = [;${text}` }, /contracts\.gen\.ts/],
    [
      'when the type is at another place',
      { key: (key) => key.replace('@', '@1') },
      /a conditional type is not understood/,
    ],
    [
      'when the type is of another kind',
      { key: (key) => key.replace('unsupported', 'name') },
      /a conditional type is not understood/,
    ],
    ['when the file is empty', { edit: () => '' }, /a conditional type is not understood/],
  ];
  for (const [name, project, expected] of rows)
    test(name, async () => {
      assert.match((await load(project)).error, expected);
    });
});

test('a stale type of a result refuses its file, because the result would be sent whole', async () => {
  const source = SOURCE.replace(`(data: ${TYPE}) { return data; }`, `(): ${TYPE} { return { name: 'a' } as never; }`);
  const project = {
    sources: [['file', '../src/user.ts', digestOf(USER)]] as Source[],
    key: () => `XController.ts@${source.indexOf(TYPE)} unsupported`,
  };
  const controller = { 'controllers/XController.ts': source };
  assert.equal((await load({ ...project, files: controller })).error, 'it loaded');
  const { error, wanted } = await load({ ...project, files: { ...controller, 'src/user.ts': `${USER}\n` } });
  assert.match(error, /contracts\.gen\.ts was made from another \.\.\/src\/user\.ts; write the type out, or run/);
  assert.equal(wanted?.kind, 'unsupported');
  const edit = (text: string) => text.replace('string', 'unknown');
  assert.match((await load({ ...project, files: controller, edit })).error, /has been edited; run gatefold contracts/);
});

test('a declaration of a package, and a module of declarations, are none for all files', async () => {
  const files = {
    'controllers/node_modules/a/index.d.ts': 'interface A {}',
    'controllers/b.d.ts': 'export interface B {}',
    'src/more.d.ts': 'interface A {}',
  };
  assert.equal((await load({ files })).error, 'it loaded');
});

test('the place of a field of a field means the whole', async () => {
  const type = "Deep['a']['a']";
  const source = SOURCE.replace(TYPE, type).replace('{ User }', '{ Deep }');
  const user = 'export type Deep = string extends object ? { a: { a: string } } : { a: { a: { name: string } } };';
  const { error, data } = await load({
    files: { 'controllers/XController.ts': source, 'src/user.ts': user },
    sources: [],
    key: () => `XController.ts@${source.indexOf(type)} indexed`,
  });
  assert.equal(error, 'it loaded');
  assert.deepEqual(data, { $ref: '#/$defs/Made' });
});

test('production may lack a package that has only types, and tsconfig.json', async () => {
  const sources: Source[] = [
    ['package', 'shop', '1.0.0'],
    ['config', '../tsconfig.json', 'x'],
  ];
  assert.equal((await load({ sources })).error, 'it loaded');
});

test('a folder that this user may not read has no global files, and the others are listed', (t) => {
  const folder = join(root, 'globals');
  for (const name of ['database', 'src']) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'src/user.d.ts'), 'interface User { id: 1 }');
  const { readdirSync } = fs;
  // The root user of many test machines may read every folder.
  t.mock.method(fs, 'readdirSync', (path: string, options: { withFileTypes: true }) => {
    if (path.endsWith('database')) throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
    return readdirSync(path, options);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.deepEqual(listGlobalFiles(folder), [join(folder, 'src/user.d.ts')]);
});

test('findPackage finds a package from a folder, from another package, and behind a link with its place', () => {
  const home = join(root, 'packages');
  const manifests = {
    'lib/node_modules/inner': 'inner-of-lib',
    'app/node_modules/outer': 'outer',
    'app/node_modules/outer/node_modules/inner': 'inner-of-outer',
    'node_modules/above': 'above',
    'own/linked': 'linked',
  };
  for (const [folder, name] of Object.entries(manifests)) {
    mkdirSync(join(home, folder), { recursive: true });
    writeFileSync(join(home, folder, 'package.json'), JSON.stringify({ name, version: '1.2.3' }));
  }
  symlinkSync(join(home, 'own/linked'), join(home, 'app/node_modules/linked'));
  const rows: [name: string, found: string | undefined, print?: string][] = [
    ['outer', 'outer'],
    ['above', 'above'],
    ['outer/node_modules/inner', 'inner-of-outer'],
    ['./../lib/node_modules/inner', 'inner-of-lib'],
    ['linked', 'linked', '1.2.3 in ../own/linked'],
    ['inner', undefined],
    ['gone/node_modules/inner', undefined],
  ];
  for (const [name, found, print = '1.2.3'] of rows) {
    const installed = findPackage(join(home, 'app'), name);
    assert.equal(installed?.manifest.name, found, name);
    if (found !== undefined) assert.equal(installed?.print, print, name);
  }
});

test("findPackage asks Yarn's Plug'n'Play, which has no node_modules", (t) => {
  const home = join(root, 'pnp');
  const placeOf = (name: string) => join(home, `cache/${name}.zip/node_modules/${name}`);
  for (const name of ['outer', 'inner']) {
    mkdirSync(placeOf(name), { recursive: true });
    writeFileSync(join(placeOf(name), 'package.json'), JSON.stringify({ name, version: '1.2.3' }));
  }
  // The project depends on `outer` alone, and `outer` on `inner`.
  const issuers = { outer: join(home, 'app/'), inner: join(placeOf('outer'), '/') };
  const findPnpApi = () => ({
    resolveToUnqualified(name: 'outer' | 'inner', issuer: string) {
      if (!issuer.startsWith(issuers[name])) throw new Error(`${name} is not declared`);
      return placeOf(name);
    },
  });
  Object.assign(module, { findPnpApi });
  t.after(() => Reflect.deleteProperty(module, 'findPnpApi'));
  const found = (name: string) => findPackage(join(home, 'app'), name)?.home;
  assert.equal(found('outer'), placeOf('outer'));
  assert.equal(found('outer/node_modules/inner'), placeOf('inner'));
  assert.equal(found('inner'), undefined);
  assert.equal(findPackage(join(home, 'app'), 'outer')?.print, '1.2.3');
});

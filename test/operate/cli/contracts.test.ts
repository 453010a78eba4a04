// `gatefold contracts` in this process, with one TypeScript and without a process for the controllers: which types are
// made, from what, and what the command answers. test/slow/cli-contracts.slow.ts runs the built command.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { digestOf, type MadeIndex } from '../../../src/contract/made-types.ts';
import { runCommand } from '../../../src/operate/cli/command.ts';
import { command } from '../../../src/operate/cli/contracts.ts';
import type { Inspection, Job } from '../../../src/operate/cli/inspection.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { answerInspections, loadHere } from '../../support/inspection-here.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** A controller whose operation takes a type. */
const taking = (type: string, head = '') =>
  `${head}export default class { created(data: ${type}) { return { data }; } }\n`;
const fromTypes = (names: string) => `import type { ${names} } from '../src/types.ts';\n`;

function makeTypeScriptProject(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  version = 'typescript-5',
): string {
  const cwd = makeProject(t, {
    // Without its libraries, TypeScript answers in a moment.
    'tsconfig.json':
      '{"compilerOptions":{"module":"nodenext","noLib":true,"types":[]},"include":["controllers","src"]}',
    ...files,
  });
  mkdirSync(join(cwd, 'node_modules'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', version), join(cwd, 'node_modules/typescript'));
  return cwd;
}

/** Runs the command, and answers its inspections. */
async function contracts(
  t: TestContext,
  cwd: string,
  words: readonly string[] = [],
  answer: (job: Job) => Promise<Inspection> | Inspection = loadHere,
) {
  answerInspections(t, answer);
  const ran = await runHere((argv, io) => runCommand(command, argv, io), words, { cwd });
  const file = join(cwd, 'controllers/contracts.gen.ts');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  return { ...ran, file, text, index: text === undefined ? undefined : indexOf(text) };
}

function indexOf(text: string): MadeIndex {
  return JSON.parse(/\n\/\*gatefold (.*)\*\/\n$/.exec(text)?.[1] ?? '{}');
}

/** The source of each type: `Name: file x, package y`. */
function sourcesByName(index: MadeIndex | undefined): Record<string, string[]> {
  const { entries = {}, sources = [] } = index ?? {};
  return Object.fromEntries(
    Object.values(entries).map(([name, indexes]) => [
      name,
      indexes.map((i) => `${sources[i]?.[0]} ${sources[i]?.[1]}`),
    ]),
  );
}

const TYPES = `export type Without<T, K> = { [P in keyof T as P extends K ? never : P]: T[P] };
export interface User { id: number; name: string; tree: Tree }
export interface Tree { kid?: Tree }
export interface Loose { id: number; more: any; big?: bigint }
export interface Tagged { /** @minLength 3 */ name: string }
`;

const FILES = {
  'src/types.ts': TYPES,
  'controllers/AController.ts': taking("Without<User, 'id'>", fromTypes('Without, User')),
  // A text editor on Windows writes this mark.
  'controllers/BController.ts': `\ufeff${taking("Without<User, 'id'>", fromTypes('Without, User'))}`,
};

test('contracts writes each type under a name of its own, sorted, with the places that it is for', async (t) => {
  const cwd = makeTypeScriptProject(t, {
    ...FILES,
    'controllers/CController.ts': taking('1 extends 2 ? string : boolean'),
    'controllers/DController.ts': taking(
      "Date<'id'>",
      "type Date<K> = { [P in 'a' | 'id' as P extends K ? never : P]: 1 };\n",
    ),
  });
  const { code, out, err, text = '', index } = await contracts(t, cwd);
  assert.deepEqual([code, out, err], [0, 'Wrote contracts.gen.ts: 4 types\n', '']);
  assert.match(
    text,
    /^\/\/ Written by `gatefold contracts` with TypeScript\. Do not edit it: run the command again\.\n\n/,
  );
  const declarations = [...text.matchAll(/^export type (\w+) = (.*)/gm)].map(([, name, first]) => `${name} ${first}`);
  assert.deepEqual(declarations, [
    'Date_id {',
    'T1_extends_2_string_boolean boolean;',
    'Inner1_of_Without_User_id {',
    'Without_User_id {',
    'Inner1_of_Without_User_id2 {',
    'Without_User_id2 {',
  ]);
  const at = (name: string, type: string) => readFileSync(join(cwd, 'controllers', name), 'utf8').lastIndexOf(type);
  assert.deepEqual(
    Object.entries(index?.entries ?? {}).map(([place, [name]]) => [place, name]),
    [
      [`AController.ts@${at('AController.ts', 'Without<')} name`, 'Without_User_id'],
      [`BController.ts@${at('BController.ts', 'Without<')} name`, 'Without_User_id2'],
      [`CController.ts@${at('CController.ts', '1 extends')} unsupported`, 'T1_extends_2_string_boolean'],
      [`DController.ts@${at('DController.ts', 'Date<')} name`, 'Date_id'],
    ],
  );
  const again = await contracts(t, cwd, ['--check', '--json']);
  const names = ['Without_User_id', 'Without_User_id2', 'T1_extends_2_string_boolean', 'Date_id'];
  assert.deepEqual(JSON.parse(again.out), { file: again.file, changed: false, types: names, refused: [] });
  assert.equal((await contracts(t, cwd)).out, 'contracts.gen.ts is current: 4 types\n');
  const { groups } = await loadHere({ settings: { controllersDir: join(cwd, 'controllers') } } as Job);
  assert.deepEqual(
    groups.map(({ ok, error }) => [ok, error]),
    groups.map(() => [true, undefined]),
  );
});

test('TypeScript 7 writes the same file as TypeScript 5', async (t) => {
  const extra = {
    'tsconfig.base.json': '{"compilerOptions":{"module":"nodenext","noLib":true,"types":[]}}',
    'tsconfig.json': '{"extends":"./tsconfig.base.json","include":["controllers","src"]}',
    'src/globals.d.ts': "interface ApiUser { pair: ['a', 1?]; kind: 'a' | 2 extends infer K ? K : never }",
    'controllers/CController.ts': taking('ApiUser'),
  };
  const texts: (string | undefined)[] = [];
  for (const version of ['typescript-5', 'typescript']) {
    const cwd = makeTypeScriptProject(t, { ...FILES, ...extra }, version);
    const { code, err, text, index } = await contracts(t, cwd);
    assert.deepEqual([code, err], [0, '']);
    assert.deepEqual(sourcesByName(index).ApiUser, [
      'config ../tsconfig.base.json',
      'config ../tsconfig.json',
      'file ../src/globals.d.ts',
      'file CController.ts',
    ]);
    texts.push(text);
  }
  assert.equal(texts[0], texts[1]);
});

test('contracts needs no tsconfig.json, and knows a type that is null with its own options', async (t) => {
  const cwd = makeTypeScriptProject(
    t,
    {
      'src/types.ts': 'export type Maybe<T> = T extends 1 ? string | null : undefined;',
      'src/globals.d.ts': 'interface Other {}',
      'controllers/AController.ts': taking('Maybe<1>', fromTypes('Maybe')),
      'controllers/lib/globals.d.ts': 'interface ApiUser {}',
    },
    'typescript',
  );
  rmSync(join(cwd, 'tsconfig.json'));
  const { code, err, text, index } = await contracts(t, cwd);
  assert.deepEqual([code, err], [0, '']);
  assert.match(text ?? '', /^export type Maybe_1 = null \| string;$/m);
  // Without a tsconfig.json, the folder of controllers is the project.
  const files = ['../src/types.ts', 'AController.ts', 'lib/globals.d.ts'];
  assert.deepEqual(
    sourcesByName(index).Maybe_1,
    files.map((name) => `file ${name}`),
  );
});

test('contracts names what each type was made from: its files, the packages that they use, and the configurations', async (t) => {
  const manifest = (name: string, version: string, more = {}) =>
    JSON.stringify({ name, version, types: 'i.d.ts', ...more });
  const cwd = makeTypeScriptProject(t, {
    'tsconfig.base.json': '{"compilerOptions":{"module":"nodenext","noLib":true,"types":[]}}',
    'tsconfig.json': '{"extends":"./tsconfig.base.json","include":["controllers","src"]}',
    'src/types.ts': `export * from './deep.ts';\n${TYPES}`,
    'src/deep.ts': 'export type Deep = 1;\n',
    'src/unused.ts': 'export type Unused = 1;\n',
    'src/globals.d.ts': 'interface ApiUser { name: "a" }\n',
    'src/more.ts': "export {};\ndeclare global { type Flag = import('flag').Flag }\n",
    'node_modules/flag/package.json': manifest('flag', '7.0.0'),
    'node_modules/flag/i.d.ts': 'export type Flag = 1;',
    'node_modules/shop/package.json': manifest('shop', '1.0.0', {
      dependencies: { core: '2', unread: '1' },
      peerDependencies: { peer: '3' },
    }),
    'node_modules/shop/i.d.ts':
      "import type { Core } from 'core';\nimport type { Peer } from 'peer';\nexport type Pack<T> = T extends 1 ? Core : { [K in keyof T]: Peer };",
    'node_modules/shop/node_modules/core/package.json': manifest('core', '2.0.0'),
    'node_modules/shop/node_modules/core/i.d.ts': 'export type Core = 1;',
    'node_modules/core/package.json': manifest('core', '1.0.0'),
    'node_modules/core/i.d.ts': 'export type Core = 0;',
    'node_modules/peer/package.json': manifest('peer', '3.0.0'),
    'node_modules/peer/i.d.ts': 'export type Peer = 2;',
    'node_modules/unread/package.json': manifest('unread', '4.0.0'),
    'node_modules/unread/i.d.ts': 'export type Unread = 2;',
    // A program writes this package, which has no version.
    'node_modules/.made/client/index.d.ts': 'export type Row<T> = T extends 1 ? "x" : "y";',
    'controllers/AController.ts': taking("Without<User, 'id'>", fromTypes('Without, User')),
    'controllers/BController.ts': taking("Pack<{ a: 'b' }>", "import type { Pack } from 'shop';\n"),
    'controllers/CController.ts': taking(
      'Row<1>',
      "import type { Row } from '../node_modules/.made/client/index.d.ts';\n",
    ),
    'controllers/DController.ts': taking('[ApiUser, Flag]'),
  });
  const { code, err, index } = await contracts(t, cwd);
  assert.deepEqual([code, err], [0, '']);
  const common = ['../node_modules/.made/client/index.d.ts', '../tsconfig.base.json', '../tsconfig.json'];
  const configs = common.map((name) => `config ${name}`);
  const globals = ['file ../src/globals.d.ts', 'file ../src/more.ts'];
  assert.deepEqual(sourcesByName(index), {
    Without_User_id: [
      ...[...configs, 'file ../src/deep.ts', ...globals, 'file ../src/types.ts'],
      ...['file AController.ts', 'package flag'],
    ],
    Pack_a_b: [
      ...[...configs, ...globals, 'file BController.ts', 'package flag'],
      ...['package peer', 'package shop', 'package shop/node_modules/core'],
    ],
    Row_1: [...configs, ...globals, 'file CController.ts', 'package flag'],
    ApiUser: [...configs, ...globals, 'file DController.ts', 'package flag'],
    Flag: [...configs, ...globals, 'file DController.ts', 'package flag'],
  });
  const versions: Record<string, string> = { flag: '7', peer: '3', shop: '1', 'shop/node_modules/core': '2' };
  for (const [kind, name, print] of index?.sources ?? []) {
    const text = () => digestOf(readFileSync(join(cwd, 'controllers', name), 'utf8'));
    assert.equal(print, kind === 'package' ? `${versions[name]}.0.0` : text(), name);
  }
});

test('contracts refuses a type that would lose a check, or that no JSON has, and names the place', async (t) => {
  const cwd = makeTypeScriptProject(t, {
    'src/types.ts': TYPES,
    'controllers/AController.ts': taking("Without<Tagged, 'id'>", fromTypes('Without, Tagged')),
    'controllers/BController.ts': taking("Without<Loose,\n  'big'>", fromTypes('Without, Loose')),
    'controllers/CController.ts': taking("Without<Loose, 'id'>['big']", fromTypes('Without, Loose')),
    'controllers/DController.ts': taking(
      "Without<Away, 'id'>",
      `import type { Away } from './away.ts';\n${fromTypes('Without')}`,
    ),
    // The name is that of the part of the next type that contains itself.
    'controllers/EController.ts': taking(
      "Inner1_of_Without<User, 'name'>",
      `type Inner1_of_Without<A, B> = A extends 1 ? A : B;\n${fromTypes('User')}`,
    ),
    'controllers/FController.ts': taking("Without<User, 'name'>", fromTypes('Without, User')),
  });
  const { code, out, err, index } = await contracts(t, cwd);
  assert.deepEqual([code, out], [1, 'Wrote contracts.gen.ts: 2 types\n']);
  const lines = err
    .trimEnd()
    .split('\n')
    .map((line) => line.replace('gatefold contracts: ', ''));
  assert.deepEqual(lines.splice(0, 3), [
    "AController.ts: Without<Tagged, 'id'> would lose the tag @minLength: write the type out, or infer it from the schema",
    "CController.ts: Without<Loose, 'id'>['big']: Without_Loose_id_big is bigint, which JSON has not",
    "FController.ts: Without<User, 'name'>: two types would have one name",
  ]);
  assert.match(lines[0] ?? '', /^DController\.ts does not load: .*Away is imported from \.\/away\.ts/);
  assert.deepEqual(lines.slice(1), ['BController.ts: Without_Loose_big.more is any, so it is not checked']);
  assert.deepEqual(
    Object.values(index?.entries ?? {}).map(([name]) => name),
    ['Without_Loose_big', 'Inner1_of_Without_User_name'],
  );
});

test('contracts names a file that does not load for another reason, and what is there stays', async (t) => {
  const cwd = makeTypeScriptProject(t, {
    ...FILES,
    'controllers/CController.ts': 'export default class {',
    'controllers/DController.ts': 'export default class D {\n  created(data: [...string[], 1]) {}\n}',
    'controllers/contracts.gen.ts': 'export type Old = 1;\n',
  });
  const failed = {
    code: 1,
    out: '',
    err: 'gatefold contracts: contracts.gen.ts is out of date. Run: gatefold contracts\n',
  };
  const checked = await contracts(t, cwd, ['--check']);
  assert.deepEqual({ code: checked.code, out: checked.out, err: checked.err }, failed);
  assert.equal(checked.text, 'export type Old = 1;\n');
  const { code, out, err, text } = await contracts(t, cwd, []);
  assert.deepEqual([code, out], [1, 'Wrote contracts.gen.ts: 2 types\n']);
  const [first, second, ...others] = err.split('\n');
  assert.match(first ?? '', /^gatefold contracts: CController\.ts does not load: /);
  assert.match(second ?? '', /DController\.ts does not load: .*elements after its rest .*; write the type out$/);
  assert.deepEqual(others, ['']);
  assert.match(text ?? '', /^export type Without_User_id = /m);
});

test('contracts writes a type out where a field of it is refused, because the field has type arguments', async (t) => {
  // A Node that strips types loads no file with an enum.
  const hasEnum = !process.features.typescript;
  const box = `type Box<T> = { v: T extends 'a' ? 1 : 2 };
interface Page<T> { rows: Box<T>[]; n: number }
${hasEnum ? 'enum Flag { A = 1 << 0, B = 1 << 1 }' : ''}
class Point { x = 0; note!: string }
`;
  const types = [
    "Box<'a'>",
    "{ p: Page<'b'> }",
    "{ [K in 'a' | 'b']: { of: K extends 'a' ? 1 : 2 } }",
    "{ [K in 'a' | 'b']: { of: K extends 'a' ? 1 : 2 } }['a']",
    'Point',
    ...(hasEnum ? ['{ f: Flag }'] : []),
  ];
  const fileOf = (i: number) => `controllers/A${i}Controller.ts`;
  const cwd = makeTypeScriptProject(t, Object.fromEntries(types.map((type, i) => [fileOf(i), taking(type, box)])));
  const { code, err, text = '' } = await contracts(t, cwd);
  assert.deepEqual([code, err], [0, '']);
  const declarations = [...text.matchAll(/^export type (\w+) = ([^;]*;)/gm)].map(([, name, body]) => [name, body]);
  assert.deepEqual(declarations, [
    ['Box_a', '{\n  v: 1;'],
    ...(hasEnum ? [['Flag', '1 | 2;']] : []),
    ['K_in_a_b_of_K_extends_a_1_2', '{\n  a: {\n    of: 1;'],
    ['K_in_a_b_of_K_extends_a_1_22', '{\n  a: {\n    of: 1;'],
    ['Page_b', '{\n  n: number;'],
    ['Point', '{\n  note: string;'],
  ]);
  const { groups } = await loadHere({ settings: { controllersDir: join(cwd, 'controllers') } } as Job);
  assert.deepEqual([...groups.map(({ error }) => error)], Array(types.length).fill(undefined));
  writeFileSync(join(cwd, fileOf(0)), `${taking("Box<'a'>", box)}\n`);
  const [stale] = (await loadHere({ settings: { controllersDir: join(cwd, 'controllers') } } as Job)).groups;
  assert.match(stale?.error ?? '', /contracts\.gen\.ts was made from another A0Controller\.ts; write the type out, or/);
});

test('contracts removes the file when no type needs TypeScript, and then there is nothing to do', async (t) => {
  const cwd = makeTypeScriptProject(t, {
    'controllers/AController.ts': taking('string'),
    'controllers/contracts.gen.ts': 'export type Old = 1;\n',
  });
  const first = await contracts(t, cwd);
  assert.deepEqual([first.code, first.out, first.text], [0, 'Wrote contracts.gen.ts: 0 types\n', undefined]);
  const second = await contracts(t, cwd, ['--check']);
  assert.deepEqual([second.code, second.out, second.text], [0, 'No type needs TypeScript\n', undefined]);
});

test('contracts begins again while packages are being installed, three times at most', async (t) => {
  const config = '{"compilerOptions":{"module":"nodenext","noLib":true,"types":[]}}';
  const manifest = (version: number) => JSON.stringify({ name: 'shop', version: `${version}.0.0`, types: 'i.d.ts' });
  const cwd = makeTypeScriptProject(t, {
    'node_modules/shop/package.json': manifest(0),
    'node_modules/shop/i.d.ts': 'export type Pack<T> = T extends 1 ? "a" : "b";',
    'controllers/AController.ts': taking('Pack<1>', "import type { Pack } from 'shop';\n"),
  });
  const install = async (expectedCode: number, isDone: (count: number) => boolean) => {
    let count = 0;
    const answer = (job: Job) => {
      // The second inspection of a run is after the types were made.
      if (++count % 2 === 0 && !isDone(count))
        writeFileSync(join(cwd, 'node_modules/shop/package.json'), manifest(count));
      return loadHere(job);
    };
    const { code, out, index } = await contracts(t, cwd, [], answer);
    assert.deepEqual([code, out], [expectedCode, 'Wrote contracts.gen.ts: 1 type\n']);
    return [count, index?.sources.find(([kind]) => kind === 'package')];
  };
  assert.deepEqual(await install(0, (count) => count > 2), [4, ['package', 'shop', '2.0.0']]);
  assert.deepEqual(await install(1, () => false), [6, ['package', 'shop', '4.0.0']]);
  let count = 0;
  await contracts(t, cwd, [], (job) => {
    if (++count === 2) writeFileSync(join(cwd, 'tsconfig.json'), config);
    return loadHere(job);
  });
  assert.equal(count, 4, 'a configuration was written');
});

test('contracts asks for a TypeScript that it can ask', async (t) => {
  const cwd = makeProject(t, { 'controllers/AController.ts': taking('1 extends 2 ? 3 : 4') });
  const remedy = ' Run beside the controllers: npm install --save-dev typescript\n';
  const missing = await contracts(t, cwd);
  assert.equal(missing.code, 1);
  assert.match(
    missing.err,
    /^gatefold contracts: No TypeScript 5\.9, 6 or 7 can be asked: Cannot find module 'typescript'/,
  );
  assert.ok(missing.err.endsWith(remedy), missing.err);
  mkdirSync(join(cwd, 'node_modules/typescript'), { recursive: true });
  writeFileSync(join(cwd, 'node_modules/typescript/index.js'), 'exports.version = "8";');
  const strange = await contracts(t, cwd);
  assert.match(strange.err, /can be asked: Cannot find module 'typescript\/unstable\/sync'/);
  assert.ok(strange.err.endsWith(remedy), strange.err);
});

test('a made type is no source of another one, and a controller does not import it', async (t) => {
  const head = "import type { Without_User_id } from '../controllers/contracts.gen.ts';\n";
  const cwd = makeTypeScriptProject(t, {
    ...FILES,
    // An empty file is no module, so its declarations would be global.
    'controllers/contracts.gen.ts': '\n',
    'src/types.ts': `${head}${TYPES}export const users: Without_User_id[] = [];\nexport type Own = Without_User_id & User;\n`,
  });
  const first = await contracts(t, cwd);
  assert.deepEqual([first.code, first.out], [0, 'Wrote contracts.gen.ts: 2 types\n']);
  assert.deepEqual(
    sourcesByName(first.index).Without_User_id?.filter((source) => source.includes('.gen.')),
    [],
  );
  assert.equal((await contracts(t, cwd, ['--check'])).code, 0);
  writeFileSync(join(cwd, 'controllers/CController.ts'), taking('Own', fromTypes('Own')));
  writeFileSync(join(cwd, 'controllers/DController.ts'), taking("Without<Own, 'id'>", fromTypes('Own, Without')));
  const result = "import type { Without_User_id } from './contracts.gen.ts';\n";
  writeFileSync(
    join(cwd, 'controllers/EController.ts'),
    `${result}export default class { index(): Without_User_id[] { return []; } }\n`,
  );
  const { code, err } = await contracts(t, cwd);
  assert.equal(code, 1);
  assert.match(err, /EController\.ts does not load: .*which Gatefold alone reads/);
  assert.match(
    err,
    /CController\.ts does not load: .*Without_User_id is imported from \.\.\/controllers\/contracts\.gen\.ts, which Gatefold alone reads; write the type that it was made for$/m,
  );
  assert.match(err, /DController\.ts: Without<Own, 'id'> would lose the sources of a type in contracts\.gen\.ts/);
});

// `gatefold contracts`: TypeScript writes out the types that the reader refuses, except where a check would be lost.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { SERVER, write } from '../support/cluster-server.ts';
import { makeProject, type Ran, runProcess } from '../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLI = SERVER.replace(/server\.js$/, 'cli.js');
const HEAD = "import type { Column, Event, Except, load, Tagged, tagged, User } from '../src/types.ts';\n";
const operation = (type: string, head = HEAD) =>
  `${head}export default class { created(data: ${type}) { return { data }; } }\n`;

const TYPES = `import type { Pack } from 'shop';
export type Except<T, K> = { [P in keyof T as P extends K ? never : P]: T[P] };
export interface User { id: number; name: string; tags: string[]; when?: Date; '#text'?: string; kind: 'a' | 'b' | null }
export interface Tagged { id: number; /** @minLength 3 */ name: string }
export type Event = { type: 'a'; x: number } | { type: 'b'; y: bigint };
export type Column<T> = T extends (infer U)[] ? U : never;
export interface Tree { name: string; kids: Tree[] }
export const load = async () => ({ id: 1, on: true });
export class Hidden { a = 1; private b = 2; }
export class Secret { a = 1; readonly #b = 2; }
export const schema = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }), types: {} as { output: { name: string } } } };
export type Out<S extends { '~standard': { types: { output: unknown } } }> = S['~standard']['types']['output'];
export const tagged = 1;`;

const FILES = {
  'package.json': '{"name":"shop","type":"module"}',
  'tsconfig.json':
    '{"compilerOptions":{"target":"es2023","module":"nodenext","allowImportingTsExtensions":true,"noEmit":true,"strict":false,"types":[]},"include":["controllers","src"]}',
  'src/types.ts': TYPES,
  'src/globals.d.ts': 'interface ApiUser { name: string }',
  'node_modules/shop/package.json': '{"name":"shop","version":"1.0.0","types":"index.d.ts"}',
  'node_modules/shop/index.d.ts':
    'export type Pack<T> = { [K in keyof T]: { v: T[K] } }["length" & keyof T] extends never ? T : T;',
  'controllers/AController.ts': operation("Except<User, 'id'>"),
  'controllers/BController.ts': operation("Extract<Event, { type: 'a' }>"),
  'controllers/CController.ts': operation('{ list: Column<User[]>; ids: Awaited<ReturnType<typeof load>> }'),
  'controllers/DController.ts': operation('ApiUser', ''),
  'controllers/EController.ts': operation(
    'Pack<Tree>',
    "import type { Pack } from 'shop';\nimport type { Tree } from '../src/types.ts';\n",
  ),
  'controllers/PlainController.ts': operation('User'),
};

function makeTypeScriptProject(
  t: Parameters<typeof makeProject>[0],
  files: Readonly<Record<string, string>>,
  version = 'typescript',
): string {
  const cwd = makeProject(t, files);
  mkdirSync(join(cwd, 'node_modules'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', version), join(cwd, 'node_modules/typescript'));
  return cwd;
}

const contracts = (cwd: string, ...words: string[]): Promise<Ran> => runProcess(['contracts', ...words], { cwd });

test('the made types are read, current, checked, and removed when nothing needs them', async (t) => {
  const cwd = makeTypeScriptProject(t, FILES);
  const file = join(cwd, 'controllers/contracts.gen.ts');
  assert.match((await contracts(cwd, '--check')).err, /contracts\.gen\.ts is out of date\. Run: gatefold contracts/);
  assert.equal(existsSync(file), false);
  assert.match((await contracts(cwd)).out, /^Wrote contracts\.gen\.ts: 6 types\n$/);
  rmSync(file);
  // No machine answers at this address. The file is there before the first machine is asked.
  assert.equal((await runProcess(['deploy', '127.0.0.1:/nowhere'], { cwd })).code, 1);
  const text = readFileSync(file, 'utf8');
  assert.match(
    text,
    /export type Except_User_id = \{\n {2}"#text"\?: string \| undefined;\n {2}kind: "a" \| "b" \| null;\n {2}name: string;\n {2}tags: Array<string>;\n {2}when\?: Date \| undefined;\n\};/,
  );
  assert.match(
    text,
    /export type Inner1_of_Pack_Tree = \{\n {2}kids: Array<Inner1_of_Pack_Tree>;\n {2}name: string;\n\};/,
  );
  const { out: routes } = await runProcess(['routes'], { cwd });
  for (const part of [
    'data { #text?, kind, name, tags, when? }',
    'data { type, x }',
    'data { list, ids }',
    'data { kids, name }',
  ])
    assert.ok(routes.includes(part), `${part} in ${routes}`);
  // Another version of TypeScript writes the same file.
  rmSync(join(cwd, 'node_modules/typescript'));
  symlinkSync(join(ROOT, 'node_modules/typescript-5'), join(cwd, 'node_modules/typescript'));
  assert.deepEqual(await contracts(cwd, '--check'), {
    code: 0,
    out: 'contracts.gen.ts is current: 6 types\n',
    err: '',
  });

  writeFileSync(join(cwd, 'src/types.ts'), TYPES.replace('name: string; tags', 'name: string; more: 1; tags'));
  assert.match(
    (await runProcess(['routes'], { cwd })).err,
    /was made from another \.\.\/src\/types\.ts; write the type out, or run gatefold contracts/,
  );
  assert.equal((await contracts(cwd, '--check')).code, 1);
  assert.equal((await contracts(cwd)).code, 0);
  assert.match(readFileSync(file, 'utf8'), /more: 1;/);

  writeFileSync(join(cwd, 'node_modules/shop/index.d.ts'), 'export type Pack<T> = { packed: T };');
  assert.equal((await contracts(cwd, '--check')).code, 1);
  for (const name of 'ABCDE')
    writeFileSync(join(cwd, `controllers/${name}Controller.ts`), operation('{ a: string }', ''));
  assert.equal((await contracts(cwd)).code, 0);
  assert.equal(existsSync(file), false);
});

test('gatefold dev has the types written before a generation serves: at the start, after an edit and for a new file', async (t) => {
  const { 'controllers/AController.ts': controller, 'src/types.ts': types, 'tsconfig.json': config } = FILES;
  const cwd = makeTypeScriptProject(t, {
    'controllers/AController.ts': controller,
    'src/types.ts': types,
    'tsconfig.json': config,
  });
  const env = { ...process.env, PORT: '0', HOST: '127.0.0.1', DATA_DIR: join(cwd, 'data'), CONTROLLERS_DIR: undefined };
  const child = spawn(process.execPath, [CLI, 'dev'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  const lines = new EventEmitter();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      lines.emit('text');
    });
  const madeAndServed = async () => {
    while (!/"contracts-written"[\s\S]*"generation-serving"/.test(output)) await once(lines, 'text');
    output = '';
  };
  const answer = async (name: string, body: object) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const response = await fetch(`${url}/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, text: await response.text() };
  };
  // The address is on another stream than the log.
  while (!output.includes('"generation-serving"')) await once(lines, 'text');
  while (!output.includes('gatefold listening on')) await once(lines, 'text');
  const url = /^gatefold listening on (http:\S+)$/m.exec(output)?.[1];
  output = '';
  const user = { name: 'a', tags: [], kind: null };
  assert.equal((await answer('a', user)).status, 200);
  assert.match((await answer('a', { ...user, kind: 'c' })).text, /\/kind/);
  const edited = types.replace("kind: 'a'", "kind: 'c'");
  write(cwd, 'src/types.ts', edited);
  await madeAndServed();
  // The old worker still answers on its open connections.
  while ((await answer('a', { ...user, kind: 'c' })).status !== 200);
  write(cwd, 'controllers/BController.ts', operation("Except<User, 'kind'>"));
  assert.match((await answer('b', {})).text, /run gatefold contracts/);
  await madeAndServed();
  while (!(await answer('b', {})).text.includes('/id'));
});

test('gatefold dev makes the types again at its start, because a package can change under its version', async (t) => {
  const cwd = makeTypeScriptProject(t, {
    ...FILES,
    ...Object.fromEntries([...'ABCDE'].map((name) => [`controllers/${name}Controller.ts`, operation('User')])),
    'controllers/contracts.gen.ts': 'export type Old = 1;\n',
  });
  const env = { ...process.env, PORT: '0', HOST: '127.0.0.1', DATA_DIR: join(cwd, 'data'), CONTROLLERS_DIR: undefined };
  const child = spawn(process.execPath, [CLI, 'dev'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      child.emit('text');
    });
  while (!output.includes('"contracts-written"')) await once(child, 'text');
  assert.equal(existsSync(join(cwd, 'controllers/contracts.gen.ts')), false);
});

describe('a type is not written out', () => {
  const rows: [type: string, expected: RegExp, head?: string][] = [
    ["Except<Tagged, 'id'>", /would lose the tag @minLength/],
    [
      "Except<Local, 'a'>",
      /would lose the tag @minimum/,
      `${HEAD}/** @minimum 3 */ type N = number;\ninterface Local { a: 1; b: N }\n`,
    ],
    [
      "Except<Local, 'a'>",
      /would lose the tag @default/,
      `${HEAD}interface Local { a: 1; /** @default 3 */ b: number }\n`,
    ],
    [
      "Except<Local, 'a'>",
      /would lose the constraint Int/,
      `${HEAD}import type { Int } from 'gatefold';\ninterface Local { a: 1; b: Int[] }\n`,
    ],
    [
      "Except<Out<typeof schema>, 'id'>",
      /would lose the schema schema/,
      "import type { Except, Out, schema } from '../src/types.ts';\n",
    ],
    ['Hidden extends object ? Hidden : never', /is private/, "import type { Hidden } from '../src/types.ts';\n"],
    ['Secret extends object ? Secret : never', /is private/, "import type { Secret } from '../src/types.ts';\n"],
    [
      "Except<Dto, 'x'>",
      /would lose a decorator/,
      `${HEAD}declare function IsEmail(): any;\ndeclare class Dto { @IsEmail() a: string; }\n`,
    ],
    ["Extract<Event, { type: 'b' }>", /\.y is bigint, which JSON has not/],
    [
      "Except<Missing, 'x'>",
      /is not resolved|is any/,
      "import type { Except } from '../src/types.ts';\nimport type { Missing } from 'nowhere';\n",
    ],
  ];
  for (const version of ['typescript', 'typescript-5'])
    test(version, async (t) => {
      const controllers = rows.map(([type, , head], i) => [`controllers/X${i}Controller.ts`, operation(type, head)]);
      const files = {
        'tsconfig.json': FILES['tsconfig.json'],
        'src/types.ts': TYPES,
        'node_modules/gatefold/package.json': '{"name":"gatefold","version":"1.0.0","types":"i.d.ts"}',
        'node_modules/gatefold/i.d.ts': 'export type Int = number;',
        ...Object.fromEntries(controllers),
      };
      const cwd = makeTypeScriptProject(t, files, version);
      const { code, err } = await contracts(cwd);
      assert.equal(code, 1);
      for (const [i, [type, expected]] of rows.entries())
        assert.match(err.split('\n').find((line) => line.includes(` X${i}Controller.ts`)) ?? '', expected, type);
      assert.equal(existsSync(join(cwd, 'controllers/contracts.gen.ts')), false);
    });
});

test('a file that does not load for another reason is named, because its types are unknown', async (t) => {
  const cwd = makeTypeScriptProject(t, { 'controllers/AController.ts': 'export default class {' });
  const { code, out, err } = await contracts(cwd);
  assert.equal(code, 1);
  assert.equal(out, 'contracts.gen.ts is current: 0 types\n');
  assert.match(err, /AController\.ts does not load: /);
  assert.equal((await contracts(cwd, '--check')).code, 1);
});

test('without a TypeScript that it can ask, the command says what to install', async (t) => {
  const cwd = makeProject(t, {
    'controllers/AController.ts': FILES['controllers/AController.ts'],
    'src/types.ts': TYPES,
  });
  const { code, err } = await contracts(cwd);
  assert.equal(code, 1);
  assert.match(err, /can be asked: Cannot find module 'typescript'.* Run beside the controllers: npm install/);
});

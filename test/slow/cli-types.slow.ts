// `gatefold types`: the declarations make the same client as the controllers, and a front end needs nothing else.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { isDistCurrent } from '../../build.mjs';
import { makeProject, type Ran, runProcess } from '../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLASS = `export default class {
  index(): { ok: boolean } { return { ok: true }; }
}`;

const THING = `import { type ControllerParams, type DateTime, type EventStream, eventStream, type Int, Reply } from 'gatefold';
import { createHash } from 'node:crypto';
import type { State, Tree } from '../lib/shapes.ts';

/** An item of an order. */
export interface Item {
  readonly book: string;
  /** @minimum 0 */
  price: number;
}
interface Order extends NewOrder {
  id: Int;
  placed: Date;
  at: DateTime;
  note?: string;
  parent: Order | null;
  pair: [number, string?];
  rest: [string, ...number[]];
  kinds: Record<string, Item[]>;
  byNumber: Record<number, string>;
  extra: Item & { size: 'small' | 'large' };
  'odd-name': boolean;
  anything: unknown;
  total?: never;
}
interface NewOrder {
  items: Item[];
  due?: Date;
  state: State;
}
type Page<T> = { list: T[]; next: Int | null };

/** Things of every kind. */
export default class ThingController {
  static operations = { made: { status: 201 }, raw: { body: 'stream' } } as const;
  /** Lists a page. The state is optional. */
  index(query: { page?: Int; state?: State; day?: Date }): Promise<Page<Order>> { throw query; }
  created(order: NewOrder): Reply<201, Order> { throw order; }
  /** @deprecated */
  red(_: unknown, params: ControllerParams<{ query: { dryRun?: boolean } }>): void { throw params; }
  patch(change?: Partial<NewOrder>): Order | undefined { throw change; }
  deleted(): true { return true; }
  find(filter: { name: string } | { id: Int }): Order | null { throw filter; }
  tag(_: unknown, params: ControllerParams): string { return String(params); }
  flag(): boolean { return createHash('sha1') === undefined; }
  count(): number | null { return 1; }
  nothing(): null { return null; }
  either(): ({ a: string } | { b: number })[] { return []; }
  open(): { a: string; [name: string]: string } { throw 1; }
  any(): unknown { return 1; }
  made(): Item { throw 1; }
  tree(tree: Tree): Tree { return tree; }
  upload(form: { title: string; cover: File; pages?: File[] }): { size: number } { throw form; }
  raw(bytes: Blob): { size: number } { throw bytes; }
  'GET {id}'(_: unknown, params: ControllerParams<{ path: { id: Int } }>): Promise<Order> { throw params; }
  'GET {id}/items/{item}'(): Item { throw 1; }
  'GET {id}/lines'(query: { from: Int }, params: ControllerParams<{ path: { id: Int } }>): Item[] { throw [query, params]; }
  'PATCH {id}'(change: { note?: string }, params: ControllerParams<{ path: { id: Int }; query: { notify?: boolean } }>): Order { throw [change, params]; }
  'GET files/{path*}'(): Blob { throw 1; }
  'GET export.csv'(): ReadableStream { throw 1; }
  'POST {id}/send'(): Reply<201, Order> | Reply<202, { later: Date }> { throw 1; }
  'DELETE {id}'(): Promise<Reply<204>> { throw 1; }
  'GET {id}/state'(): Order | Reply<304> { throw 1; }
  'GET old'(): Reply<number, undefined> { throw 1; }
  'GET some'(): Reply<200, Item | undefined> { throw 1; }
  'GET events'(): EventStream<{ placed: Date }> { return eventStream((async function* () {})()); }
}
`;
const FILES = {
  'controllers/ThingController.ts': THING,
  'controllers/BookController.ts': `interface Item { title: string } interface Reply { to: Item }
    export default class BookController {
      'GET'(): Item[] { return []; }
      'PUT'(item: Item): Reply { return { to: item }; }
    }`,
  'lib/shapes.ts': `export type State = 'open' | 'paid' | 7;
    export interface Tree { name: string; children: Tree[]; }`,
};

const SAME = `import type { Client } from 'gatefold/client';
import type { Api } from './web/api.ts';
import type BookController from './controllers/BookController.ts';
import type ThingController from './controllers/ThingController.ts';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Call<F> = F extends (...args: infer Args) => infer Result ? [args: Args, result: Awaited<Result>] : never;
type Compared<A, B> = { [Name in keyof A]: Name extends keyof B ? Same<Call<A[Name]>, Call<B[Name]>> : 'missing' };
type Equal<A> = { [Name in keyof A]: true };
type Own = Client<{ thing: typeof ThingController; book: typeof BookController }>;
type Written = Client<Api>;
export const thing = (compared: Compared<Own['thing'], Written['thing']>): Equal<Own['thing']> => compared;
export const book = (compared: Compared<Own['book'], Written['book']>): Equal<Own['book']> => compared;
export const back = (compared: Compared<Written['thing'], Own['thing']>): Equal<Written['thing']> => compared;
export const pages: Same<keyof Own, keyof Written> = true;
`;
const FRONT_END = `import { createClient } from 'gatefold/client';
import type { Api, BookItem, ThingOrder } from './api.ts';
const api = createClient<Api>('');
export const order: Promise<{ placed: string; due?: string }> = api.thing['GET {id}']({ path: { id: 7 } });
export const items: BookItem[] = await api.book['GET']();
export type Wanted = ThingOrder['state'];
// @ts-expect-error: the price is no text
await api.thing.created({ items: [{ book: 'Emma', price: '7' }], state: 'open' });
`;

test('gatefold types declares the same client as the controllers', async (t) => {
  const cwd = makeProject(t, FILES);
  link(cwd);
  const { code, out, err } = await runProcess(['types', '--out', 'web/api.ts'], { cwd });
  assert.deepEqual([code, out], [0, 'Wrote web/api.ts\n']);
  assert.equal(
    err,
    'gatefold types: thing any: its result has no type in the source, so it is unknown: annotate it, or write a schema as result\n',
  );
  const text = readFileSync(join(cwd, 'web/api.ts'), 'utf8');
  assert.doesNotMatch(text.replaceAll(/^\/\/.*$/gm, ''), /\bimport\b/);
  assert.match(text, /\/\*\* An item of an order\. \*\/\nexport interface ThingItem \{/);
  assert.match(text, /Lists a page\n +\*\n +\* The state is optional\./);
  assert.match(text, /\/\*\* @deprecated \*\/\n +red\(/);
  writeFileSync(join(cwd, 'same.ts'), SAME);
  assert.equal(compile(cwd, ['same.ts'], { types: ['node'], allowImportingTsExtensions: true }), '');
});

test('a front end without the types of Node compiles the declarations', async (t) => {
  const cwd = makeProject(t, FILES);
  link(cwd);
  assert.equal((await runProcess(['types', '--out', 'web/api.ts'], { cwd })).code, 0);
  writeFileSync(join(cwd, 'web/main.ts'), FRONT_END);
  const options = {
    types: [],
    lib: ['ES2022', 'DOM', 'DOM.AsyncIterable'],
    moduleResolution: 'bundler',
    module: 'esnext',
  };
  assert.equal(compile(cwd, ['web/main.ts'], { ...options, allowImportingTsExtensions: true }), '');
});

describe('gatefold types', () => {
  const run = (cwd: string, ...words: string[]): Promise<Ran> => runProcess(['types', ...words], { cwd });

  test('--check reports an outdated file and writes nothing', async (t) => {
    const cwd = makeProject(t, { 'controllers/AController.ts': CLASS });
    const missing = await run(cwd, '--check', '--out', 'api.d.ts');
    assert.deepEqual(
      [missing.code, missing.err],
      [1, 'gatefold types: api.d.ts is out of date. Run: gatefold types --out api.d.ts\n'],
    );
    assert.equal(statSync(join(cwd, 'api.d.ts'), { throwIfNoEntry: false }), undefined);
    assert.equal((await run(cwd, '--out', 'api.d.ts')).out, 'Wrote api.d.ts\n');
    const text = readFileSync(join(cwd, 'api.d.ts'), 'utf8');
    assert.equal((await run(cwd)).out, text);
    writeFileSync(join(cwd, 'api.d.ts'), text.replaceAll('\n', '\r\n'));
    assert.deepEqual(await run(cwd, '--check', '--out', 'api.d.ts'), {
      code: 0,
      out: 'api.d.ts is current\n',
      err: '',
    });
    writeFileSync(join(cwd, 'controllers/AController.ts'), CLASS.replace('boolean', 'boolean; more?: string'));
    assert.equal((await run(cwd, '--check', '--out', 'api.d.ts')).code, 1);
    assert.equal((await run(cwd, '--check')).code, 2);
  });

  test('--out reports why the file cannot be read or written', async (t) => {
    const cwd = makeProject(t, { 'controllers/AController.ts': CLASS });
    symlinkSync('nowhere/api.d.ts', join(cwd, 'link.d.ts'));
    const ran = await Promise.all(['controllers', 'link.d.ts'].map((out) => run(cwd, '--out', out)));
    assert.deepEqual(
      ran.map(({ code, err }) => [code, err.replace(cwd, '')]),
      [
        [1, 'gatefold types: Cannot read /controllers: it is a folder\n'],
        [1, 'gatefold types: Cannot write /link.d.ts: it does not exist\n'],
      ],
    );
  });

  test('writes nothing when the service file does not load', async (t) => {
    const cwd = makeProject(t, {
      'controllers/service.mjs': 'export default {',
      'controllers/v2/AController.ts': CLASS,
    });
    const { code, err } = await run(cwd, '--out', 'api.d.ts');
    assert.equal(code, 1);
    assert.match(err, /^gatefold types: controllers\/service\.mjs\S* does not load: SyntaxError/);
    assert.equal(statSync(join(cwd, 'api.d.ts'), { throwIfNoEntry: false }), undefined);
  });

  test('writes nothing when a controller does not load', async (t) => {
    const cwd = makeProject(t, {
      'controllers/AController.ts': CLASS,
      'controllers/BController.ts': 'export default {',
    });
    const { code, err } = await run(cwd, '--out', 'api.d.ts');
    assert.equal(code, 1);
    assert.match(err, /^gatefold types: controllers\/BController\.ts\S* does not load: SyntaxError/);
    assert.equal(statSync(join(cwd, 'api.d.ts'), { throwIfNoEntry: false }), undefined);
  });
});

function link(project: string): void {
  assert.ok(isDistCurrent(), 'dist is older than src. Run: npm run build');
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/gatefold'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'));
}

/** Returns the compiler's errors. */
function compile(cwd: string, files: readonly string[], options: object): string {
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    ...options,
  };
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  return spawnSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', cwd], { encoding: 'utf8' })
    .stdout;
}

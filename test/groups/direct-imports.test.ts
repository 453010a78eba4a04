// Direct imports: Node searches only for the first controller of a folder, and reads none of the controllers. Every
// import has the same result as without direct imports, also when other hooks of imports exist. Each test runs in a new
// process, because hooks last as long as their process, and `--import tsx` has hooks, too.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { realpathSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFolder, write } from '../support/folder.ts';

/** A test needs a Node that runs the TypeScript of src without `tsx`. */
const skip =
  typeof module.registerHooks === 'function' && process.features.typescript === 'strip'
    ? false
    : 'this Node has no hooks, or no TypeScript';
const SOURCE = new URL('../../src/', import.meta.url).href;

/** Loads the files in a process, and then the files of `later` after the end of direct imports. */
const SCRIPT = `
import module from 'node:module';
const [dir, files, later] = JSON.parse(process.argv[2]);
const { createModuleLoader } = await import('${SOURCE}groups/module-loader.ts');
const { register } = module;
const searched = [];
const read = [];
const add = (list, url) => url.startsWith('file://' + dir) && list.push(url.slice(8 + dir.length));
module.registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    add(searched, found.url);
    return found.url.endsWith('/moved.mjs') ? { ...found, url: found.url + '?moved' } : found;
  },
  load(url, context, next) {
    add(read, url);
    return next(url, context);
  },
});
const modules = createModuleLoader();
modules.startDirectImports();
const results = {};
const load = async (file) => {
  try {
    const { default: value, url } = await modules.load(dir + '/' + file, 0);
    results[file] = [value, url, modules.textOf(dir + '/' + file)];
  } catch (error) {
    results[file] = error.message;
  }
};
for (const file of files) await load(file);
modules.stopDirectImports();
const isRestored = module.register === register;
for (const file of later) await load(file);
const closure = modules.closure().map(({ path, fingerprint }) => [path.slice(dir.length + 1), fingerprint]);
process.stdout.write(JSON.stringify({ searched, read, results, isRestored, closure }));
process.exit(0);
`;

interface Outcome {
  /** The files that Node has searched for. */
  readonly searched: readonly string[];
  /** The files that Node has read. */
  readonly read: readonly string[];
  /** For each file: its default export, its `import.meta.url` and its text, or the message of its error. */
  readonly results: Readonly<Record<string, readonly [value: unknown, url: string, text: string] | string>>;
  readonly isRestored: boolean;
  readonly closure: readonly (readonly [path: string, fingerprint: string])[];
}

function load(dir: string, files: readonly string[], later: readonly string[] = [], options: string[] = []): Outcome {
  const script = join(dir, '..', 'script.mjs');
  writeFileSync(script, SCRIPT);
  const parameters = ['--no-warnings', ...options, script, JSON.stringify([dir, files, later])];
  const env = { ...process.env, NODE_OPTIONS: '' };
  return JSON.parse(execFileSync(process.execPath, parameters, { encoding: 'utf8', env }));
}

const exportOf = ({ results }: Outcome, file: string): unknown =>
  Array.isArray(results[file]) ? results[file][0] : results[file];

/** A module that exports its name and its own URL. */
const plain = (name: string): string => `export default '${name}';\nexport const { url } = import.meta;\n`;

describe('direct imports', { skip }, () => {
  test('let Node search once per folder and extension, and end with the load', (t) => {
    const dir = createFolder(t, {
      ...{
        'a.ts': `const a: string = 'a';\nexport default a;\nexport const { url } = import.meta;\n`,
        'b.ts': plain('b'),
      },
      ...{
        'c.mjs': plain('c'),
        'd.mjs': `import e from './e.ts';\nexport default e;\nexport const { url } = import.meta;\n`,
      },
      ...{ 'e.ts': plain('e'), 'f.ts': plain('f'), 'v2/g.ts': plain('g'), 'v2/h.ts': plain('h') },
    });
    const outcome = load(dir, ['a.ts', 'b.ts', 'c.mjs', 'd.mjs', 'e.ts', 'v2/g.ts', 'v2/h.ts'], ['f.ts']);
    // d.mjs imports e.ts, and Node searches for that import as usual.
    assert.deepEqual(outcome.searched, ['a.ts', 'c.mjs', 'e.ts', 'v2/g.ts', 'f.ts']);
    assert.deepEqual(outcome.read, ['e.ts', 'f.ts']);
    for (const [file, result] of Object.entries(outcome.results)) {
      assert.equal(result[1], pathToFileURL(join(dir, file)).href);
      assert.equal(result[0], file === 'd.mjs' ? 'e' : /(\w)\.\w+$/.exec(file)?.[1]);
    }
    assert.equal(outcome.results['b.ts']?.[2], plain('b'));
    assert.equal(outcome.isRestored, true);
    assert.deepEqual(outcome.closure.map(([path]) => path).sort(), Object.keys(outcome.results).sort());
    assert.ok(outcome.closure.every(([, fingerprint]) => /^\d+:\d+:\d+:/.test(fingerprint)));
  });

  test('apply to one import each, and keep the text that runs', (t) => {
    const ownText = `import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL(import.meta.url), '');\n${plain('b')}`;
    const dir = createFolder(t, { 'a.mjs': plain('a'), 'b.mjs': ownText });
    write(dir, 'c.mjs', `export { default, url } from '${pathToFileURL(join(dir, 'a.mjs')).href}';\n`);
    const outcome = load(dir, ['a.mjs', 'b.mjs', 'c.mjs']);
    assert.deepEqual([outcome.searched, outcome.read], [['a.mjs', 'a.mjs'], []]);
    assert.equal(outcome.results['b.mjs']?.[2], ownText);
    assert.equal(exportOf(outcome, 'c.mjs'), 'a');
  });

  test('take no format from a file that a hook resolves to another URL', (t) => {
    const dir = createFolder(t, { 'moved.mjs': plain('moved'), 'b.mjs': plain('b'), 'c.mjs': plain('c') });
    const outcome = load(dir, ['moved.mjs', 'b.mjs', 'c.mjs']);
    assert.deepEqual(outcome.searched, ['moved.mjs', 'b.mjs']);
    assert.deepEqual(outcome.read, ['moved.mjs?moved']);
  });

  test('skip CommonJS files and files below a package.json without a type', (t) => {
    const text = 'module.exports = 1;\n';
    const dir = createFolder(t, {
      ...{ 'old/package.json': '{"type":"commonjs"}', 'old/a.ts': text, 'old/b.ts': text, 'old/c.js': text },
      ...{
        'old/d.js': text,
        'any/package.json': '{}',
        'any/a.js': text,
        'any/b.js': plain('b'),
        'any/c.ts': plain('c'),
      },
    });
    const files = ['old/a.ts', 'old/b.ts', 'old/c.js', 'old/d.js', 'any/a.js', 'any/b.js', 'any/c.ts'];
    const outcome = load(dir, files);
    assert.deepEqual([outcome.searched, outcome.read], [files, files]);
    assert.deepEqual(
      files.map((file) => exportOf(outcome, file)),
      [1, 1, 1, 1, 1, 'b', 'c'],
    );
  });

  test('strip a byte order mark, and refuse a large file, a named pipe and a missing file', (t) => {
    const dir = createFolder(t, { 'a.mjs': plain('a'), 'b.mjs': `\uFEFF#!/usr/bin/env node\n${plain('b')}` });
    write(dir, 'c.mjs', ' '.repeat(5 << 20));
    execFileSync('mkfifo', [join(dir, 'd.mjs')]);
    const outcome = load(dir, ['a.mjs', 'b.mjs', 'c.mjs', 'd.mjs', 'e.mjs']);
    assert.deepEqual([outcome.searched, outcome.read], [['a.mjs'], []]);
    assert.equal(exportOf(outcome, 'b.mjs'), 'b');
    assert.match(String(outcome.results['c.mjs']), /c\.mjs has 5,242,880 bytes and is not read/);
    assert.match(String(outcome.results['d.mjs']), /d\.mjs is a named pipe and is not read/);
    assert.match(String(outcome.results['e.mjs']), /ENOENT.*e\.mjs/);
    assert.deepEqual(outcome.closure.at(-1), ['e.mjs', 'absent']);
  });

  test('end when a controller registers hooks with module.register', (t) => {
    const hooks = `export const load = async (url, context, next) => {
  const loaded = await next(url, context);
  return url.endsWith('/c.mjs') ? { ...loaded, source: "export default 'changed'" } : loaded;
}`;
    const register = `import { register } from 'node:module';\nregister(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});\n`;
    const dir = createFolder(t, { 'a.mjs': plain('a'), 'b.mjs': register + plain('b'), 'c.mjs': plain('c') });
    const outcome = load(dir, ['a.mjs', 'b.mjs', 'c.mjs'], [], ['--no-deprecation']);
    assert.equal(exportOf(outcome, 'b.mjs'), 'b');
    assert.equal(exportOf(outcome, 'c.mjs'), 'changed');
  });

  test('call the hooks that a controller registers with module.registerHooks', (t) => {
    const head = `import { registerHooks } from 'node:module';
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    return specifier.endsWith('/c.mjs') ? { ...found, format: 'module-typescript' } : found;
  },
  load(url, context, next) {
    const loaded = next(url, context);
    return url.endsWith('/d.mjs') ? { ...loaded, source: "export default 'changed'" } : loaded;
  },
});
`;
    const dir = createFolder(t, {
      ...{ 'a.mjs': plain('a'), 'b.mjs': head + plain('b') },
      ...{ 'c.mjs': 'const c: number = 1;\nexport default c;\n', 'd.mjs': plain('d') },
    });
    const outcome = load(dir, ['a.mjs', 'b.mjs', 'c.mjs', 'd.mjs']);
    assert.deepEqual(outcome.read, ['c.mjs']);
    assert.equal(exportOf(outcome, 'c.mjs'), 1);
    assert.equal(exportOf(outcome, 'd.mjs'), 'changed');
  });

  for (const options of [['--import'], ['-r'], ['--require']]) {
    test(`are off when the option ${options} may have registered hooks`, (t) => {
      const dir = createFolder(t, { 'a.mjs': plain('a'), 'b.mjs': plain('b'), '../empty.cjs': '' });
      const outcome = load(dir, ['a.mjs', 'b.mjs'], [], [...options, join(realpathSync(dir), '..', 'empty.cjs')]);
      assert.deepEqual(outcome.read, ['a.mjs', 'b.mjs']);
    });
  }

  test('are off when NODE_OPTIONS may have registered hooks', (t) => {
    const dir = createFolder(t, { 'a.mjs': plain('a'), 'b.mjs': plain('b') });
    const script = join(dir, '..', 'script.mjs');
    writeFileSync(script, SCRIPT);
    for (const [NODE_OPTIONS, read] of [
      ['--max-old-space-size=512', []],
      ['--max-old-space-size=512 --import=data:text/javascript,', ['a.mjs', 'b.mjs']],
    ] as const) {
      const parameters = [script, JSON.stringify([dir, ['a.mjs', 'b.mjs'], []])];
      const text = execFileSync(process.execPath, parameters, {
        encoding: 'utf8',
        env: { ...process.env, NODE_OPTIONS },
      });
      assert.deepEqual((JSON.parse(text) as Outcome).read, read);
    }
  });
});

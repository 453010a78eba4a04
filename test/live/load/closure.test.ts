// The files that a controller imports, by every form of import. An edit of each of them must be noticed.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fingerprint } from '../../../src/base/fingerprint.ts';
import { createModuleLoader, type LoadedFile } from '../../../src/live/load/module-loader.ts';

/** Whether Node reports each import (22.15 and later). Without this, imports are read from the source. */
const NODE_TELLS = typeof module.registerHooks === 'function';

let root: string;
before(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-closure-')));
});
after(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};

describe('the closure of a controller', () => {
  type Row = [name: string, imported: string, source: (dir: string) => string, nodeTells?: boolean];
  const rows: Row[] = [
    ['a relative import', 'lib/a.mjs', () => `import { v } from '../lib/a.mjs'; export { v };`],
    ['a re-export', 'lib/re.mjs', () => `export * from '../lib/re.mjs';`],
    ['an import for its effects', 'lib/effect.mjs', () => `import '../lib/effect.mjs';`],
    ['an import from the controllers folder', 'controllers/b.mjs', () => `import { v } from './b.mjs'; export { v };`],
    ['an absolute path', 'lib/d.mjs', (dir) => `import { v } from '${dir}/lib/d.mjs'; export { v };`],
    ['a file URL', 'lib/e.mjs', (dir) => `import { v } from 'file://${dir}/lib/e.mjs'; export { v };`],
    ['a subpath of the package', 'lib/f.mjs', () => `import { v } from '#in/f.mjs'; export { v };`],
    [
      'require',
      'lib/g.cjs',
      () =>
        `import { createRequire } from 'node:module'; export const { v } = createRequire(import.meta.url)('../lib/g.cjs');`,
    ],
    ['a JSON import', 'lib/h.json', () => `import j from '../lib/h.json' with { type: 'json' }; export const v = j.v;`],
    ['a link', 'real/i.mjs', () => `import { v } from '../lib/i.mjs'; export { v };`],
    ['an imported file', 'lib/j2.mjs', () => `import { v } from '../lib/j1.mjs'; export { v };`],
    ['an import with a query', 'lib/k.mjs', () => `import { v } from '../lib/k.mjs?x=1'; export { v };`],
    [
      'an import with a comment inside',
      'lib/l.mjs',
      () => `import { v } from /* why */ // that\n '../lib/l.mjs'; export { v };`,
    ],
    // `tsx` loads this file for `m.js`.
    [
      'a .js import that tsx resolves to .ts',
      'lib/m.ts',
      () => `import { v } from '../lib/m.js'; export { v };`,
      false,
    ],
    [
      'a dynamic import at load time',
      'lib/c.mjs',
      () => `const n = 'c'; export const { v } = await import(\`../lib/\${n}.mjs\`);`,
      true,
    ],
  ];
  before(() => {
    write('package.json', JSON.stringify({ type: 'module', imports: { '#in/*': './lib/*', '#x': './aliased/x.mjs' } }));
    for (const [, imported] of rows)
      write(
        imported,
        imported.endsWith('.json') ? '{"v":1}' : imported.endsWith('.cjs') ? 'exports.v = 1;' : 'export const v = 1;',
      );
    write('lib/m.js', 'export const v = 1;');
    write('lib/j1.mjs', `export * from './j2.mjs';`);
    symlinkSync('../real/i.mjs', join(root, 'lib/i.mjs'));
  });
  for (const [index, [name, imported, source, nodeTells = NODE_TELLS]] of rows.entries()) {
    const skip = nodeTells === NODE_TELLS ? false : 'another version of Node does this';
    test(`contains a file imported by ${name}`, { skip }, async () => {
      write(`controllers/C${index}Controller.mjs`, source(root));
      const loader = createModuleLoader();
      await loader.load(join(root, `controllers/C${index}Controller.mjs`), 0);
      const files = loader.closure().filter(({ fingerprint, link }) => fingerprint !== 'absent' && link !== true);
      const paths = files.map(({ path }) => realpathSync(path));
      assert.ok(paths.includes(join(root, imported)), paths.join(' '));
    });
  }

  test('contains an addon that npm rebuild has to make anew', {
    skip: !NODE_TELLS && 'Node 20 has no hook',
  }, async () => {
    write('node_modules/native/package.json', '{"main":"index.js"}');
    write('node_modules/native/index.js', `require('./build/native.node');`);
    write('node_modules/native/build/native.node', 'made for another Node');
    write('controllers/NativeController.mjs', `import 'native';`);
    const loader = createModuleLoader();
    await assert.rejects(loader.load(join(root, 'controllers/NativeController.mjs'), 0), { code: 'ERR_DLOPEN_FAILED' });
    const paths = loader.closure().map(({ path }) => path);
    assert.ok(paths.includes(join(root, 'node_modules/native/build/native.node')), paths.join(' '));
  });

  test('reports a file that an operation imports during its call', async () => {
    write('lib/lazy.mjs', 'export const v = 1;');
    write('controllers/LazyController.mjs', `export const late = (file) => import(file);`);
    const told: LoadedFile[] = [];
    const loader = createModuleLoader({ onFile: (file) => told.push(file) });
    const { late } = (await loader.load(join(root, 'controllers/LazyController.mjs'), 0)) as {
      late: (file: string) => Promise<unknown>;
    };
    assert.deepEqual(
      told.map(({ path }) => path).filter((path) => !path.endsWith('package.json')),
      [join(root, 'controllers/LazyController.mjs')],
    );
    if (!NODE_TELLS) return;
    await late('../lib/lazy.mjs');
    assert.equal(told.at(-1)?.path, join(root, 'lib/lazy.mjs'));
  });

  const missing: [name: string, specifier: (dir: string) => string, onlyWhereNodeTells?: true][] = [
    ['a relative path', () => '../lib/lack.mjs'],
    ['an absolute path', (dir) => `${dir}/lib/lack.mjs`],
    ['a file URL', (dir) => `file://${dir}/lib/lack.mjs`],
    ['a subpath of the package', () => '#in/lack.mjs', true],
  ];
  for (const [index, [name, specifier, onlyWhereNodeTells]] of missing.entries()) {
    const skip = onlyWhereNodeTells && !NODE_TELLS ? 'this Node does not report imports' : false;
    test(`contains a missing file imported by ${name}`, {
      skip,
    }, async () => {
      write(`controllers/Lack${index}Controller.mjs`, `import '${specifier(root)}';`);
      const loader = createModuleLoader();
      await assert.rejects(loader.load(join(root, `controllers/Lack${index}Controller.mjs`), 0));
      assert.deepEqual(
        loader.closure().filter(({ path }) => path.endsWith('lack.mjs')),
        [{ path: join(root, 'lib/lack.mjs'), fingerprint: 'absent' }],
      );
    });
  }

  test('contains the nearer folders in which a package can come later', {
    skip: NODE_TELLS ? false : 'this Node does not report imports',
  }, async () => {
    write('node_modules/near/package.json', '{"exports":"./near.js"}');
    write('node_modules/near/near.js', '');
    write('controllers/NearController.mjs', `import 'near';`);
    const loader = createModuleLoader();
    await loader.load(join(root, 'controllers/NearController.mjs'), 0);
    assert.deepEqual(
      loader.closure().filter(({ path }) => path.endsWith('near')),
      [{ path: join(root, 'controllers/node_modules/near'), fingerprint: 'absent' }],
    );
    write('controllers/FarController.mjs', `export const far = () => import('far');`);
    const { far } = await loader.load(join(root, 'controllers/FarController.mjs'), 0);
    await assert.rejects((far as () => Promise<unknown>)());
    assert.deepEqual(
      loader.closure().filter(({ path }) => path.startsWith(root) && path.endsWith('far')),
      ['controllers/', ''].map((folder) => ({ path: join(root, folder, 'node_modules/far'), fingerprint: 'absent' })),
    );
    write('node_modules/lib/package.json', '{"exports":"./lib.js"}');
    write('node_modules/lib/lib.js', `require('behind');`);
    write('controllers/LibController.mjs', `export const lib = () => import('lib');`);
    const { lib } = await loader.load(join(root, 'controllers/LibController.mjs'), 0);
    await assert.rejects((lib as () => Promise<unknown>)());
    assert.deepEqual(
      loader.closure().filter(({ path }) => path.startsWith(root) && path.endsWith('behind')),
      ['node_modules/lib/', 'node_modules', ''].map((folder) => ({
        path: join(root, folder, 'node_modules/behind'),
        fingerprint: 'absent',
      })),
    );
  });

  test('contains the links and each package.json that lead to a file', async () => {
    for (const version of ['v1', 'v2']) write(`${version}/x.mjs`, `export const v = '${version}';`);
    symlinkSync('v1', join(root, 'linked'));
    symlinkSync('v1', join(root, 'aliased'));
    write('controllers/WayController.mjs', `import '../linked/x.mjs'; import '#x';`);
    symlinkSync('WayController.mjs', join(root, 'controllers/AliasController.mjs'));
    const told: LoadedFile[] = [];
    const loader = createModuleLoader({ onFile: (file) => told.push(file) });
    await loader.load(loader.realPathOf(join(root, 'controllers/AliasController.mjs')), 0);
    const expected: readonly LoadedFile[] = [
      { path: join(root, 'controllers/package.json'), fingerprint: 'absent' },
      { path: join(root, 'package.json'), fingerprint: fingerprint(join(root, 'package.json')) },
      {
        path: join(root, 'controllers/AliasController.mjs'),
        fingerprint: join(root, 'controllers/WayController.mjs'),
        link: true,
      },
      { path: join(root, 'linked'), fingerprint: join(root, 'v1'), link: true },
      { path: join(root, 'aliased'), fingerprint: join(root, 'v1'), link: true },
    ];
    for (const file of expected) {
      assert.deepEqual(
        loader.closure().find(({ path }) => path === file.path),
        file,
      );
      assert.deepEqual(
        told.find(({ path }) => path === file.path),
        file,
      );
    }
    // After a second target, no path equals the entry, so the link has changed for good.
    rmSync(join(root, 'linked'));
    symlinkSync('v2', join(root, 'linked'));
    loader.realPathOf(join(root, 'linked/x.mjs'));
    rmSync(join(root, 'linked'));
    symlinkSync('v1', join(root, 'linked'));
    loader.realPathOf(join(root, 'linked/x.mjs'));
    assert.equal(loader.closure().find(({ path }) => path === join(root, 'linked'))?.fingerprint, 'mixed');
  });

  test('keeps the old fingerprint of a file that changes while its import fails', async () => {
    const path = join(root, 'controllers/FailController.mjs');
    const [begun, changed] = [join(root, 'begun'), join(root, 'changed')];
    write(
      'controllers/FailController.mjs',
      `import { existsSync, writeFileSync } from 'node:fs';
      writeFileSync('${begun}', '');
      while (!existsSync('${changed}')) await new Promise((done) => setTimeout(done, 5));
      throw new Error('old');`,
    );
    const before = fingerprint(path);
    const loader = createModuleLoader();
    const loading = assert.rejects(loader.load(path, 0), /old/);
    while (!existsSync(begun)) await new Promise((done) => setTimeout(done, 5));
    write('controllers/FailController.mjs', 'export default class {}');
    write('changed', '');
    await loading;
    assert.deepEqual(
      loader.closure().filter((file) => file.path === path),
      [{ path, fingerprint: before }],
    );
  });
});

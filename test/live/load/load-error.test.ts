// The place of a mistake for which a controller does not load: line and column. Tools that report mistakes in
// TypeScript count characters outside ASCII differently, so the TypeScript rows have only tabs.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { LoadRefusal } from '../../../src/base/load-refusal.ts';
import { createLog } from '../../../src/base/log.ts';
import { explainPackageType } from '../../../src/live/load/load-advice.ts';
import { describeLoadError } from '../../../src/live/load/load-error.ts';
import { createGroups } from '../../../src/live/load/registry.ts';
import { createFolder } from '../../support/folder.ts';

const TABS = "\t\tx = 'a';\t";
const WIDE = "\t\tx = '価格😀ü';\t";

describe('a file that does not load', () => {
  // The fourth element is the text at which the mistake begins.
  const rows: [name: string, file: string, lines: string[], mistake: string][] = [
    [
      'a syntax error in TypeScript',
      'UserController.ts',
      ['export default class {', `${TABS} a() { f(.b); }`, '}'],
      '.b',
    ],
    [
      'an enum, which Node does not strip',
      'UserController.ts',
      [`/* ${TABS} */ enum A { B }`, 'export default class { index() {} }'],
      'enum',
    ],
    [
      'a name that is declared twice, behind types',
      'UserController.ts',
      ['const a: number = 1;', `${TABS} let b; let b ;`, 'export default class { index() {} }'],
      'b ;',
    ],
    [
      'a syntax error in JavaScript',
      'UserController.mjs',
      ['export default class {', `${WIDE} a() { f(.b); }`, '}'],
      '.b',
    ],
    [
      'a throw at the top level',
      'UserController.ts',
      ['', "/* 価格😀ü\t*/ throw new Error('no database');"],
      'new Error',
    ],
    [
      'an error that Node throws at the top level',
      'UserController.mjs',
      ['', "/* 価格😀ü\t*/ new URL('none');"],
      'new URL',
    ],
    ['an error that Node throws after an await', 'UserController.mjs', ["await null; new URL('none');"], 'new URL'],
    [
      'a type that Gatefold does not read',
      'UserController.ts',
      ["import type { T } from 'zod';", 'export default class {', '/* 価格😀ü\t*/ created(data: T) {} }'],
      'T) {}',
    ],
    [
      'an import of a missing file',
      'UserController.ts',
      ["import { a } from 'node:fs';", "/* 価格😀ü */ import './none/there.ts';"],
      "'./none",
    ],
    [
      'an import of a missing package',
      'UserController.mjs',
      ["/* 価格😀ü */ import { b } from 'no-such-package';"],
      "'no-such",
    ],
    ['an import of a missing export', 'UserController.mjs', ["/* 価格😀ü\t*/ import { none } from 'node:fs';"], 'none'],
  ];
  const folders = ['plain', 'Größe und Maß (1) é'];
  for (const [folder, [name, file, lines, mistake]] of folders.flatMap((folder) =>
    rows.map((row) => [folder, row] as const),
  )) {
    // Where Node does not load TypeScript, tsx accepts an enum.
    if (mistake === 'enum' && !process.features.typescript) continue;
    it(`reports the place of ${name}, in a folder named ${folder}`, async (test) => {
      const dir = join(createFolder(test, { [`${folder}/${file}`]: lines.join('\n') }), folder);
      const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
      const [user] = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
      const line = lines.findIndex((text) => text.includes(mistake));
      const { at, column, error } = { column: undefined, ...user };
      assert.deepEqual(
        [at, column],
        [join(dir, `${file}:${line + 1}`), String(lines[line]).indexOf(mistake) + 1],
        String(error),
      );
    });
  }

  it('reports the place of a syntax error in an imported script', async (test) => {
    const dir = createFolder(test, {
      'UserController.mjs': "import './lib/sound.js';\nimport './lib/broken.js';\nexport default class {}\n",
      'lib/sound.js': 'export {};\n',
      'lib/broken.js': '\nexport const value = ;\n',
    });
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const [user] = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
    assert.equal({ at: undefined, ...user }.at, join(dir, 'lib/broken.js:2'));
  });

  it('reports the place in a file that the controller imports, and not in another broken controller', async (test) => {
    const broken = { 'lib/broken.mjs': 'export const value = ;\n' };
    const imports = "import './lib/broken.mjs';\nexport default class {}\n";
    const dir = createFolder(test, {
      ...broken,
      'AController.mjs': imports,
      'BController.mjs': 'class {',
      'CController.mjs': imports,
    });
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
    assert.deepEqual(
      loads.map((load) => ({ at: undefined, ...load }).at),
      [join(dir, 'lib/broken.mjs:1'), join(dir, 'BController.mjs:1'), join(dir, 'lib/broken.mjs:1')],
    );
  });

  it('reports the place where an imported file throws a SyntaxError at run time', async (test) => {
    const dir = createFolder(test, {
      'UserController.mjs': "import './lib/config.mjs';\nexport default class {}\n",
      'lib/config.mjs': "\nexport const config = JSON.parse('{');\n",
    });
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const [user] = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
    assert.equal({ at: undefined, ...user }.at, join(dir, 'lib/config.mjs:2'));
  });
});

describe('describeLoadError', () => {
  const unreadable = Object.defineProperty(new Error('x'), 'message', {
    get() {
      throw new Error('no');
    },
  });
  const rows: [name: string, error: unknown, described: object, dueTo?: readonly string[]][] = [
    [
      'a package that is not installed',
      Object.assign(new Error("Cannot find package '@a/b' imported from /p/q/X.ts"), { stack: '' }),
      {
        code: 'IMPORT_FAILED',
        reason: "Error: Cannot find package '@a/b' imported from /p/q/X.ts",
        at: '/p/q/X.ts',
      },
      ['/p/q/node_modules/@a/b', '/p/node_modules/@a/b', '/node_modules/@a/b'],
    ],
    [
      'a package that is being installed',
      Object.assign(new Error("Cannot find module '/p/node_modules/@a/b/x/y.js'"), { stack: '' }),
      { code: 'IMPORT_FAILED', reason: "Error: Cannot find module '/p/node_modules/@a/b/x/y.js'" },
      ['/p/node_modules/@a/b/x/y.js', '/p/node_modules/@a/b/package.json'],
    ],
    [
      'a file that is missing',
      Object.assign(new Error("Cannot find module '/p/y.js'"), { stack: '' }),
      { code: 'IMPORT_FAILED', reason: "Error: Cannot find module '/p/y.js'" },
    ],
    ['a text', 'no', { code: 'IMPORT_FAILED', reason: 'it threw "no" while loading' }],
    ['null', null, { code: 'IMPORT_FAILED', reason: 'it threw null while loading' }],
    ['a number', 7, { code: 'IMPORT_FAILED', reason: 'it threw number while loading' }],
    [
      'an error that cannot be read',
      unreadable,
      { code: 'IMPORT_FAILED', reason: 'it threw an error that cannot be described while loading' },
    ],
    [
      'an error of esbuild',
      new Error('Transform failed with 1 error:\n/p/X.ts:5:2: ERROR: Expected ")"'),
      { code: 'SYNTAX_ERROR', reason: 'SyntaxError: Expected ")"', at: '/p/X.ts:5', column: 3 },
    ],
    [
      'a refusal of Gatefold',
      Object.assign(new LoadRefusal('INVALID_EXPORT', 'it exports no group'), { stack: '' }),
      { code: 'INVALID_EXPORT', reason: 'Error: it exports no group' },
    ],
    [
      'a long message of several lines',
      Object.assign(new TypeError(`a\n\tb ${'x'.repeat(600)}`), { stack: '' }),
      { code: 'IMPORT_FAILED', reason: `TypeError: a b ${'x'.repeat(485)}` },
    ],
  ];
  for (const [name, error, described, dueTo = []] of rows)
    it(name, async () => assert.deepEqual(await describeLoadError(error, '/p/X.ts'), { ...described, dueTo }));

  it('names the package.json that makes a file CommonJS', (test) => {
    const dir = createFolder(test, { 'no/package.json': '{}', 'cjs/package.json': '{"type":"commonjs"}' });
    const cure = 'write "type": "module" there (npm pkg set type=module)';
    for (const [folder, message, reason] of [
      [
        'no',
        "SyntaxError: Unexpected token 'export'",
        `Node takes it for CommonJS, because ${dir}/no/package.json has no "type", and it has import or export: ${cure}`,
      ],
      [
        'cjs',
        'Top-level await is currently not supported with the "cjs" output format',
        `Node takes it for CommonJS, because ${dir}/cjs/package.json says "type": "commonjs", and it has await outside of an async function: ${cure}`,
      ],
    ] as const) {
      const dueTo = join(dir, folder, 'package.json');
      assert.deepEqual(explainPackageType(message, join(dir, folder, 'A.js')), { reason, dueTo });
    }
    assert.equal(explainPackageType('SyntaxError: other', join(dir, 'no/A.js')), undefined);
    assert.equal(explainPackageType("Unexpected token 'export'", join(dir, 'A.js')), undefined, 'its type is module');
  });
});

// The place of a mistake for which a controller does not load: line and column. Tools that report mistakes in
// TypeScript count characters outside ASCII differently, so the TypeScript rows have only tabs.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
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

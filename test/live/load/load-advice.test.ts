// The cures in the reasons why a controller does not load. Node reports the mistake, and Gatefold adds what to write.
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { withAdvice } from '../../../src/live/load/load-advice.ts';
import { createGroups } from '../../../src/live/load/registry.ts';
import { createFolder } from '../../support/folder.ts';

const STRIPS = Boolean(process.features.typescript);
const LIBRARY = {
  'lib/helper.ts': 'export const x = 1;\nexport interface Foo { a: string }',
  'lib/entity.ts': 'const Entity = (_: unknown, _context: unknown): void => {};\n@Entity\nexport class User {}',
  'lib/up.mjs': "import '../up';",
  'up.mjs': '',
  'lib/plain.mjs': 'export const x = 1;',
  'lib/all/index.mjs': 'export const x = 1;',
};
const DECORATOR_CURE = '; Node cannot run decorators: call the function instead, such as _before or _around of a group';
const ALIAS_CURE =
  "; Node reads no paths of tsconfig.json: write imports in package.json, such as { '#lib/*': './lib/*' }, and import '#lib/…'";
const END = '\nexport default class { index() { return 1; } }';

describe('the error of a controller ends with the cure for', () => {
  const rows: [name: string, file: string, source: string, cure: string | undefined, onlyNode?: true][] = [
    [
      'an import without .ts',
      'A.ts',
      `import { x } from './lib/helper';`,
      "; write the whole name: './lib/helper.ts'",
      true,
    ],
    [
      'an import without .mjs',
      'A.mjs',
      `import { x } from './lib/plain';`,
      "; write the whole name: './lib/plain.mjs'",
    ],
    ['an import of a file beside the folder', 'A.mjs', `import './lib/up.mjs';`, "; write the whole name: '../up.mjs'"],
    [
      'a decorator that Node is left with',
      'A.mjs',
      'const log = () => {};\nexport class B { @log c() {} }',
      DECORATOR_CURE,
    ],
    [
      'an import of .js instead of .ts',
      'A.ts',
      `import { x } from './lib/helper.js';`,
      "; write the whole name: './lib/helper.ts'",
      true,
    ],
    [
      'an import of a folder',
      'A.mjs',
      `import { x } from './lib/all';`,
      "; write the whole name: './lib/all/index.mjs'",
    ],
    [
      'an import of a type as a value',
      'A.ts',
      `import { Foo } from './lib/helper.ts';`,
      "; Foo is a type: write import { type Foo } from './lib/helper.ts'",
      true,
    ],
    ['a path of tsconfig.json', 'A.ts', "import { x } from '@/lib/helper.ts'; x;", ALIAS_CURE],
    ['another one', 'A.ts', "import { x } from '~/lib/helper.ts'; x;", ALIAS_CURE],
    ['a missing package, which has no cure', 'A.mjs', "import { x } from '@shop/none';", undefined],
    ['a missing export, which has no cure', 'A.mjs', `import { y } from './lib/plain.mjs';`, undefined],
    ['a missing file, which has no cure', 'A.mjs', `import { y } from './lib/none.mjs';`, undefined],
    ['an enum', 'A.ts', 'enum State { a }', "; write a union of literals: type State = 'open' | 'paid'", true],
    [
      'a parameter property',
      'A.ts',
      'class B { constructor(private a = 1) {} }',
      '; declare the field and set it in the constructor',
      true,
    ],
    [
      'a decorator',
      'A.ts',
      'const log = (_: unknown): void => {};\nexport class B { @log c() {} }',
      DECORATOR_CURE,
      true,
    ],
    ['a decorator in an imported file', 'A.ts', "import { User } from './lib/entity.ts';\nUser;", DECORATOR_CURE, true],
    ['a namespace', 'A.ts', 'namespace B { export const c = 1; }', '; write a module of its own, and import it', true],
  ];
  for (const [name, file, source, cure, onlyNode] of rows) {
    it(name, { skip: onlyNode && !STRIPS ? 'tsx loads it' : false }, async (test) => {
      const dir = createFolder(test, { ...LIBRARY, [file.replace('.', 'Controller.')]: source + END });
      const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
      const [load] = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
      assert.equal(load?.ok, false);
      if (cure === undefined) assert.doesNotMatch(load?.error ?? '', /; /);
      else assert.equal(String(load?.error).endsWith(cure), true, String(load?.error));
    });
  }

  it('TypeScript that this Node cannot remove', () => {
    for (const [kind, cure] of [
      ['enum', "write a union of literals: type State = 'open' | 'paid'"],
      ['parameter property', 'declare the field and set it in the constructor'],
      ['namespace declaration', 'write a module of its own, and import it'],
      ['import equals declaration', "write import name from 'module'"],
      ['export assignment', 'write export default'],
    ] as const) {
      const reason = `TypeScript ${kind} is not supported in strip-only mode`;
      assert.equal(withAdvice(reason, '/a/B.ts'), `${reason}; ${cure}`);
    }
  });

  it('an import of a type of a package', () => {
    const reason = "SyntaxError: The requested module 'gatefold' does not provide an export named 'ControllerParams'";
    const cure = "if ControllerParams is a type, write import { type ControllerParams } from 'gatefold'";
    assert.equal(withAdvice(reason, '/a/B.ts'), `${reason}; ${cure}`);
  });
});

it('a controller whose import is a link to itself does not stop the load of the others', async (test) => {
  const dir = createFolder(test, { 'AController.mjs': `import './loop.js';${END}`, 'BController.mjs': END });
  symlinkSync('loop.ts', join(dir, 'loop.ts'));
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
  assert.deepEqual(
    loads.map(({ group, ok }) => [group, ok]),
    [
      ['A', false],
      ['B', true],
    ],
  );
});

// Which methods a source marks as private or protected, and which are called by nobody all the same.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { everyMarkedName, marksOf } from '../../src/contract/hidden-members.ts';
import { parseModule } from '../../src/contract/parse-module.ts';
import { SourceError } from '../../src/contract/source-error.ts';
import { createGroups } from '../../src/groups/registry.ts';

describe('marksOf', () => {
  const rows: [name: string, source: string, expected: Record<string, string[]>][] = [
    ['nothing to hide', 'class A { a() {} }', { A: [] }],
    ['plain', 'class A { private a() {} protected b() {} public c() {} }', { A: ['a', 'b'] }],
    [
      'modifiers between',
      'class A { private static async *a() {} private override get() {} protected get b() { return 1 } }',
      { A: ['a', 'b', 'get'] },
    ],
    ['a method called private', 'class A { private() {} protected() {} }', { A: [] }],
    [
      'generic, optional, quoted, computed',
      `class A { private a<T>() {} private b?(): void; private 'c'() {} private ["d"]() {} }`,
      { A: ['a', 'b', 'c', 'd'] },
    ],
    ['fields are none', 'class A { private a = 1; private b: string }', { A: [] }],
    ['comments', 'class A { /* private a() {} */ // private b() {}\n private /* x */ c() {} }', { A: ['c'] }],
    ['strings', `class A { x = 'private a() {'; y = "}"; private b() {} }`, { A: ['b'] }],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source under test has a template
    ['templates', 'class A { x = `private a() { ${`}${"}"}`} {`; private b() {} }', { A: ['b'] }],
    [
      'regular expressions, which may have been taken for one',
      'class A { x = /[/}]private a() {/; private b() {} }',
      { A: ['b'], '': ['a'] },
    ],
    ['divisions', 'class A { x = (1) / 2; private b() { return 1 / 2 } }', { A: ['b'] }],
    ['two classes', 'class A { private a() {} } class B { private b() {} a() {} }', { A: ['a'], B: ['b'] }],
    [
      'a class within a method is not followed: its marks hide everywhere',
      'class A { private a() { return class B { private b() {} } } private c() {} }',
      { A: ['a', 'c'], '': ['b'] },
    ],
    ['a nameless default', 'export default class { private a() {} }', { default: ['a'] }],
    ['a class expression', 'const A = class { private a() {} }', { A: ['a'] }],
    ['type arguments with braces', 'class A extends B<{ x: 1 }> implements C<{ y: 2 }> { private a() {} }', { A: ['a'] }],
    ['a decorator', '@x({ a: 1 }) class A { @y({}) private a() {} }', { A: ['a'] }],
    ['a bound with a type literal', 'class A<T extends { id: string }> extends B<() => { a: 1 }> { private a() {} }', { A: ['a'] }],
    ['a regular expression behind a condition', "class A { x() { if (1) /[}]/.test('a') } private a() {} }", { A: ['a'] }],
    ['a name with an escape', 'class A { private \\u0061() {} }', { A: ['a'] }],
    ['overloads', 'class A { private a(): void\n private a(x?: number) {} }', { A: ['a'] }],
    [
      'a class that a function makes',
      'const make = () => class { private a() {} }; export default new (class B { private b() {} })()',
      { '': ['a', 'b'] },
    ],
    ['a constant as a name, in a class that is not followed', "const k = 'a' as const; f(class { private [k]() {} })", { '': ['a'] }],
    ['a symbol as a name', 'const k = Symbol(); f(class { private [k]() {} private [Symbol.iterator]() {} })', {}],
    ['words that mark nothing', "x.private.call(1); const y = { private: f() }; class A { z = 'private q()' }", { A: [] }],
    ['a parameter property is none', 'class A { constructor(private x: string) {} private a() {} }', { A: ['a'] }],
  ];
  for (const [name, source, expected] of rows) {
    test(name, () => {
      const { byClass, stray } = marksOf(parseModule(source));
      const found = new Map([...byClass, ...(stray.size > 0 ? ([['', stray]] as const) : [])]);
      assert.deepEqual(Object.fromEntries(Array.from(found, ([key, names]) => [key, [...names].sort()])), expected);
    });
  }

  test('a computed name that cannot be told is refused', () => {
    assert.throws(() => marksOf(parseModule('f(class { private [k()]() {} })')), SourceError);
  });

  test('a source that cannot be followed hides every marked name', () => {
    const source = 'class A { private a() {} { protected b() {}';
    assert.throws(() => parseModule(source), SourceError);
    assert.deepEqual([...everyMarkedName(source).stray].sort(), ['a', 'b']);
  });
});

describe('a private or protected method is no operation', () => {
  const LEAK = '{ return { leaked: true }; }';
  const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'gatefold-hidden-'));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const rows: [name: string, source: string, library?: string][] = [
    ['in the class itself', `export default class XController { index() { return 1; } private secret() ${LEAK} }`],
    [
      'in a class of another file, exported again',
      `export { XController } from './lib.ts';`,
      `export class XController { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'of an instance of a class of another file',
      `import { Service } from './lib.ts';\nexport default new Service();`,
      `export class Service { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'behind a bound with a type literal',
      `export default class XController<T extends { id: string }> { index(): T | number { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'behind a function type',
      `class Base<T> { x?: T }\nexport default class XController extends Base<() => { a: 1 }> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'behind keyof',
      `class Base<T> { x?: T }\nexport default class XController extends Base<keyof { a: 1 }> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'of a generic base class',
      `import { Crud } from './lib.ts';\nexport default class XController extends Crud<{ id: string }> { index() { return 1; } }`,
      `export abstract class Crud<T extends { id: string }> {\n  patch(): T[] { return []; }\n  protected deleted() ${LEAK}\n  protected updated() ${LEAK}\n}`,
    ],
    [
      'behind a regular expression',
      `export default class XController {\n  index() { if (1) /[}]/.test('a'); return 1; }\n  private secret() ${LEAK}\n}`,
    ],
    [
      'of a base class of the same name',
      `import { XController as Base } from './lib.ts';\nexport default class XController extends Base { index() { return 1; } }`,
      `export class XController { private updated() ${LEAK} }`,
    ],
    [
      'in odd spellings',
      `export default class XController { index() { return 1; }\n private\n secret() ${LEAK}\n private async updated() ${LEAK}\n private /* x */ deleted() ${LEAK}\n private "created"() ${LEAK}\n private ["red"]() ${LEAK} }`,
    ],
    ['with an escape in its name', `export default class XController { index() { return 1; } private \\u0073ecret() ${LEAK} }`],
    [
      'with a constant for its name',
      `const k = 'secret' as const;\nexport default class XController { index() { return 1; } private [k]() ${LEAK} }`,
    ],
    [
      'with a computed name',
      `const k = () => 'secret' as const;\nexport default class XController { index() { return 1; } private [k()]() ${LEAK} }`,
    ],
    ['in a class expression', `const L = class { index() { return 1; } private secret() ${LEAK} };\nexport default L;`],
    [
      'in a class that a function makes',
      `const make = () => class { index() { return 1; } private secret() ${LEAK} };\nexport default make();`,
    ],
    ['in an instance made in place', `export default new (class N { index() { return 1; } private secret() ${LEAK} })();`],
    [
      'in a class that a function of another file makes',
      `import { make } from './lib.ts';\nexport default make();`,
      `export const make = () => class { index() { return 1; } private secret() ${LEAK} };`,
    ],
    [
      'in a base class that a function of another file makes',
      `import { make } from './lib.ts';\nexport default class XController extends make() { index() { return 1; } }`,
      `export const make = () => class { protected updated() ${LEAK} };`,
    ],
    [
      'behind an implemented interface with braces',
      `interface I<T> { a?: T }\nexport default class XController implements I<readonly { b: 1 }[]> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'with overloads',
      `export default class XController { index() { return 1; } private secret(): void\n  private secret(a?: number) ${LEAK} }`,
    ],
  ];
  for (const [i, [name, source, library]] of rows.entries()) {
    test(name, async () => {
      const path = join(dir, `${i}`, 'XController.ts');
      mkdirSync(dirname(path));
      writeFileSync(path, source);
      if (library !== undefined) writeFileSync(join(dir, `${i}`, 'lib.ts'), library);
      const group = await createGroups({ dir: dirname(path), log: silent }).find('x');
      assert.deepEqual(
        [...(group?.operations.keys() ?? [])].filter((one) => one !== 'index' && one !== 'patch'),
        [],
      );
      assert.ok(group?.operations.has('index'));
    });
  }

  test('and what is public in an ancestor of a controller with marks still is one', async () => {
    mkdirSync(join(dir, 'public'));
    writeFileSync(join(dir, 'public', 'lib.ts'), 'export class Crud { index() { return 1; } updated() { return 2; } private secret() {} }');
    writeFileSync(
      join(dir, 'public', 'XController.ts'),
      `import { Crud } from './lib.ts';\nexport default class XController extends Crud { created() { return 3; } private own() {} }`,
    );
    const group = await createGroups({ dir: join(dir, 'public'), log: silent }).find('x');
    assert.deepEqual([...(group?.operations.keys() ?? [])].sort(), ['created', 'index', 'updated']);
  });
});

// A method that the source marks private or protected is not an operation, or its file is refused.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';

describe('a private or protected method is not an operation', () => {
  const LEAK = '{ return { leaked: true }; }';
  const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'gatefold-hidden-'));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const rows: [name: string, source: string, library?: string][] = [
    [
      'in a class that a function makes, with a comment',
      `const make = () => class { index() { return 1; } private /* clears (all) */ secret() ${LEAK} };\nexport default make();`,
    ],
    [
      'in a class that a function makes, with a computed name',
      `const SECRET = 'secret';\nconst make = () => class { index() { return 1; } private async [SECRET]() ${LEAK} };\nexport default make();`,
    ],
    [
      'in a class that a function makes, with an escape',
      `const make = () => class { index() { return 1; } protected s\\u0065cret() ${LEAK} };\nexport default make();`,
    ],
    [
      'with Unicode white space around its name',
      `export default class XController { index() { return 1; } private\u00a0async\u3000secret\u00a0() ${LEAK} }`,
    ],
    ['in the class itself', `export default class XController { index() { return 1; } private secret() ${LEAK} }`],
    [
      'in a re-exported class of another file',
      `export { XController } from './lib.ts';`,
      `export class XController { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'of an instance of a class of another file',
      `import { Service } from './lib.ts';\nexport default new Service();`,
      `export class Service { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'in a class with a type literal as the bound of its type parameter',
      `export default class XController<T extends { id: string }> { index(): T | number { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'in a class with a function type as an argument of its base class',
      `class Base<T> { x?: T }\nexport default class XController extends Base<() => { a: 1 }> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'in a class with a keyof type as an argument of its base class',
      `class Base<T> { x?: T }\nexport default class XController extends Base<keyof { a: 1 }> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'of a generic base class',
      `import { Crud } from './lib.ts';\nexport default class XController extends Crud<{ id: string }> { index() { return 1; } }`,
      `export abstract class Crud<T extends { id: string }> {\n  patch(): T[] { return []; }\n  protected deleted() ${LEAK}\n  protected updated() ${LEAK}\n}`,
    ],
    [
      'after a method with a regular expression',
      `export default class XController {\n  index() { if (1) /[}]/.test('a'); return 1; }\n  private secret() ${LEAK}\n}`,
    ],
    [
      'of a base class of the same name',
      `import { XController as Base } from './lib.ts';\nexport default class XController extends Base { index() { return 1; } }`,
      `export class XController { private updated() ${LEAK} }`,
    ],
    [
      'with a comment or quotes before its name',
      `export default class XController { index() { return 1; }\n private secret() ${LEAK}\n private async updated() ${LEAK}\n private /* x */ deleted() ${LEAK}\n private "created"() ${LEAK}\n private ["red"]() ${LEAK} }`,
    ],
    [
      'with an escape in its name',
      `export default class XController { index() { return 1; } private \\u0073ecret() ${LEAK} }`,
    ],
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
    [
      'in an instance made in place',
      `export default new (class N { index() { return 1; } private secret() ${LEAK} })();`,
    ],
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
      'in a class with a type literal in its implements clause',
      `interface I<T> { a?: T }\nexport default class XController implements I<readonly { b: 1 }[]> { index() { return 1; } private secret() ${LEAK} }`,
    ],
    [
      'in a class that a function makes, with a question mark',
      `const make = () => class { index() { return 1; } private secret?() ${LEAK} };\nexport default make();`,
    ],
    [
      'beside a method whose name code computes',
      `const k = () => 'created';\nexport default class XController { index() { return 1; } [k()]() {} private secret() ${LEAK} }`,
    ],
    [
      'with overloads',
      `export default class XController { index() { return 1; } private secret(): void\n  private secret(a?: number) ${LEAK} }`,
    ],
  ];
  /** The class or the name is not read in these cases, so the mark may belong to another class. */
  const REFUSED = new Set([
    'with a computed name',
    'with a constant for its name',
    'in a class expression',
    'in an instance made in place',
    'in a re-exported class of another file',
    'of an instance of a class of another file',
    'in a class that a function makes',
    'in a class that a function of another file makes',
    'in a class that a function makes, with a comment',
    'in a class that a function makes, with a computed name',
    'in a class that a function makes, with an escape',
    'in a class that a function makes, with a question mark',
    'beside a method whose name code computes',
    'in a base class that a function of another file makes',
  ]);
  for (const [i, [name, source, library]] of rows.entries()) {
    test(name, async () => {
      const path = join(dir, `${i}`, 'XController.ts');
      mkdirSync(dirname(path));
      const isRefused = REFUSED.has(name);
      // Without the settings, the file would be refused for `index`, whose types are not found either.
      const withSettings = (text: string) =>
        isRefused ? text.replaceAll('index() {', "static operations = { '*': { unchecked: true } }; index() {") : text;
      writeFileSync(path, withSettings(source));
      if (library !== undefined) writeFileSync(join(dir, `${i}`, 'lib.ts'), withSettings(library));
      const groups = createGroups({ dir: dirname(path), log: silent });
      const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      if (isRefused) {
        assert.match(load?.error ?? '', /may be private or protected/);
        return;
      }
      assert.equal(load?.error, undefined);
      const group = await groups.find('x');
      assert.deepEqual(
        [...(group?.operations.keys() ?? [])].filter((one) => one !== 'index' && one !== 'patch'),
        [],
      );
      assert.ok(group?.operations.has('index'));
    });
  }

  for (const word of ['private', 'protected', 'public', 'async', 'declare', 'accessor']) {
    test(`a method below the field ${word} is public`, async () => {
      const folder = join(dir, `field-${word}`);
      mkdirSync(folder);
      writeFileSync(
        join(folder, 'XController.ts'),
        `export default class XController {\n  ${word}\n  created(data: { n: number }) { return data; }\n}`,
      );
      const group = await createGroups({ dir: folder, log: silent }).find('x');
      assert.deepEqual([...(group?.operations.keys() ?? [])], ['created']);
      assert.ok(group?.operations.get('created')?.check !== undefined);
    });
  }

  for (const [name, isRefused] of [
    ['created', true],
    ['other', false],
  ] as const)
    test(`an operation beside the private method ${name}, in a class that is not read`, async () => {
      const members = [`private [\`${name}\`]() {}`, `private ['${name}']() {}`, `private async *${name}() {}`];
      for (const [i, member] of members.entries()) {
        const folder = join(dir, `beside-${name}-${i}`);
        mkdirSync(folder);
        const source = `const make = () => class { static operations = { '*': { unchecked: true } }; created() {} };
          class Other { ${member} }
          export default [make(), Other][0];`;
        writeFileSync(join(folder, 'XController.ts'), source);
        const [load] = await createGroups({ dir: folder, log: silent }).loadAll({
          skip: new Map(),
          onLoading: () => {},
        });
        if (isRefused) assert.match(load?.error ?? 'it loaded', /created may be private or protected/, member);
        else assert.equal(load?.error, undefined, member);
      }
    });

  test('an operation without its class is refused beside a file with the word private that is not read', async () => {
    const folder = join(dir, 'unreadable');
    mkdirSync(folder);
    const made = "const make = () => class { static operations = { '*': { unchecked: true } }; created() {} };";
    writeFileSync(join(folder, 'XController.ts'), `import './lib.ts';\n${made}\nexport default make();`);
    // The reader takes this slash for a division, so the brace has no partner.
    writeFileSync(join(folder, 'lib.ts'), "if (Math) {} /[{]/.test(''); // private\n");
    const [load] = await createGroups({ dir: folder, log: silent }).loadAll({ skip: new Map(), onLoading: () => {} });
    assert.match(load?.error ?? 'it loaded', /created may be private or protected, and its class is not found/);
  });

  test('a public method of an ancestor stays an operation beside private methods', async () => {
    mkdirSync(join(dir, 'public'));
    writeFileSync(
      join(dir, 'public', 'lib.ts'),
      'export class Crud { index() { return 1; } updated() { return 2; } private secret() {} }',
    );
    writeFileSync(
      join(dir, 'public', 'XController.ts'),
      `import { Crud } from './lib.ts';\nexport default class XController extends Crud { created() { return 3; } private own() {} }`,
    );
    const group = await createGroups({ dir: join(dir, 'public'), log: silent }).find('x');
    assert.deepEqual([...(group?.operations.keys() ?? [])].sort(), ['created', 'index', 'updated']);
  });
});

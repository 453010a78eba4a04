// Checks are read from the same text that runs. A file that changes while it loads never serves without its checks.
import assert from 'node:assert/strict';
import module from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createModuleLoader } from '../../src/groups/module-loader.ts';
import { createGroups } from '../../src/groups/registry.ts';
import { createFolder, write } from '../support/folder.ts';

const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
/** Whether Node gives Gatefold the text that it loads (22.15 and later). */
const NODE_TELLS = typeof module.registerHooks === 'function';

const TYPED = `interface Order { n: number }
export default class XController { created(data: Order) { return data; } index() { return 1; } private wipe() { return 1; } }
`;
/** The source of a module that writes a file of its folder while it is imported. */
const writing = (name: string, text: string): string =>
  `import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('./${name}', import.meta.url), ${JSON.stringify(text)});\n`;

describe('a controller whose file is another one when its import ends', () => {
  const rows: Record<string, string> = {
    empty: '',
    'cut in its middle': TYPED.slice(0, 90),
    'a comment': '// soon',
    'without types':
      'export default class XController { created(data) { return data; } index() { return 1; } wipe() { return 1; } }',
  };
  for (const [name, text] of Object.entries(rows)) {
    test(name, async (t) => {
      const dir = createFolder(t, {
        'package.json': '{"type":"module"}',
        'XController.ts': writing('XController.ts', text) + TYPED,
      });
      const groups = createGroups({ dir, log });
      const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      const group = load?.ok ? await groups.find('x') : undefined;
      // With hooks, Gatefold knows the text that runs. Without them, it loads the file again with the new text.
      if (NODE_TELLS) assert.deepEqual([...(group?.operations.keys() ?? [])], ['created', 'index']);
      if (NODE_TELLS || name !== 'without types')
        assert.equal(group?.operations.get('created')?.check === undefined, group === undefined);
      else assert.equal(group?.contract.operations.get('created')?.uncheckedReason, 'it has no annotation');
    });
  }
});

test('a base class that is another one when it is read', async (t) => {
  const BASE = 'export class Base { created(data: { n: number }) { return data; } private wipe() { return 1; } }';
  const dir = createFolder(t, {
    'package.json': '{"type":"module"}',
    'base.ts': BASE,
    'XController.ts': `import { Base } from './base.ts';\n${writing('base.ts', 'export class Base { created(data) { return data; } }')}export default class XController extends Base {}`,
  });
  const groups = createGroups({ dir, log });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  const group = load?.ok ? await groups.find('x') : undefined;
  assert.equal(
    group === undefined
      ? /base\.ts has changed while it was loaded/.test(load?.error ?? '')
      : group.operations.get('created')?.check !== undefined,
    true,
  );
  assert.equal(group === undefined, !NODE_TELLS);
});

test('a file that is imported under a link to its folder is read where it is', async (t) => {
  const dir = createFolder(t, { 'package.json': '{"type":"module"}' });
  const { mkdirSync, symlinkSync } = await import('node:fs');
  mkdirSync(join(dir, 'real'));
  symlinkSync('real', join(dir, 'lib'));
  write(dir, 'real/base.ts', 'export class Base { created(data: { n: number }) { return data; } }');
  write(
    dir,
    'XController.ts',
    "import { Base } from './lib/base.ts';\nexport default class XController extends Base {}",
  );
  const groups = createGroups({ dir, log });
  await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  assert.notEqual((await groups.find('x'))?.operations.get('created')?.check, undefined);
});

describe('own source by another specifier', () => {
  const BASE = 'export class Base { created(data: { n: number }) { return data; } }';
  const rows: [name: string, files: Record<string, string>, onlyWhereNodeTells?: true][] = [
    [
      'the name of the own package',
      {
        'package.json': '{"type":"module","name":"site","exports":{"./*":"./*"}}',
        'lib/base.ts': BASE,
        'XController.ts': "import { Base } from 'site/lib/base.ts';\nexport default class extends Base {}",
      },
    ],
    [
      'a subpath import',
      {
        'package.json': '{"type":"module","imports":{"#lib/*":"./lib/*"}}',
        'lib/base.ts': BASE,
        'XController.ts': "import { Base } from '#lib/base.ts';\nexport default class extends Base {}",
      },
    ],
    [
      'a package of the same repository, which is linked',
      {
        'package.json': '{"type":"module"}',
        'packages/base/package.json': '{"type":"module","name":"base","exports":"./base.ts"}',
        'packages/base/base.ts': BASE,
        'XController.ts': "import { Base } from 'base';\nexport default class extends Base {}",
      },
    ],
  ];
  for (const [name, files] of rows) {
    test(name, async (t) => {
      const dir = createFolder(t, files);
      const { mkdirSync, symlinkSync } = await import('node:fs');
      mkdirSync(join(dir, 'node_modules'));
      if (files['packages/base/base.ts'] !== undefined) symlinkSync('../packages/base', join(dir, 'node_modules/base'));
      const groups = createGroups({ dir, log });
      const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      assert.equal(load?.error, undefined);
      assert.notEqual((await groups.find('x'))?.operations.get('created')?.check, undefined);
    });
  }
});

test('what a process has imported is known by its text, and a file that it has not imported is read as it is', async (t) => {
  const dir = createFolder(t, {
    'package.json': '{"type":"module"}',
    'a.mjs': 'export const a = 1;',
    'b.ts': 'export type B = 1;',
  });
  const loader = createModuleLoader();
  await loader.load(join(dir, 'a.mjs'), 0);
  write(dir, 'a.mjs', 'export const a = 2;');
  if (NODE_TELLS) assert.equal(loader.textOf(join(dir, 'a.mjs')), 'export const a = 1;');
  else assert.throws(() => loader.textOf(join(dir, 'a.mjs')), /a\.mjs has changed while it was loaded/);
  assert.equal(loader.textOf(join(dir, 'b.ts')), 'export type B = 1;');
  write(dir, 'b.ts', 'export type B = 2;');
  assert.equal(loader.textOf(join(dir, 'b.ts')), 'export type B = 2;');
});

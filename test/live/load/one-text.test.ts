// Checks are read from the same text that runs. A file that changes while it loads never serves without its checks.
import assert from 'node:assert/strict';
import module from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createModuleLoader } from '../../../src/live/load/module-loader.ts';
import { createGroups } from '../../../src/live/load/registry.ts';
import { createFolder, write } from '../../support/folder.ts';

const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
/** Whether Node gives Gatefold the text that it loads (22.15 and later). */
const NODE_TELLS = typeof module.registerHooks === 'function';

const TYPED = `interface Order { n: number }
export default class XController { created(data: Order) { return data; } index() { return 1; } private wipe() { return 1; } }
`;
/** The source of a module that writes a file of its folder while it is imported. */
const writing = (name: string, text: string): string =>
  `import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('./${name}', import.meta.url), ${JSON.stringify(text)});\n`;

describe('a controller keeps its checks when its file changes during the import', () => {
  const rows: Record<string, string> = {
    'to an empty file': '',
    'to half of its text': TYPED.slice(0, 90),
    'to a comment': '// soon',
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

test('a base class that changes during the import keeps its checks, or the load fails', async (t) => {
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

test('a base class imported through a linked folder has its checks', async (t) => {
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

describe('a base class has its checks when it is imported by', () => {
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
      'a subpath',
      {
        'package.json': '{"type":"module","imports":{"#lib/*":"./lib/*"}}',
        'lib/base.ts': BASE,
        'XController.ts': "import { Base } from '#lib/base.ts';\nexport default class extends Base {}",
      },
    ],
    [
      'the name of a linked package of the same repository',
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

test('textOf never returns a changed text for an imported file, and reads other files anew', async (t) => {
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

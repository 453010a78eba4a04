// Hints about files and methods that nearly answer: each names the change, and is logged once for each version.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import type { GroupLoad } from '../../../src/live/load/group-load.ts';
import { createHints } from '../../../src/live/load/hints.ts';
import { findLookAlikes } from '../../../src/live/load/look-alikes.ts';
import { createGroups } from '../../../src/live/load/registry.ts';
import { createFolder, write } from '../../support/folder.ts';

const FIELD = 'it is a field and not a method';
const NAME = 'its name is not a small letter and then letters and digits';
const method = (name: string, reason: string, file = 'BookController.ts') =>
  `warn | method-ignored | ${file} | ${name}: ${reason}; begin it with _ if it is no operation`;

test('an ignored file or method is logged with its cure, once per change', async (t) => {
  const dir = createFolder(t, {
    'userController.mjs': 'export default { index() {} }',
    // The name does not look like a controller's, and no file is opened for a hint.
    'order.mjs': 'export default class { index() {} }',
    'shared.mjs': 'export default class {}',
    'helper.mjs': 'export const help = 1;',
    'BookController.test.ts': '',
    'BookController.ts': `import Shared from './shared.mjs';
      export default class BookController extends Shared {
        index() {}
        find = () => 1;
        private helper = () => 2;
        limit = 7;
        find_all() {}
        FindAll() {}
        _hidden() {}
        private secret_thing() {}
        'with-dash'() {}
        Put() {}
        static make() {}
      }`,
    'MadeController.mjs':
      'const make = () => ({ created(data) { return data; }, patch(data) { return data; }, operations: { patch: { unchecked: true } } });\nexport default make();',
  });
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => void lines.push(JSON.parse(line)), flush() {} } });
  const load = () => createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
  const hints = createHints(dir, log);
  const told = (loads: readonly GroupLoad[]) => {
    lines.length = 0;
    hints.report(loads);
    return lines.map(({ level, event, file, reason }) => [level, event, file, reason].join(' | '));
  };
  const loads = await load();
  assert.deepEqual(told(loads).sort(), [
    'warn | file-ignored | userController.mjs | its name is not a capital, then letters, digits, _ or -, then Controller.ts, .mjs or .js',
    method('FindAll', NAME),
    method('Put', NAME),
    method('find', FIELD),
    method('find_all', NAME),
    method('with-dash', NAME),
    'warn | operation-unchecked | MadeController.mjs | created: its source is not followed: it is made by code, or comes from a package',
  ]);
  assert.deepEqual(told(loads), []);
  write(dir, 'ShopController.mjs', 'export default class { index() {} sell_it() {} }');
  assert.deepEqual(told(await load()), [method('sell_it', NAME, 'ShopController.mjs')]);
});

test('a folder without a tool is logged once while MCP is on, and a folder that is away is no warning', (t) => {
  const dir = createFolder(t, {});
  const lines: string[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => void lines.push(JSON.parse(line).event) } });
  const hints = createHints(dir, log, true);
  const load: GroupLoad = { group: 'A', file: 'AController.ts', ok: true };
  hints.report([load]);
  hints.report([load]);
  hints.report([{ ...load, tools: 1 }]);
  assert.deepEqual(lines, ['tools-absent']);
  createHints(join(dir, 'none'), log).report([load]);
  assert.deepEqual(lines, ['tools-absent', 'folder-unreadable']);
});

test('the look-alikes of a folder are sorted, and are looked for in three levels of subfolders', (t) => {
  const dir = createFolder(t, {
    'lib/AController.ts': '',
    'lib-controller.py': '',
    'OrderController.ts/index.ts': '',
    'lib/a/b/CController.ts': '',
    'lib/a/b/c/DController.ts': '',
  });
  assert.deepEqual(
    findLookAlikes(dir).map(({ file, reason }) => (file.startsWith('O') ? `${file}: ${reason}` : file)),
    ['OrderController.ts: it is a folder', 'lib-controller.py', 'lib/AController.ts', 'lib/a/b/CController.ts'],
  );
});

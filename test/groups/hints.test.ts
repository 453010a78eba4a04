// Hints about files and methods that nearly answer: each names the change, and is logged once for each version.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import type { GroupLoad } from '../../src/groups/group-load.ts';
import { createHints } from '../../src/groups/hints.ts';
import { createGroups } from '../../src/groups/registry.ts';
import { createFolder, write } from '../support/folder.ts';

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
        DELETE = () => 1;
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
    return lines.map(({ level, event, file, reason, hint }) => [level, event, file, reason ?? hint].join(' | '));
  };
  const loads = await load();
  assert.deepEqual(told(loads).sort(), [
    'warn | file-ignored | userController.mjs | the name that counts is UserController.mjs',
    "warn | method-ignored | BookController.ts | DELETE: make it a method, 'DELETE'() { … }, or private",
    'warn | method-ignored | BookController.ts | FindAll: rename it to findAll, or begin it with _',
    "warn | method-ignored | BookController.ts | Put: rename it to red or 'PUT', or begin it with _",
    'warn | method-ignored | BookController.ts | find: make it a method, find() { … }, or private',
    'warn | method-ignored | BookController.ts | find_all: rename it to findAll, or begin it with _',
    'warn | method-ignored | BookController.ts | with-dash: rename it to withDash, or begin it with _',
    'warn | operation-unchecked | MadeController.mjs | created: its source is not followed: it is made by code, or comes from a package',
  ]);
  assert.deepEqual(told(loads), []);
  write(dir, 'ShopController.mjs', 'export default class { index() {} sell_it() {} }');
  assert.deepEqual(told(await load()), [
    'warn | method-ignored | ShopController.mjs | sell_it: rename it to sellIt, or begin it with _',
  ]);
});

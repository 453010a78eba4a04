// The watch and the mutations take their tests from importers.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testsOf } from '../importers.mjs';
import { createFolder } from './folder.ts';

const TREE = {
  'src/limits/bucket.ts': 'export const size = 1;',
  'src/limits/limiter.ts': "import { size } from './bucket.ts';\nexport const limit = size;",
  'src/http/rates.ts': "import {\n  limit,\n} from '../limits/limiter.ts';\nexport const rate = limit;",
  'src/http/type.ts': "import type { size } from '../limits/bucket.ts';",
  'test/limits/limiter.test.ts': "import { limit } from '../../src/limits/limiter.ts';",
  'test/http/rates.test.ts': "import { rate } from '../../src/http/rates.ts';",
  'test/http/bucket.test.ts': "const bucket = await import('../../src/limits/bucket.ts');",
  'test/http/type.test.ts': "import '../../src/http/type.ts';",
  'test/http/process.test.ts': "const path = modulePath('src/http/rates');",
  'test/support/server.ts': "const SERVER = new URL('../../dist/server.js', import.meta.url);",
  'test/supervisor/start.test.ts': "import { SERVER } from '../support/server.ts';",
};

const rows: [file: string, room: string[], direct: string[], far: string[]][] = [
  [
    'src/limits/bucket.ts',
    ['test/limits/limiter.test.ts'],
    ['test/http/bucket.test.ts'],
    ['test/http/rates.test.ts', 'test/http/process.test.ts', 'test/supervisor/start.test.ts'],
  ],
  [
    'src/http/rates.ts',
    ['test/http/process.test.ts', 'test/http/rates.test.ts'],
    [],
    ['test/supervisor/start.test.ts'],
  ],
  ['test/support/server.ts', [], ['test/supervisor/start.test.ts'], []],
  ['test/http/rates.test.ts', [], ['test/http/rates.test.ts'], []],
];
for (const [file, room, direct, far] of rows)
  test(`testsOf returns the tests that ${file} may break`, (t) => {
    const root = createFolder(t, TREE);
    const tests = testsOf(root, file);
    const sorted = (list: readonly string[]) => [...list].sort();
    assert.deepEqual(
      [sorted(tests.room), sorted(tests.direct), sorted(tests.far)],
      [sorted(room), sorted(direct), sorted(far)],
    );
  });

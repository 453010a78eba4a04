// `import … from 'gatefold'` in the built service: in a folder without a package of that name, and in a folder with its
// own version.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { version } from '../../src/own-files.ts';
import { startService } from '../support/cluster-server.ts';
import { runProcess } from '../support/command-bench.ts';

const TYPED = `import { HttpError, type Int } from 'gatefold';
export default class {
  'GET {id}'(_: unknown, { path: { id } }: { path: { id: Int } }): { id: Int } {
    if (id > 9) throw new HttpError(404, 'TOO_HIGH', 'There is none');
    return { id };
  }
}
`;
const PLAIN = `import { Reply } from 'gatefold';
export default class { index() { return new Reply(201, { made: true }); } }
`;
const BY_REQUIRE = `const { eventStream } = require('gatefold');
module.exports = class { index() { return { found: typeof eventStream }; } };
`;
const BY_IMPORT_OF_LIB = `import { status } from '../lib/status.ts';
export default class { index() { return { status }; } }
`;

describe('a controllers folder without an installed gatefold package', () => {
  for (const [name, manifest] of [
    ['in a package of modules', '{"type":"module"}'],
    ['in a package of CommonJS', '{"type":"commonjs"}'],
    ['without a package.json', undefined],
  ] as const) {
    const isCommonJs = manifest?.includes('commonjs') === true;
    // In such a package Node loads a .ts file as CommonJS, which has no import.
    const skip = isCommonJs && process.features.typescript ? 'package-type.test.ts tests this case' : false;
    it(`imports the running gatefold ${name}`, { skip }, async (test) => {
      const dir = createFolder(test, manifest, {
        'controllers/TypedController.ts': TYPED,
        'controllers/PlainController.mjs': PLAIN,
        'controllers/LibController.ts': BY_IMPORT_OF_LIB,
        'lib/status.ts': `import { HttpError } from 'gatefold';\nexport const status: number = new HttpError(418, 'TEA', 'x').status;\n`,
        ...(isCommonJs ? { 'controllers/RequireController.js': BY_REQUIRE } : {}),
      });
      const service = await startService(test, { dir });
      const ask = async (path: string) => {
        const response = await fetch(`http://127.0.0.1:${service.port}/api/${path}`);
        const { error_code: code, ...body } = (await response.json()) as Record<string, unknown>;
        return [response.status, code ?? body];
      };
      assert.deepEqual(await ask('typed/7'), [200, { id: 7 }]);
      assert.deepEqual(await ask('typed/seven'), [422, 'INVALID_DATA'], 'the type checks the parameter');
      assert.deepEqual(await ask('typed/10'), [404, 'TOO_HIGH']);
      assert.deepEqual(await ask('plain'), [201, { made: true }]);
      assert.deepEqual(await ask('lib'), [200, { status: 418 }]);
      if (isCommonJs) assert.deepEqual(await ask('require'), [200, { found: 'function' }]);
      assert.equal(service.errors().includes('package-version-differs'), false);
    });
  }

  it('reports another missing package or entry in gatefold doctor', async (test) => {
    const dir = createFolder(test, '{"type":"module"}', {
      'controllers/AController.mjs': `import 'gatefold-extra';\nexport default class { index() {} }`,
      'controllers/BController.mjs': `import 'gatefold/nothing';\nexport default class { index() {} }`,
    });
    const { code, out } = await runProcess(['doctor'], { cwd: dirname(dir) });
    assert.equal(code, 1);
    assert.match(out, /AController\.mjs.*Cannot find package 'gatefold-extra'/);
    assert.match(out, /BController\.mjs.*Cannot find package 'gatefold'/);
  });
});

it('an installed gatefold of another version is imported, and the start logs one line', async (test) => {
  const dir = createFolder(test, '{"type":"module"}', {
    'controllers/OwnController.mjs': `import { mark } from 'gatefold';\nexport default class { index() { return { mark }; } }`,
    'node_modules/gatefold/package.json':
      '{"name":"gatefold","version":"0.0.9","exports":{".":"./x.mjs","./package.json":"./package.json"}}',
    'node_modules/gatefold/x.mjs': 'export const mark = 9;',
  });
  const service = await startService(test, { dir });
  const response = await fetch(`http://127.0.0.1:${service.port}/api/own`);
  assert.deepEqual(await response.json(), { mark: 9 });
  const lines = service.lines.filter(({ event }) => event === 'package-version-differs');
  assert.deepEqual(
    lines.map(({ folder, version: other, running }) => [folder, other, running]),
    [[join(dirname(dir), 'node_modules/gatefold'), '0.0.9', version()]],
  );
  const { out } = await runProcess(['doctor'], { cwd: dirname(dir) });
  assert.match(out, /^warning +folder +node_modules\/gatefold: controllers import gatefold 0\.0\.9/m);
});

/** Writes files to a new folder. Returns its subfolder `controllers`. */
function createFolder(
  test: TestContext,
  manifest: string | undefined,
  files: Readonly<Record<string, string>>,
): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-own-')));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  const all = manifest === undefined ? files : { 'package.json': manifest, ...files };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return join(root, 'controllers');
}

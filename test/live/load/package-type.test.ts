// A controller in a package of type commonjs. The reason names the package.json and the line to write there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { isDistCurrent } from '../../../build.mjs';
import { createLog } from '../../../src/base/log.ts';
import { explainPackageType } from '../../../src/live/load/load-advice.ts';
import { createGroups } from '../../../src/live/load/registry.ts';
import { ask, json } from '../../support/cluster-client.ts';
import { startService } from '../../support/cluster-server.ts';

const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');

function project(
  test: TestContext,
  manifest: string | undefined,
  controllers: Readonly<Record<string, string>>,
): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-type-')));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'controllers'));
  if (manifest !== undefined) writeFileSync(join(root, 'package.json'), manifest);
  for (const [name, text] of Object.entries(controllers)) writeFileSync(join(root, 'controllers', name), text);
  return root;
}

async function load(root: string) {
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  return createGroups({ dir: join(root, 'controllers'), log }).loadAll({ skip: new Map(), onLoading: () => {} });
}

it('a TypeScript service file loads without a package.json', (test) => {
  assert.ok(isDistCurrent(), 'dist is older than src. Run: npm run build');
  const file = `import { defineService } from 'gatefold';\nexport default defineService({ strict: true });\n`;
  const root = project(test, undefined, { 'service.ts': file });
  // Runs in a new process, where only Gatefold registers a loader.
  const { stdout } = spawnSync(process.execPath, [CLI, 'routes', '--json'], { cwd: root, encoding: 'utf8' });
  assert.deepEqual((JSON.parse(stdout) as { not_loadable: unknown }).not_loadable, [], stdout);
});

describe('a controller and the type of its package', () => {
  it('an ES module in a commonjs package does not load, and doctor reports the cure', (test) => {
    const root = project(test, '{"type":"commonjs"}', {
      'UserController.js': 'export default class { index() { return {}; } }',
    });
    assert.ok(isDistCurrent(), 'dist is older than src. Run: npm run build');
    // Runs in a new process, because the tsx of this process would load the file.
    const { status, stdout } = spawnSync(process.execPath, [CLI, 'doctor', '--json'], { cwd: root, encoding: 'utf8' });
    assert.equal(status, 1);
    const { findings } = JSON.parse(stdout) as {
      findings: { level: string; topic: string; message: string; at?: string }[];
    };
    const found = findings.find(({ level, topic }) => level === 'wrong' && topic === 'controllers');
    assert.equal(found?.at, join(root, 'controllers/UserController.js:1'));
    assert.match(
      String(found?.message),
      /because .*package\.json says "type": "commonjs".*: write "type": "module" there/,
    );
  });

  it('a controller is loaded again as soon as its package.json is fixed', { timeout: 60_000 }, async (test) => {
    const root = project(test, '{"type":"commonjs"}', {
      'UserController.js': 'export default class { index() { return { mended: true }; } }',
    });
    const service = await startService(test, { dir: join(root, 'controllers'), env: { WORKERS: '1' } });
    assert.equal((await ask(service.port, '/api/user')).status, 500);
    writeFileSync(join(root, 'package.json'), '{"type":"module"}');
    // The change starts the load, not the timer of retries.
    const { cause } = await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
    assert.equal(cause, join(root, 'package.json'));
    assert.deepEqual(json(await ask(service.port, '/api/user')), { mended: true });
  });

  it('a CommonJS controller loads in a commonjs package', async (test) => {
    const root = project(test, '{"type":"commonjs"}', {
      'UserController.js': 'module.exports = class { index() { return {}; } };',
    });
    const [user] = await load(root);
    assert.deepEqual([user?.ok, user?.error], [true, undefined]);
  });

  it('a syntax error in an ES module package keeps its own message', async (test) => {
    const root = project(test, '{"type":"module"}', { 'UserController.js': 'export default class { index( }' });
    const [user] = await load(root);
    assert.match(String(user?.error), /^SyntaxError: Unexpected token '}'/);
  });
});

describe('explainPackageType', () => {
  const reasons = [
    "SyntaxError: Unexpected token 'export'",
    'SyntaxError: Cannot use import statement outside a module',
    "SyntaxError: Cannot use 'import.meta' outside a module",
    'SyntaxError: await is only valid in async functions and the top level bodies of modules',
    'SyntaxError: Top-level await is currently not supported with the "cjs" output format',
  ];
  for (const reason of reasons) {
    it(`explains ${reason}`, (test) => {
      const file = join(project(test, '{"type":"commonjs"}', {}), 'controllers/UserController.ts');
      const explained = explainPackageType(reason, file);
      assert.match(String(explained?.reason), /npm pkg set type=module/);
      assert.match(
        String(explained?.reason),
        reason.includes('await') ? /it has await outside of an async function:/ : /it has import or export:/,
      );
      assert.equal(explained?.dueTo, join(dirname(dirname(file)), 'package.json'));
    });
  }

  const manifests: [name: string, manifest: string | undefined, explained: RegExp | undefined][] = [
    ['a package.json without a type', '{}', /has no "type"/],
    ['no package.json', undefined, /there is no package\.json above it.*: make one/],
    ['a package.json that is not JSON', '{', /has no "type"/],
    ['a package.json of type module, which needs no explanation', '{"type":"module"}', undefined],
  ];
  for (const [name, manifest, explained] of manifests) {
    it(`reads ${name}`, (test) => {
      const file = join(project(test, manifest, {}), 'controllers/UserController.ts');
      const text = explainPackageType(reasons[0] as string, file)?.reason;
      if (explained === undefined) assert.equal(text, undefined);
      else assert.match(String(text), explained);
    });
  }

  it('returns undefined for any other error', () =>
    assert.equal(explainPackageType("SyntaxError: Unexpected token '}'", '/x/UserController.ts'), undefined));
  it('reads the nearest package.json', (test) => {
    const root = project(test, '{"type":"module"}', { 'package.json': '{"type":"commonjs"}' });
    const explained = explainPackageType(reasons[0] as string, join(root, 'controllers/x.ts'));
    assert.equal(explained?.dueTo, join(root, 'controllers/package.json'));
    assert.match(String(explained?.reason), /package\.json says "type": "commonjs"/);
  });
});

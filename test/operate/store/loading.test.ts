// Without STORE, no process loads a file of src/operate/store, because no static import leads there. With STORE, the
// package `postgres` must be installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { after, describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../../../src');

/** Returns the files that an entry loads by static imports, relative to src. */
function filesOf(entry: string): string[] {
  const paths = new Set([join(SRC, entry)]);
  for (const path of paths)
    for (const [, names = '', specifier = ''] of readFileSync(path, 'utf8').matchAll(
      /^(?:import|export)\s+([^;']*?)from\s+'(\.[^']+)'/gm,
    ))
      if (!names.startsWith('type ')) paths.add(resolve(path, '..', specifier));
  return Array.from(paths, (path) => relative(SRC, path));
}

for (const entry of [
  'bin/server.ts',
  'bin/worker.ts',
  'bin/cli.ts',
  'operate/cli/credentials.ts',
  'operate/cli/doctor.ts',
  'live/supervisor/serve.ts',
]) {
  it(`${entry} has no static import of the store`, () => {
    const files = filesOf(entry);
    assert.ok(files.length > 3);
    assert.deepEqual(
      files.filter((file) => file.startsWith('operate/store/') || file === 'callers/rates/shared-rates.ts'),
      [],
    );
  });
}

describe('without the package postgres', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatefold-alone-'));
  after(() => rmSync(root, { recursive: true, force: true }));
  // The build is copied to a folder without the package, because this project has it.
  cpSync(join(SRC, '../dist'), join(root, 'dist'), { recursive: true });
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  mkdirSync(join(root, 'controllers'));
  const env = { ...process.env, STORE: 'postgres://gatefold@127.0.0.1:1/none', PORT: '0', HOST: '127.0.0.1' };

  for (const words of [['cli.js', 'store', 'status'], ['server.js']])
    it(`${words.join(' ')} fails and reports what to install`, () => {
      const { status, stderr } = spawnSync(process.execPath, [join(root, 'dist', words[0] ?? ''), ...words.slice(1)], {
        ...{ cwd: root, env, encoding: 'utf8', timeout: 60_000 },
      });
      assert.equal(status, 1, stderr);
      assert.match(stderr, /STORE needs the package postgres\. Run: npm install postgres/);
    });
});

// The files that `npm pack` puts into the package.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const COPIED = ['src', 'build.mjs', 'tsconfig.json', 'tsconfig.types.json', 'package.json'];

test('each source map that a file of the package names is in the package', (t) => {
  const copy = mkdtempSync(join(tmpdir(), 'gatefold-packed-'));
  t.after(() => rmSync(copy, { recursive: true, force: true }));
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  execFileSync('npm', ['pack', '--silent'], { cwd: copy });
  const [archive = ''] = readdirSync(copy).filter((name) => name.endsWith('.tgz'));
  execFileSync('tar', ['xf', archive], { cwd: copy });
  const dist = join(copy, 'package', 'dist');
  const named = readdirSync(dist, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    if (!name.endsWith('.js')) return [];
    const [, map] = /^\/\/# sourceMappingURL=(\S+)$/m.exec(readFileSync(join(dist, name), 'utf8')) ?? [];
    return map === undefined ? [] : [join(dist, dirname(name), map)];
  });
  assert.deepEqual(named, [join(dist, 'client.js.map')]);
  assert.ok(existsSync(join(dist, 'client.js.map')));
});

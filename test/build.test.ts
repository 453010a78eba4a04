// The build of dist. A machine that only serves has no build tools.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '..');

test('build.mjs without its tools keeps a current dist and refuses to build a missing or older one', (t) => {
  const copy = mkdtempSync(join(tmpdir(), 'gatefold-build-'));
  t.after(() => rmSync(copy, { recursive: true, force: true }));
  for (const name of ['src', 'dist', 'build.mjs', 'tsconfig.json', 'tsconfig.types.json', 'package.json'])
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  const build = (...flags: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['build.mjs', ...flags], {
      cwd: copy,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };
  assert.deepEqual(build('--if-stale'), { status: 0, output: '' });
  const refusal = 'Cannot build: esbuild and typescript are not installed. Run: npm ci\n';
  assert.deepEqual(build(), { status: 1, output: refusal });
  appendFileSync(join(copy, 'src', 'bin', 'cli.ts'), '// an edit\n');
  assert.deepEqual(build('--if-stale'), {
    status: 1,
    output: refusal.replace('. Run', '; dist is older than src. Run'),
  });
  assert.ok(existsSync(join(copy, 'dist', 'server.js')));
  rmSync(join(copy, 'dist'), { recursive: true });
  assert.deepEqual(build('--if-stale'), { status: 1, output: refusal.replace('. Run', '; dist is missing. Run') });
});

test('package.json runs build.mjs with --if-stale before start and dev', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  for (const name of ['prestart', 'predev']) assert.equal(scripts[name], 'node build.mjs --if-stale');
});

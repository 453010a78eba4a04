// The README's claims, run: its commands exist, its controller is dropped in, and every curl answers what it says.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { startService } from './support/cluster-server.ts';

const ROOT = resolve(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** What differs from run to run is made one. */
const steady = (text: string) => text.replace(/"timestamp":\d+/g, '"timestamp":0').replace(/"request_id":"[^"]*"/g, '"request_id":"-"');

test('README: by line 25 it says what this is, how to run it, one curl with its output, and how to test it', () => {
  const head = README.split('\n').slice(0, 25).join('\n');
  for (const needed of ['npm ci && npm start', '$ curl http://localhost:3000/api/test\n{', 'npm ci && npm test'])
    assert.ok(head.includes(needed), needed);
});

test('README: its npm scripts and its documents exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  for (const [, name] of README.matchAll(/npm (?:run )?(start|test|build|dev|bench|typecheck)\b/g))
    assert.ok(scripts[name as string] !== undefined, String(name));
  for (const [, file] of README.matchAll(/\]\((docs\/[A-Z]+\.md)\)/g))
    assert.ok(readFileSync(join(ROOT, file as string)).length > 0, String(file));
});

test('package.json: no run-time dependency, and a lock file without download addresses', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>;
  assert.equal(manifest.dependencies, undefined);
  assert.doesNotMatch(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'), /"resolved"/);
});

describe('README: every curl', { skip: hasCurl ? false : 'curl is not installed' }, () => {
  test('answers what the README shows', async (t) => {
    // Below the package, so that the controller's import of 'gatefold' means this package.
    const folder = mkdtempSync(join(ROOT, 'test', '.readme-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    cpSync(join(ROOT, 'controllers'), join(folder, 'controllers'), { recursive: true });
    const service = await startService(t, { dir: join(folder, 'controllers'), env: { WORKERS: '1' } });
    const [, source = ''] = /cat > controllers\/HelloController\.ts <<'EOF'\n([\s\S]*?)EOF\n/.exec(README) ?? [];
    assert.ok(source.length > 0);
    let curls = 0;
    for (const [, block = ''] of README.matchAll(/```console\n([\s\S]*?)```/g)) {
      for (const [, command = '', shown = ''] of block.matchAll(/^\$ (curl .*)\n(.*)$/gm)) {
        if (command.includes('/api/hello')) writeFileSync(join(folder, 'controllers', 'HelloController.ts'), source);
        const real = execFileSync(
          'sh',
          ['-c', command.replace('curl ', 'curl -sS ').replace('localhost:3000', `127.0.0.1:${service.port}`)],
          { encoding: 'utf8' },
        );
        assert.equal(steady(real), steady(shown), command);
        curls++;
      }
    }
    assert.ok(curls >= 6);
  });
});

// Runs examples/conduit as its reader does: a project with Gatefold installed, whose tests run on this Node and start
// their own PostgreSQL.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { noPostgres } from '../../examples/conduit/test/postgres.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const skip = major > 22 || (major === 22 && minor >= 18) ? noPostgres : 'TypeScript as it is needs Node 22.18';

for (const name of ['flow', 'refusals'])
  test(`examples/conduit passes its own tests: ${name}`, { skip }, async (t) => {
    const project = mkdtempSync(join(tmpdir(), 'gatefold-conduit-'));
    t.after(() => rmSync(project, { recursive: true, force: true }));
    const filter = (path: string) => !path.includes('node_modules');
    cpSync(join(ROOT, 'examples/conduit'), project, { recursive: true, filter });
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(ROOT, join(project, 'node_modules/gatefold'));
    symlinkSync(join(ROOT, 'node_modules/postgres'), join(project, 'node_modules/postgres'));
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_V8_COVERAGE: undefined };
    const args = ['--test', '--test-reporter=tap', `test/${name}.test.ts`];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: project, env }).catch(
      (error: { stdout: string }) => assert.fail(error.stdout),
    );
    assert.match(stdout, /^# fail 0$/m);
    assert.match(stdout, /^# skipped 0$/m);
  });

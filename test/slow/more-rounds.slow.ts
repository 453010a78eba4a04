// Tests of `npm test` that take more values, files or rounds here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');

function run(file: string, env: Record<string, string>): void {
  const { NODE_TEST_CONTEXT, ...inherited } = process.env;
  const { status, stdout } = spawnSync(process.execPath, [resolve(ROOT, 'test/run.mjs'), file], {
    cwd: ROOT,
    env: { ...inherited, ...env },
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${JSON.stringify(env)}\n${stdout.slice(-4000)}`);
}

test('the checks of more types accept the same values as TypeScript', () => {
  run('test/contract/types.test.ts', { VALUES: '30', RANDOM_TYPES: '120' });
});

test('a doc comment of more random pieces has the same text and tags as in TypeScript', () => {
  run('test/contract/doc-comments.test.ts', { COMMENTS: '20000' });
});

test('our parser reads the same declarations as TypeScript in more files', () => {
  run('test/contract/parser.test.ts', { ALL_FILES: '10' });
});

test('a store-host and many other clients work through PgBouncer', () => {
  run('test/operate/store/host.test.ts', { ROUNDS: '60' });
});

// Contracts in bulk: random types compared with TypeScript's checker, with a new seed each time, and Gatefold's parser
// on every installed file.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const ROUNDS = Number(process.env.ROUNDS ?? 20);

function run(file: string, env: Record<string, string>): void {
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--test', file], {
    cwd: ROOT,
    env: { ...process.env, NODE_TEST_CONTEXT: '', ...env },
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${JSON.stringify(env)}\n${stdout.slice(-4000)}`);
}

test('the check of a random type accepts the same values as TypeScript', () => {
  for (let i = 0; i < ROUNDS; i++)
    run('test/contract/types.test.ts', { SEED: String(1 + Math.floor(Math.random() * 1e6)), RANDOM_TYPES: '1000' });
});

test('the parser reads every installed file like TypeScript', () => {
  run('test/contract/parser.test.ts', { ALL_FILES: '1' });
});

// `gatefold store import` and `export` with a STORE_KEY that does not open the store's session key: nothing changes.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { createSeal } from '../../../src/operate/store/seal.ts';
import { syncSessionKey } from '../../../src/operate/store/session-key.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { noPostgres, startStore } from '../../support/store-bench.ts';

it('store import and store export fail with a wrong STORE_KEY, and write nothing', {
  skip: noPostgres,
}, async (test) => {
  const { store, url } = await startStore(test);
  const text = '{"production":[{"id":"a","name":"A","hash":"x"}]}';
  const cwd = makeProject(test, { 'data/production.json': text });
  await syncSessionKey(store, createSeal(['the key of the store: 32 characters']), makeProject(test));
  const env = { STORE: url.replace('postgres@', 'postgres:@'), STORE_KEY: 'another key that has 32 characters' };
  const run = (...words: string[]) => runHere(runGatefold, ['store', ...words], { cwd, env });
  const imported = await run('import');
  assert.deepEqual([imported.code, (await store.read('keys')).entries.size], [1, 0], imported.err);
  assert.match(imported.err, /STORE_KEY does not open/);
  const exported = await run('export', 'copy');
  assert.deepEqual([exported.code, existsSync(join(cwd, 'copy'))], [1, false], exported.err);
  assert.match(exported.err, /STORE_KEY does not open/);
});

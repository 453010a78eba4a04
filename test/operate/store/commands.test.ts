// `gatefold store import` and `export` with a STORE_KEY that does not open the store's session key: nothing changes.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { MAX_BYTES } from '../../../src/callers/credentials/table/live-table.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { reportDescription } from '../../../src/operate/cli/doctor-store.ts';
import { describeBytes, describeStore } from '../../../src/operate/cli/store.ts';
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

it('store status and doctor report the bytes of the table, from 70 % on with what to do', {
  skip: noPostgres,
}, async (test) => {
  const { store, url } = await startStore(test);
  await store.write('keys', [{ name: 'a', expectedVersion: '', value: '{"id":"a"}' }], '1');
  const env = { STORE: url.replace('postgres@', 'postgres:@') };
  const { code, out } = await runHere(runGatefold, ['store', 'status'], { cwd: makeProject(test), env });
  assert.equal(code, 0);
  assert.match(
    out,
    /^version: {2}\S+\nrows: {5}1\nbytes: {4}60 of 536870912, 0 %\nwrites: {3}accepted\nstandbys: none is synchronous, .*\nclock: {4}-?\d+ s ahead of this machine\n$/,
  );
  const full = { ...(await describeStore(store, [])), bytes: 0.8 * MAX_BYTES };
  assert.match(describeBytes(full.bytes), /^429496729\.6 of 536870912, 80 %: beyond it no row can be added.*prune/);
  const findings: string[] = [];
  reportDescription(full, (level, message) => findings.push(`${level} ${message}`));
  reportDescription({ ...full, bytes: MAX_BYTES + 1 }, (level, message) => findings.push(`${level} ${message}`));
  const levels = findings.filter((text) => text.includes('its table has')).map((text) => text.split(' ')[0]);
  assert.deepEqual(levels, ['warning', 'wrong']);
});

// The commands of `gatefold store`, and what doctor says about a store.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { FILLING_ADVICE, FILLING_BYTES, MAX_BYTES } from '../../../src/callers/credentials/table/live-table.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { checkStore, reportDescription } from '../../../src/operate/cli/doctor-store.ts';
import type { Installation } from '../../../src/operate/cli/finding.ts';
import { describeBytes, describeStore } from '../../../src/operate/cli/store.ts';
import { createSeal } from '../../../src/operate/store/seal.ts';
import { syncSessionKey } from '../../../src/operate/store/session-key.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { addressOf, noPostgres, startStore } from '../../support/store-bench.ts';

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
  await store.query(
    "insert into gatefold.machine (id, name, seen) values ('a', 'vm', clock_timestamp() - interval '9 s')",
  );
  const { out: again } = await runHere(runGatefold, ['store', 'status'], { cwd: makeProject(test), env });
  assert.match(again, /^machine: {2}vm, reported \d+ s ago$/m);
  const full = { ...(await describeStore(store, [])), bytes: 0.8 * MAX_BYTES };
  assert.match(describeBytes(full.bytes), /^429496729\.6 of 536870912, 80 %: beyond it no row can be added.*prune/);
  const findings: string[] = [];
  reportDescription(full, (level, message) => findings.push(`${level} ${message}`));
  reportDescription({ ...full, bytes: MAX_BYTES + 1 }, (level, message) => findings.push(`${level} ${message}`));
  const standby = 'note no standby is synchronous, so a failover may lose the last keys that were issued or rotated';
  const clock = (level: string) => /its clock is/.test(level);
  assert.deepEqual(
    findings.filter((text) => !clock(text)),
    [
      `warning its table has 80 % of its limit: ${FILLING_ADVICE}`,
      standby,
      `wrong its table has 100 % of its limit: ${FILLING_ADVICE}`,
      standby,
    ],
  );
});

it('doctor reports a store that refuses writes, has another clock or key, and a connection without TLS', {
  skip: noPostgres,
}, async (test) => {
  const report = (change: object) => {
    const findings: string[] = [];
    const good = { version: '1', rows: 1, bytes: FILLING_BYTES, isWritable: true, standbys: 'a' };
    const description = { ...good, secondsAhead: 5, machines: [], keyFailure: undefined, ...change };
    reportDescription(description, (level, message) => findings.push(`${level} ${message}`));
    return findings;
  };
  assert.deepEqual(report({}), []);
  assert.deepEqual(report({ secondsAhead: -6 }), ["warning its clock is -6 s ahead of this machine's; set the clocks"]);
  assert.deepEqual(report({ isWritable: false }), ['wrong it is read-only, so no key can be issued or revoked']);
  assert.deepEqual(report({ keyFailure: 'a wrong key' }), ['wrong a wrong key']);
  assert.deepEqual(report({ bytes: FILLING_BYTES + 1 }).length, 1);
  assert.deepEqual(report({ bytes: MAX_BYTES }), [`warning its table has 100 % of its limit: ${FILLING_ADVICE}`]);
  assert.match(describeBytes(FILLING_BYTES), /^\d+ of \d+, 69 %$/);
  const { url } = await startStore(test);
  const findings: string[] = [];
  const address = addressOf(url);
  const hosts = address.hosts.map((each) => ({ ...each, host: '0.0.0.0' }));
  const settings = { store: { ...address, hosts }, storeKeys: [], controllersDir: process.cwd() };
  const installation = { settings, inspection: { channels: ['chat', 'news'] } } as unknown as Installation;
  await checkStore(installation, (level, message) => findings.push(`${level} ${message}`));
  assert.deepEqual(findings.slice(0, 3), [
    'note an event of a channel (chat, news) reaches one machine: see docs/CHANNELS.md',
    'warning the connection has no TLS: remove sslmode=disable',
    'warning STORE_KEY is not set, so each machine has a session key of its own',
  ]);
});

it('store import adds rows to an empty store, with --merge the ones that it lacks, and export makes a folder', {
  skip: noPostgres,
}, async (test) => {
  const { url } = await startStore(test);
  const table = (...rows: string[]) => `{"production":[${rows.join()}]}`;
  const [a, b, other] = ['{"id":"a","name":"A"}', '{"id":"b","name":"B"}', '{"id":"a","name":"C"}'] as const;
  const cwd = makeProject(test, { 'data/production.json': table(a), 'more/production.json': table(other, b) });
  const env = { STORE: url.replace('postgres@', 'postgres:@') };
  const run = async (...words: string[]) => {
    const { code, out, err } = await runHere(runGatefold, ['store', ...words], { cwd, env });
    return [code, `${out}${err}`.trimEnd()];
  };
  const noKey = (verb: string) => `gatefold store ${verb}: the session key was not ${verb}ed: STORE_KEY is not set`;
  const path = (name: string) => join(cwd, name, 'production.json');
  assert.deepEqual(await run('import', 'nowhere'), [
    1,
    `gatefold store import: There is no folder ${join(cwd, 'nowhere')}`,
  ]);
  assert.deepEqual(await run('import'), [0, `Imported 1 rows of ${path('data')}.\n${noKey('import')}`]);
  assert.deepEqual(await run('import', 'more'), [
    1,
    'gatefold store import: The store has 1 rows; --merge adds the ones that it lacks',
  ]);
  const differs = 'gatefold store import: a differs in the store, and stays as it is there';
  assert.deepEqual(await run('import', 'more', '--merge'), [
    0,
    `Imported 1 rows of ${path('more')}.\n${differs}\n${noKey('import')}`,
  ]);
  assert.deepEqual(await run('export', 'copy'), [0, `Exported 2 rows to ${path('copy')}.`]);
  assert.deepEqual(JSON.parse(readFileSync(path('copy'), 'utf8')), JSON.parse(table(a, b)));
  assert.deepEqual(await run('export', 'copy'), [
    1,
    `gatefold store export: ${path('copy')} exists; name a new folder`,
  ]);
  const old = table('{"id":"My App","name":"M","authorization":"Basic eA=="}');
  assert.equal((await run('import', makeProject(test, { 'production.json': old }), '--merge'))[0], 0);
  const revoked = await runHere(runGatefold, ['credentials', 'revoke', 'My App'], { cwd, env });
  assert.match(`${revoked.out}${revoked.err}`, /^Revoked My App \(M\)/, 'a row without an id of ours');
  assert.deepEqual(await run('init'), [0, 'The store is prepared: schema gatefold.']);
  const [code, sql] = await run('init', '--print');
  assert.match(`${code} ${sql}`, /^0 create schema if not exists gatefold;\n/i);
});

it('store export writes the session key with STORE_KEY, and without it says that the key is missing', {
  skip: noPostgres,
}, async (test) => {
  const { store, url } = await startStore(test);
  const cwd = makeProject(test);
  const storeKey = 'the key of the store: 32 characters';
  const folder = makeProject(test);
  await syncSessionKey(store, createSeal([storeKey]), folder);
  const env = { STORE: url.replace('postgres@', 'postgres:@') };
  const run = async (keys: object, ...words: string[]) => {
    const { code, out, err } = await runHere(runGatefold, ['store', ...words], { cwd, env: { ...env, ...keys } });
    return [code, `${out}${err}`.trimEnd()];
  };
  const exported = (name: string) => `Exported 0 rows to ${join(cwd, name, 'production.json')}.`;
  const warning = 'gatefold store export: the session key was not exported: STORE_KEY is not set';
  assert.deepEqual(await run({}, 'export', 'without'), [0, `${exported('without')}\n${warning}`]);
  assert.equal(existsSync(join(cwd, 'without/session.key')), false);
  assert.deepEqual(await run({ STORE_KEY: storeKey }, 'export', 'with'), [0, exported('with')]);
  const keyOf = (path: string) => readFileSync(join(path, 'session.key'), 'utf8');
  assert.equal(keyOf(join(cwd, 'with')), keyOf(folder));
  assert.deepEqual(await run({ STORE_KEY: storeKey }, 'import'), [
    0,
    `Imported 0 rows of ${join(cwd, 'data/production.json')}.`,
  ]);
  assert.equal((await describeStore(store, [storeKey])).keyFailure, undefined);
  assert.equal((await describeStore(store, [])).keyFailure, undefined);
  assert.match((await describeStore(store, ['another key that has 32 characters'])).keyFailure ?? '', /STORE_KEY/);
});

it('store commands need STORE', async (test) => {
  const { code, out, err } = await runHere(runGatefold, ['store', 'status'], { cwd: makeProject(test), env: {} });
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /^gatefold store status: STORE is not set, .*set it to postgres:/);
});

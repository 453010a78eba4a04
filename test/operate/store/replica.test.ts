// The copy of the credentials table on one machine, without a store.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { writeRevokedHere } from '../../../src/callers/credentials/write/revoked-here.ts';
import { openReplica } from '../../../src/operate/store/replica.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

const TIME = '2026-01-01T00:00:00Z';
const LIVE = '{"id":"a","name":"A"}';
const REVOKED = `{"id":"a","name":"A","revoked_at":"${TIME}"}`;

function makeFolder(test: TestContext, row: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-replica-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'production.json'), `{"store":{"version":"h/1/5"},"production":[${row}]}`);
  return folder;
}

const cases = [
  { name: 'on this machine', listed: TIME, rowInMemory: LIVE },
  { name: 'in the store', listed: undefined, rowInMemory: REVOKED },
  { name: 'in the store and on this machine', listed: '2026-02-02T00:00:00Z', rowInMemory: REVOKED },
];
for (const { name, listed, rowInMemory } of cases)
  it(`the replica keeps a revocation made ${name} after a restart`, (test) => {
    const folder = makeFolder(test, REVOKED);
    if (listed !== undefined) writeRevokedHere(folder, new Map([['a', listed]]));
    const replica = openReplica(folder, createMemoryLog().log);
    assert.deepEqual([...replica.rows().values()], [rowInMemory]);
    assert.equal(replica.publish(), true);
    assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), new RegExp(`"revoked_at":"${TIME}"`));
    assert.equal(replica.publish(), false);
  });

it('the replica writes a revocation on this machine to the file when no row has changed', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  assert.equal(replica.publish(), true);
  writeRevokedHere(folder, new Map([['a', TIME]]));
  assert.equal(replica.publish(), true);
  assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), new RegExp(`"revoked_at":"${TIME}"`));
});

it('the replica removes a row and its lost revocation when the store removes the row', (test) => {
  const folder = makeFolder(test, REVOKED);
  const replica = openReplica(folder, createMemoryLog().log);
  replica.replaceAll({ version: 'new/1/1', entries: new Map([['a', { version: '1', value: LIVE }]]) }, false);
  assert.deepEqual([...replica.lostRevocations()], [['a', TIME]]);
  replica.apply({ version: 'new/1/2', changes: [['a', undefined]], isComplete: true });
  assert.deepEqual([replica.lostRevocations().size, replica.rows().size], [0, 0]);
});

it('the replica has no age until its rows are complete', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  assert.equal(replica.age(), null);
  replica.markComplete();
  assert.ok((openReplica(folder, createMemoryLog().log).age() ?? Number.POSITIVE_INFINITY) < 60_000);
});

it('the replica leaves the newest rows out of a file that would be too large, and keeps revocations live', (test) => {
  const folder = makeFolder(test, LIVE);
  const { log, lines } = createMemoryLog();
  const replica = openReplica(folder, log, 600);
  const row = (id: string, more = {}) => JSON.stringify({ id, note: 'x'.repeat(100), ...more });
  const entries = new Map(['a', 'b', 'c', 'd'].map((id) => [id, { version: '1', value: row(id) }]));
  replica.replaceAll({ version: 'h/1/9', entries }, true);
  replica.publish();
  replica.apply({ version: 'h/1/10', changes: [['a', row('a', { revoked_at: TIME })]], isComplete: true });
  replica.publish();
  const { production } = JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8'));
  assert.deepEqual(
    production.map(({ id, revoked_at }: Record<string, unknown>) => [id, revoked_at]),
    [
      ['a', TIME],
      ['b', undefined],
      ['c', undefined],
    ],
  );
  const fullLines = lines.filter(({ event }) => event === 'store-table-full');
  assert.deepEqual(
    fullLines.map(({ rows_left_out }) => rows_left_out),
    [1],
  );
});

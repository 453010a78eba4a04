// The copy of the credentials table on one machine, without a store.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { revokedHerePath, writeRevokedHere } from '../../../src/callers/credentials/write/local-revocations.ts';
import { readTableFile } from '../../../src/operate/store/entries.ts';
import { openReplica } from '../../../src/operate/store/replica.ts';
import { ROW_ROOM } from '../../../src/operate/store/schema.ts';
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

it('the replica makes the data folder, which a new machine lacks', (test) => {
  const folder = join(makeFolder(test, LIVE), 'new', 'data');
  const replica = openReplica(folder, createMemoryLog().log);
  replica.apply({ version: 'h/1/5', changes: [['a', LIVE]], isComplete: true });
  assert.equal(replica.publish(), true);
  assert.deepEqual([...(readTableFile(folder)?.rows.values() ?? [])], [LIVE]);
});

it('the replica knows a row with a literal by its id, and after a revocation by the same name', (test) => {
  const row = (change = {}) => JSON.stringify({ id: 'My App', name: 'n', authorization: 'Basic eA==', ...change });
  const folder = makeFolder(test, row());
  const replica = openReplica(folder, createMemoryLog().log);
  const names = [...replica.rows().keys()];
  writeRevokedHere(folder, new Map([['My App', TIME]]));
  assert.equal(replica.publish(), true);
  assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), new RegExp(`"revoked_at":"${TIME}"`));
  const again = openReplica(folder, createMemoryLog().log).rows();
  assert.deepEqual([[...again.keys()], [...again.values()]], [names, [row()]]);
});

it('the replica writes a revocation on this machine to the file when no row has changed', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  assert.equal(replica.publish(), true);
  writeRevokedHere(folder, new Map([['a', TIME]]));
  assert.equal(replica.publish(), true);
  assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), new RegExp(`"revoked_at":"${TIME}"`));
});

it('the replica sees a second revocation on this machine that has the time of the first', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  writeRevokedHere(folder, new Map([['x', TIME]]));
  const { atime, mtime } = statSync(revokedHerePath(folder));
  utimesSync(revokedHerePath(folder), atime, mtime);
  assert.equal(replica.publish(), true);
  writeRevokedHere(folder, new Map(['x', 'a'].map((id) => [id, TIME])));
  utimesSync(revokedHerePath(folder), atime, mtime);
  replica.apply({ version: 'h/1/6', changes: [['b', LIVE.replaceAll('a', 'b')]], isComplete: true });
  assert.equal(replica.publish(), true);
  assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), new RegExp(`"revoked_at":"${TIME}"`));
});

it('the replica removes a row and its lost revocation when the store removes the row', (test) => {
  const folder = makeFolder(test, REVOKED);
  const replica = openReplica(folder, createMemoryLog().log);
  replica.replaceAll({ version: 'new/1/1', entries: new Map([['a', { version: '1', value: LIVE }]]) }, false);
  assert.deepEqual(replica.lostChanges(), ['a']);
  replica.apply({ version: 'new/1/2', changes: [['a', undefined]], isComplete: true });
  assert.deepEqual([replica.lostChanges().length, replica.rows().size], [0, 0]);
});

it('the replica writes the file after each replacement of all rows, because the version is in the file', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  replica.publish();
  replica.apply({ version: 'h/1/5', changes: [], isComplete: true });
  assert.equal(replica.publish(), false);
  replica.replaceAll({ version: 'h/1/6', entries: new Map([['a', { version: '1', value: LIVE }]]) }, true);
  assert.equal(replica.publish(), true);
  assert.match(readFileSync(join(folder, 'production.json'), 'utf8'), /"h\/1\/6"/);
});

it('the replica keeps and counts no row that a replacement or a change has ended', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  const bytes = replica.bytes();
  const row = LIVE.replaceAll('a', 'b');
  replica.replaceAll({ version: 'h/1/6', entries: new Map([['b', { version: '6', value: row }]]) }, true);
  replica.apply({ version: 'h/1/7', changes: [['b', row]], isComplete: true });
  replica.publish();
  assert.deepEqual([[...replica.rows().values()], replica.bytes()], [[row], bytes]);
  assert.deepEqual([...(readTableFile(folder)?.rows.values() ?? [])], [row]);
});

it('the replica has no age until its rows are complete', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  assert.equal(replica.age(), null);
  replica.markComplete();
  assert.ok((openReplica(folder, createMemoryLog().log).age() ?? Number.POSITIVE_INFINITY) < 60_000);
});

it('a table from before the store is complete, and is replaced only by a store that has all its rows', (test) => {
  const folder = makeFolder(test, '');
  const { log, lines } = createMemoryLog();
  const path = join(folder, 'production.json');
  writeFileSync(path, `{"production":[${LIVE}]}`);
  const replica = openReplica(folder, log);
  assert.ok(Number(replica.age()) < 60_000 && replica.age() !== null);
  const snapshot = (...ids: string[]) => {
    return { version: 'h/1/1', entries: new Map(ids.map((id) => [id, { version: '1', value: `{"id":"${id}"}` }])) };
  };
  assert.throws(() => replica.replaceAll(snapshot('b'), true), {
    message: `${path} has 1 rows of its own that the store lacks. Run: gatefold store import, or move the file away`,
  });
  assert.deepEqual([[...replica.rows().keys()], replica.version()], [['a'], undefined]);
  replica.replaceAll(snapshot('a', 'b'), true);
  assert.deepEqual([[...replica.rows().keys()], replica.version()], [['a', 'b'], 'h/1/1']);
  replica.publish();
  assert.deepEqual(lines, []);
});

it('a file that is neither a table nor a copy of the store stays, and is an error', (test) => {
  const folder = makeFolder(test, '');
  const path = join(folder, 'production.json');
  writeFileSync(path, 'no table');
  assert.throws(() => openReplica(folder, createMemoryLog().log), /^Error: Cannot read .*production\.json: /);
  assert.equal(readFileSync(path, 'utf8'), 'no table');
});

it('the replica names the rows of which a new history has an older state, and the revocations that it lacks', (test) => {
  const folder = makeFolder(test, `${REVOKED},{"id":"b","name":"B"}`);
  const { log, lines } = createMemoryLog();
  const entries = new Map([
    ['a', { version: '5', value: LIVE }],
    ['b', { version: '6', value: '{"id":"b","name":"C"}' }],
  ]);
  const replica = openReplica(folder, log);
  replica.replaceAll({ version: 'new/1/9', entries }, false);
  assert.deepEqual(lines, [
    { event: 'store-rows-older', count: 1, names: ['a'] },
    { event: 'store-revocations-lost', count: 1, effect: 'they are written again' },
  ]);
  assert.deepEqual(replica.lostChanges(), ['a']);
});

it('the replica names the rows that a new history lacks', (test) => {
  const folder = makeFolder(test, `${LIVE},{"id":"b"}`);
  const { log, lines } = createMemoryLog();
  const entries = new Map([['a', { version: '1', value: LIVE }]]);
  openReplica(folder, log).replaceAll({ version: 'new/1/1', entries }, false);
  assert.deepEqual(lines, [{ event: 'store-rows-missing', count: 1, names: ['b'] }]);
});

it('the replica leaves the newest rows out of a file that would be too large, and keeps revocations live', (test) => {
  const folder = makeFolder(test, LIVE);
  const { log, lines } = createMemoryLog();
  const replica = openReplica(folder, log, 600);
  const row = (id: string, more = {}) => JSON.stringify({ id, note: 'x'.repeat(100), ...more });
  const entries = new Map(['a', 'b', 'c', 'd'].map((id) => [id, { version: '1', value: row(id) }]));
  replica.replaceAll({ version: 'h/1/9', entries }, true);
  replica.publish();
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['store-table-full'],
  );
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

for (const [missingBytes, leftOut] of [
  [0, []],
  [1, [1]],
] as const)
  it(`the replica leaves out ${leftOut[0] ?? 0} rows where ${missingBytes} bytes are missing`, (test) => {
    const { log, lines } = createMemoryLog();
    const maxBytes = 2 * (Buffer.byteLength('{"id":"a"}') + ROW_ROOM) - missingBytes;
    const replica = openReplica(makeFolder(test, LIVE), log, maxBytes);
    const entries = new Map(['a', 'b'].map((id) => [id, { version: '1', value: JSON.stringify({ id }) }]));
    replica.replaceAll({ version: 'h/1/9', entries }, true);
    replica.publish();
    assert.deepEqual(
      lines.map(({ rows_left_out }) => rows_left_out),
      leftOut,
    );
  });

// A rotation from the secret `old` to `new`, as this machine has seen it, and what the store has after a failover.
const rotations: readonly { name: string; seen: object; stored: object; expected: object; log?: string[] }[] = [
  { name: 'the old secret', seen: {}, stored: { hash: 'old' }, expected: { hash: 'new' } },
  {
    name: 'the old secret, and other fields',
    seen: { previous: [] },
    stored: { hash: 'old', groups: ['order'], previous: [{ hash: 'older', expires_at: TIME }] },
    expected: { hash: 'new', groups: ['order'], previous: [] },
  },
  {
    name: 'the old secret, where it overlaps',
    seen: { previous: [{ hash: 'old', expires_at: TIME }] },
    stored: { hash: 'old' },
    expected: { hash: 'new', previous: [{ hash: 'old', expires_at: TIME }] },
  },
  {
    name: 'a newer secret, which overlaps with the old one',
    seen: {},
    stored: {
      hash: 'newer',
      previous: [
        { hash: 'old', expires_at: TIME },
        { hash: 'other', expires_at: TIME },
      ],
    },
    expected: { hash: 'newer', previous: [{ hash: 'other', expires_at: TIME }] },
  },
  { name: 'a newer secret', seen: {}, stored: { hash: 'newer' }, expected: { hash: 'newer' } },
  {
    name: 'neither the rotation nor the revocation',
    seen: { revoked_at: TIME },
    stored: { hash: 'old' },
    expected: { hash: 'new', revoked_at: TIME },
  },
];
const seenWays = ['a change', 'a replacement of all rows'].flatMap((way) =>
  rotations.map((rotation) => ({ way, ...rotation })),
);
for (const { way, name, seen, stored, expected } of seenWays)
  it(`the replica keeps a secret refused that ${way} replaced, also after a restart, when the store has ${name}`, (test) => {
    const row = (fields: object) => JSON.stringify({ id: 'a', ...fields });
    const folder = makeFolder(test, row({ hash: 'old' }));
    const first = openReplica(folder, createMemoryLog().log);
    const next = row({ hash: 'new', ...seen });
    if (way !== 'a change')
      first.replaceAll({ version: 'h/1/6', entries: new Map([['a', { version: '6', value: next }]]) }, true);
    else first.apply({ version: 'h/1/6', changes: [['a', next]], isComplete: true });
    first.publish();
    const { log, lines } = createMemoryLog();
    const replica = openReplica(folder, log);
    const entries = new Map([['a', { version: '5', value: row(stored) }]]);
    replica.replaceAll({ version: 'new/1/5', entries }, false);
    replica.publish();
    const { production } = JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8'));
    assert.deepEqual(production, [{ id: 'a', ...expected }]);
    const older = lines.filter(({ event }) => event === 'store-rows-older');
    assert.deepEqual(
      older.map(({ names }) => names),
      [['a']],
    );
    const isLost = row(stored) !== JSON.stringify(production[0]);
    assert.deepEqual(replica.lostChanges(), isLost ? ['a'] : []);
    const lost = lines.filter(({ event }) => /^store-\w+-lost$/.test(String(event)));
    const expectedEvent = 'revoked_at' in seen ? 'store-revocations-lost' : 'store-rotations-lost';
    assert.deepEqual(
      lost.map(({ event, count }) => [event, count]),
      isLost ? [[expectedEvent, 1]] : [],
    );
    // The next process finds the same again, and another machine writes the change to the store.
    const again = openReplica(folder, createMemoryLog().log);
    again.replaceAll({ version: 'new/1/5', entries }, false);
    again.publish();
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8')).production, production);
    again.apply({ version: 'new/1/6', changes: [['a', JSON.stringify(production[0])]], isComplete: true });
    assert.deepEqual(again.lostChanges(), []);
  });

it('the replica accepts a secret that an operator brings back in the same history', (test) => {
  const row = (hash: string) => JSON.stringify({ id: 'a', hash });
  const folder = makeFolder(test, row('old'));
  const replica = openReplica(folder, createMemoryLog().log);
  for (const [index, hash] of ['new', 'old'].entries())
    replica.apply({ version: `h/1/${6 + index}`, changes: [['a', row(hash)]], isComplete: true });
  replica.replaceAll({ version: 'new/1/5', entries: new Map([['a', { version: '5', value: row('old') }]]) }, false);
  assert.deepEqual([replica.lostChanges(), replica.rows().get('a')], [[], row('old')]);
});

it('the replica names no row that was changed in the new history, or is only written in another way', (test) => {
  const folder = makeFolder(test, `${LIVE},{"id":"b","name":"B"}`);
  const { log, lines } = createMemoryLog();
  const entries = new Map([
    ['a', { version: '9', value: '{"id":"a","name":"other"}' }],
    ['b', { version: '2', value: '{ "id": "b", "name": "B" }' }],
  ]);
  openReplica(folder, log).replaceAll({ version: 'new/1/9', entries }, false);
  assert.deepEqual(
    lines.map(({ event }) => event),
    [],
  );
});

it('the copy has the last row of each name, whatever changed between two writes', (test) => {
  const folder = makeFolder(test, LIVE);
  const replica = openReplica(folder, createMemoryLog().log);
  const names = Array.from({ length: 40 }, (_, index) => (index % 4 === 0 ? `~${index}` : `id${index}`));
  const expected = new Map([['a', LIVE]]);
  let version = 0;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(names.length - 1), fc.boolean()), { maxLength: 6 }), (steps) => {
      const changes = steps.map(([index, isThere]): [string, string | undefined] => {
        const name = names[index] as string;
        const value = isThere ? JSON.stringify({ id: name, name: `${version}` }) : undefined;
        if (value === undefined) expected.delete(name);
        else expected.set(name, value);
        return [name, value];
      });
      replica.apply({ version: `new/1/${++version}`, changes, isComplete: true });
      replica.publish();
      const copy = readTableFile(folder);
      const sorted = (texts: Iterable<string>) => [...texts].sort();
      assert.deepEqual(sorted(copy?.rows.values() ?? []), sorted(expected.values()));
      const ids = [...(copy?.rows.values() ?? [])].map((row) => (JSON.parse(row) as { id: string }).id);
      const firstMade = ids.findIndex((id) => id.startsWith('~'));
      assert.ok(firstMade === -1 || ids.slice(firstMade).every((id) => id.startsWith('~')), 'made names are last');
    }),
    { numRuns: 200 },
  );
});

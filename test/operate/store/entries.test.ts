// Reading a table's file as the rows of the store, and which secrets of a row have ended.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { readTableFile, tableText, usableRow } from '../../../src/operate/store/entries.ts';
import { type EndedHashes, noteEndedHashes } from '../../../src/operate/store/lost-changes.ts';

function makeFolder(test: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-entries-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'production.json'), text);
  return folder;
}

const ROW = '{"id":"0123456789ab","revoked_at":"2026-01-01T00:00:00Z","revoked_at":null}';

it('readTableFile refuses a table with a repeated field in a row', (test) => {
  const folder = makeFolder(test, `{"production":[${ROW}]}`);
  assert.throws(() => readTableFile(folder), /production\/0 has the field "revoked_at" twice; remove one of them/);
});

it('usableRow returns the JSON of a row with at most 1000 lists and objects, and else a row that is quarantined', () => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  for (const value of ['{"id":"a"}', '1', nested(1000), `["${'x'.repeat(5000)}"]`])
    assert.equal(usableRow('a', value), value);
  for (const value of [nested(1001), '', '{', 'undefined']) {
    const { id, unusable } = JSON.parse(usableRow('a'.repeat(201), value));
    assert.equal(id, 'a'.repeat(200));
    assert.match(unusable, /^its value in the store is not JSON of at most \d+ bytes and 1000 lists and objects$/);
  }
});

it('readTableFile returns an empty version for a copy of the store with a repeated field in a row', (test) => {
  const folder = makeFolder(test, `{"store":{"version":"a/b/1"},"production":[${ROW}]}`);
  assert.equal(readTableFile(folder)?.copyMark?.version, '');
  const whole = makeFolder(test, '{"store":{"version":"a/b/1"},"production":[]}');
  assert.equal(readTableFile(whole)?.copyMark?.version, 'a/b/1');
});

it('readTableFile gives each row a name of its own, also rows with the same id', (test) => {
  const rows = ['{"id":"0123456789ab","x":1}', '{"id":"0123456789ab","x":2}', '{"x":3}', '{"x":3}'];
  const table = readTableFile(makeFolder(test, `{"production":[${rows}]}`));
  assert.deepEqual([...(table?.rows.values() ?? [])], rows);
  // Machines of two versions share a store, so they name a row alike.
  const names = [
    '0123456789ab',
    '~f51bce71ca8271a392b36204',
    '~54afd0d590e6b277d9cd1ce4',
    '~54afd0d590e6b277d9cd1ce4+2',
  ];
  assert.deepEqual([...(table?.rows.keys() ?? [])], names);
});

it('tableText writes a table with a row on each line, which readTableFile reads', (test) => {
  for (const rows of [[], ['{"id":"a"}'], ['{"id":"a"}', '{"id":"b"}']]) {
    const text = tableText(rows);
    assert.deepEqual([...(readTableFile(makeFolder(test, text))?.rows.values() ?? [])], rows);
    assert.equal(text.split('\n').length, rows.length === 0 ? 2 : rows.length + 3);
  }
});

/** Notes the changes from each of these states of a row to the next. Undefined stands for a removed row. */
function endedBy(...rows: readonly (object | undefined)[]): EndedHashes {
  const ended: EndedHashes = new Map();
  const texts = rows.map((row) => (row === undefined ? undefined : JSON.stringify(row)));
  for (const [index, text] of texts.slice(1).entries()) noteEndedHashes(ended, 'row', texts[index], text);
  return ended;
}

const hash = (i: number) => ({ hash: `h${i}` });
const endedRows: readonly (readonly [
  title: string,
  rows: readonly (object | undefined)[],
  ended: string[] | undefined,
])[] = [
  ['a rotation without overlap', [hash(1), hash(2)], ['h1']],
  ['a rotation with overlap', [hash(1), { ...hash(2), previous: [hash(1)] }], undefined],
  ['the end of an overlap', [hash(1), { ...hash(2), previous: [hash(1)] }, { ...hash(2), previous: [] }], ['h1']],
  ['a secret that is valid again', [hash(1), hash(2), hash(1)], ['h2']],
  ['the damage of a row', [hash(1), {}], undefined],
  ['a removed row', [hash(1), hash(2), undefined], undefined],
  ['30 rotations', Array.from({ length: 31 }, (_, i) => hash(i)), Array.from({ length: 20 }, (_, i) => `h${i + 10}`)],
];
for (const [title, rows, expected] of endedRows)
  it(`the ended secrets after ${title} are ${expected?.length ?? 0}`, () =>
    assert.deepEqual(endedBy(...rows).get('row'), expected));

// Changes to the table's text: which parts change, and which must stay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runAtOnce } from '../../../src/callers/credentials/table/slices.ts';
import { splitTable } from '../../../src/callers/credentials/table/split.ts';
import { parseTable } from '../../../src/callers/credentials/table/table.ts';
import { parseTableText } from '../../../src/callers/credentials/table/text.ts';
import { hashSecret, parseToken } from '../../../src/callers/credentials/token.ts';
import {
  createRow,
  MAX_APPLICATIONS,
  refuseRegistration,
  revokeRow,
  rotateRow,
} from '../../../src/callers/credentials/write/changes.ts';
import {
  type EditableTable,
  type EditOptions,
  editTableText,
} from '../../../src/callers/credentials/write/editable-table.ts';
import { ChangeRefused } from '../../../src/callers/credentials/write/table-file.ts';
import { makeRow, tableText } from '../../support/credentials-bench.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const DAY = 86_400_000;

function edit(text: string, mutate: (table: EditableTable) => void): string | undefined {
  return editText(text, mutate).text;
}

function editText<T>(text: string, mutate: (table: EditableTable) => T, options?: EditOptions) {
  const { text: after, result } = runAtOnce(editTableText(Buffer.from(text), mutate, options));
  return { text: after?.toString(), result };
}

test('editTableText appends a row on a line of its own, and keeps every other byte', () => {
  const row = { id: 'b', n: 1 };
  const added = '{"id":"b","n":1}';
  const rows: [string, string, string][] = [
    ['as shipped', '{ "production": [] }\n', `{ "production": [\n${added}\n] }\n`],
    ['one line', '{"production":[{"id":"a"}]}', `{"production":[{"id":"a"},\n${added}\n]}`],
    ['a row on each line', '{"production":[\n{"id":"a"}\n]}\n', `{"production":[\n{"id":"a"},\n${added}\n]}\n`],
    [
      'spread, with members before and after',
      '{\n  "v": 1,\n  "production": [\n    {\n      "id": "a"\n    }\n  ],\n  "w": [1, 2]\n}\n',
      `{\n  "v": 1,\n  "production": [\n    {\n      "id": "a"\n    },\n${added}\n],\n  "w": [1, 2]\n}\n`,
    ],
    [
      'rows that are not objects',
      '{"production":[null, "]}" ,[{}]]}',
      `{"production":[null, "]}" ,[{}],\n${added}\n]}`,
    ],
    ['a key that is spelled with escapes', '{"pro\\u0064uction":[ ]}', `{"pro\\u0064uction":[\n${added}\n]}`],
    [
      'members and rows with a field twice',
      '{"v":1,"v":2,"production":[{"a":1,"a":2}]}',
      `{"v":1,"v":2,"production":[{"a":1,"a":2},\n${added}\n]}`,
    ],
    ['a byte order mark', '\uFEFF{"production":[0]}', `\uFEFF{"production":[0,\n${added}\n]}`],
  ];
  for (const [name, before, after] of rows)
    assert.equal(
      edit(before, (table) => table.append(row)),
      after,
      name,
    );
});

test('editTableText keeps the other fields of a changed row, and all other rows', () => {
  const change = (fields: Record<string, unknown>) => (table: EditableTable) => table.change(1, fields);
  const rows: [string, string, Record<string, unknown>, string][] = [
    ['a field that is there', '{"a": 1.0,"b":"x\\"}"} ', { b: 'y' }, '{"a":1,"b":"y"}'],
    ['a new field', '{"a":1,"b":2}', { c: [3] }, '{"a":1,"b":2,"c":[3]}'],
    ['spread over lines', '{\n  "a": 1\n}', { c: 3 }, '{"a":1,"c":3}'],
    ['__proto__', '{"__proto__":{"x":1}}', { a: 2 }, '{"__proto__":{"x":1},"a":2}'],
  ];
  for (const [name, before, fields, after] of rows)
    assert.equal(
      edit(`{"production":[ {"a": 1.0} ,${before}, [ 7 ] ]}`, change(fields)),
      `{"production":[ {"a": 1.0} ,\n${after}, [ 7 ]\n]}`,
      name,
    );
});

test('editTableText removes rows at each place', () => {
  const rows: [number[], string][] = [
    [[0], '[1 , 2,3\n]'],
    [[1, 2], '[ 0,3\n]'],
    [[3], '[ 0,1 , 2\n]'],
    [[0, 1, 2, 3], '[\n]'],
  ];
  for (const [indexes, after] of rows)
    assert.equal(
      edit('{"production":[ 0,1 , 2,3 ]}', (table) => {
        for (const index of indexes) table.remove(index);
      }),
      `{"production":${after}}`,
    );
});

test('editTableText finds every row with a text, however the text is written', () => {
  const rows = ['{"id":"a"}', '{"id":"\\u0061"}', '{"id":"b","note":"a"}', '7', '{"id":"b"}', '{"deep":["\\\\"]}'];
  const find = (value: string) => editText(`{"production":[${rows.join()}]}`, ({ find }) => find(value)).result;
  assert.deepEqual(find('a').slice(0, 3), [0, 1, 2]);
  assert.ok(find('\\').includes(5));
  assert.deepEqual(find('none'), [1, 5], 'a row with an escape may have any text');
  assert.deepEqual(find(''), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(editText('{"production":[ ]}', ({ find }) => find('')).result, []);
  assert.deepEqual(editText('{"x":["a"],"production":[{"id":"b"}],"y":"a\\\\"}', ({ find }) => find('a')).result, []);
});

test('parseTableText refuses bytes that are not UTF-8, and quotes none of them', () => {
  const bytes = Buffer.from('{"production":[{"id":"caf\u00e9"}]}', 'latin1');
  assert.throws(() => parseTableText(bytes), new Error('it is not UTF-8'));
});

test('editTableText writes nothing without a change, and refuses a text that is not a table', () => {
  assert.deepEqual(
    editText('{"production":[7]}', (table) => table.row(0)),
    { text: undefined, result: 7 },
  );
  const append = (table: EditableTable) => table.append({});
  for (const text of ['{"production":[', '{"production":[{"id":]}', '{"production":[{},]}', '{"production":[{}{}]}'])
    assert.throws(() => edit(text, append), /it is not JSON/, text);
});

test('editTableText checks the rows that differ from those that are known to be JSON', () => {
  const rows = ['{"id":"a"}', '{"id":"b"}', '{"id":"c"}'];
  const known = runAtOnce(splitTable(Buffer.from(`{"production":[${rows.join()}]}`)));
  const append = (table: EditableTable) => table.append({ id: 'd' });
  for (const index of [0, 1, 2]) {
    const text = (row: string) => `{"production":[${rows.map((old, at) => (at === index ? row : old))}]}`;
    assert.throws(() => editText(text('{"id":}'), append, { known }), /it is not JSON/, `row ${index}`);
    const after = JSON.parse(editText(text('{"id":"x"}'), append, { known }).text ?? '') as { production: unknown[] };
    assert.deepEqual(after.production[index], { id: 'x' });
    assert.equal(after.production.length, 4);
  }
});

test('editTableText does not change a row that has a field twice, except in a copy, where the row stays unusable', () => {
  const { row, id } = makeRow({ revoked_at: '2026-01-01', note: 'a' });
  const other = makeRow();
  const text = tableText(other.row, row).replace('"note":"a"', '"revoked_at":null');
  assert.equal(parseTable(text).rows.size, 1);
  const message = 'the table/production/1 has the field "revoked_at" twice; remove one of them';
  const edits: ((table: EditableTable) => void)[] = [
    (table) => table.change(1, {}),
    (table) => table.remove(1),
    (table) => void revokeRow(table, id, NOW),
  ];
  for (const change of edits) assert.throws(() => edit(text, change), new Error(message));
  assert.ok(edit(text, (table) => void revokeRow(table, other.id, NOW))?.includes('"revoked_at":null'));
  const copy = text.replace('{', '{"store":{},');
  assert.throws(() => edit(copy, () => {}), /a copy of a store/);
  const after = editText(copy, (table) => table.change(1, { x: 1 }), { isCopyAllowed: true }).text ?? '';
  assert.match(parseTable(after).quarantined[0]?.reason ?? '', /revoked_at/);
  assert.equal(parseTable(after).rows.size, 1);
});

test('editTableText keeps the data of any JSON in any layout', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.constantFrom(0, 1, 2, '\t'),
      fc.jsonValue(),
      (rows, indent, other) => {
        const before = JSON.stringify({ other, production: rows, after: other }, null, indent);
        const after = edit(before, (table) => {
          table.append({ id: 'new' });
          table.append({ id: 'newer' });
          rows.forEach((row, index) => {
            if (typeof row === 'object' && row !== null && !Array.isArray(row) && Object.keys(row).length > 0)
              table.change(index, { field: 1 });
          });
        });
        const isChanged = (row: unknown) =>
          typeof row === 'object' && row !== null && !Array.isArray(row) && Object.keys(row).length > 0;
        const expected = rows.map((row) => (isChanged(row) ? { ...(row as object), field: 1 } : row));
        assert.deepEqual(
          JSON.parse(after ?? ''),
          JSON.parse(
            JSON.stringify({ other, production: [...expected, { id: 'new' }, { id: 'newer' }], after: other }),
          ),
        );
      },
    ),
    { numRuns: 300 },
  );
});

test('createRow returns a token and a row that the table accepts', () => {
  const { token, row } = createRow(
    { name: 'n', expiresAt: NOW + DAY, methods: ['GET'], handler: 'orders', description: 'd' },
    NOW,
  );
  assert.deepEqual(row, {
    id: token.id,
    name: 'n',
    hash: hashSecret(token.secret),
    handler: 'orders',
    methods: ['GET'],
    created_at: '2026-11-21T12:00:00.000Z',
    expires_at: '2026-11-22T12:00:00.000Z',
    description: 'd',
  });
  assert.equal(parseTable(tableText(row)).rows.size, 1);
  assert.throws(() => createRow({ name: '' }, NOW), new ChangeRefused('Cannot make the row: "name" is not a text'));
  assert.throws(() => createRow({ name: 'n', expiresAt: 8e15 }, NOW), ChangeRefused);
});

/** Rotates the row of `id`. Returns the row and the new token. */
function rotate(text: string, id: string, overlap: number, now = NOW) {
  const { text: after = '', result } = editText(text, (table) => rotateRow(table, id, overlap, now));
  const row = (JSON.parse(after) as { production: Record<string, unknown>[] }).production.find((row) => row.id === id);
  return { row: row as Record<string, unknown>, text: after, token: result.token.token };
}

test('rotateRow keeps earlier secrets until their overlap ends, and no secret without an overlap', () => {
  const { row, id } = makeRow({ colour: 'red' });
  const first = rotate(tableText(row), id, DAY);
  assert.deepEqual(first.row.previous, [{ hash: row.hash, expires_at: '2026-11-22T12:00:00.000Z' }]);
  assert.equal(first.row.hash, hashSecret(parseToken(first.token)?.secret ?? ''));
  assert.equal(first.row.colour, 'red');
  const second = rotate(first.text, id, DAY, NOW + DAY / 2);
  assert.equal((second.row.previous as unknown[]).length, 2);
  const third = rotate(second.text, id, DAY, NOW + DAY);
  assert.deepEqual(
    (third.row.previous as { hash: string }[]).map((entry) => entry.hash),
    [first.row.hash, second.row.hash],
  );
  assert.deepEqual(rotate(third.text, id, 0, NOW + DAY).row.previous, []);
  assert.equal('previous' in rotate(tableText(row), id, 0).row, false);
});

test('rotateRow and revokeRow refuse a missing or unusable row with one line', () => {
  const base = makeRow();
  const { id } = base;
  const rows: [string, unknown[], string][] = [
    ['no such row', [5, null], `Cannot rotate ${id}: there is no such row`],
    ['a repeated id', [base.row, base.row], `Cannot rotate ${id}: the table has several rows of this id`],
    [
      'quarantined',
      [{ ...base.row, methods: 5 }],
      `Cannot rotate ${id}: the row is quarantined, "methods" is not a list of HTTP methods`,
    ],
    [
      'literal',
      [{ id, authorization: 'k' }],
      `Cannot rotate ${id}: the row carries a literal "authorization"; issue a new one`,
    ],
    [
      'revoked',
      [{ ...base.row, revoked_at: '2026-01-01' }],
      `Cannot rotate ${id}: the row is revoked; issue a new one`,
    ],
    [
      'expired',
      [{ ...base.row, expires_at: '2026-11-21T12:00:00Z' }],
      `Cannot rotate ${id}: the row has expired; issue a new one`,
    ],
  ];
  for (const [name, table, message] of rows)
    assert.throws(() => rotate(tableText(...table), id, 0), new ChangeRefused(message), name);
  assert.throws(
    () => edit(tableText(), (table) => revokeRow(table, id, NOW)),
    new ChangeRefused(`Cannot revoke ${id}: there is no such row`),
  );
});

test('revokeRow revokes every row of the id, also quarantined rows, and keeps earlier dates', () => {
  const { row, id } = makeRow({ name: 5, revoked_at: null });
  const after = edit(tableText(row, { ...row, revoked_at: '2026-01-01' }, { ...row, revoked_at: true }), (table) => {
    assert.deepEqual(revokeRow(table, id, NOW), { name: id, revokedAt: '2026-01-01' });
  });
  const rows = (JSON.parse(after ?? '') as { production: { revoked_at: unknown }[] }).production;
  assert.deepEqual(
    rows.map((row) => row.revoked_at),
    ['2026-11-21T12:00:00.000Z', '2026-01-01', true],
  );
});

test('refuseRegistration counts only live rows with the same owner and name', () => {
  const owner = { issuer: 'i', subject: 's' };
  const rows: [string, unknown, boolean][] = [
    ['live', { name: 'n', owner }, true],
    ['another name', { name: 'm', owner }, false],
    ['another subject', { name: 'n', owner: { issuer: 'i', subject: 't' } }, false],
    ['another issuer', { name: 'n', owner: { issuer: 'j', subject: 's' } }, false],
    ['no owner', { name: 'n' }, false],
    ['a number instead of a row', 7, false],
    ['revoked', { name: 'n', owner, revoked_at: '2026-01-01' }, false],
    ['expired', { name: 'n', owner, expires_at: '2026-11-21T12:00:00Z' }, false],
    ['live until an expiry', { name: 'n', owner, expires_at: '2030-01-01', revoked_at: null }, true],
    ['an expiry that is not a time', { name: 'n', owner, expires_at: 'soon' }, true],
  ];
  for (const [name, row, expected] of rows) {
    const code = refuseRegistration([row], owner, 'n', NOW);
    assert.equal(code, expected ? 'ALREADY_REGISTERED' : undefined, name);
  }
  // Four of the rows are live and have this owner.
  const repeat = (times: number) => Array.from({ length: times }, () => rows.map(([, row]) => row)).flat();
  const code = (times: number) => refuseRegistration(repeat(times), owner, 'a new name', NOW);
  assert.equal(code(MAX_APPLICATIONS / 4 - 1), undefined);
  assert.equal(code(MAX_APPLICATIONS / 4), 'TOO_MANY_APPLICATIONS');
});

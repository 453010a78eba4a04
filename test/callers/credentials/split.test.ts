// The text of a table is split into rows without reading it as a whole. The parser of Node decides what is right.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRowIndex } from '../../../src/callers/credentials/table/indexed-rows.ts';
import type { CredentialRow } from '../../../src/callers/credentials/table/row.ts';
import { runAtOnce } from '../../../src/callers/credentials/table/slices.ts';
import { rowText, splitTable } from '../../../src/callers/credentials/table/split.ts';
import { compileTable } from '../../../src/callers/credentials/table/table.ts';
import { parseTableText } from '../../../src/callers/credentials/table/text.ts';
import { makeRow } from '../../support/credentials-bench.ts';

/** @returns the rows; or the reason why the text is refused */
function outcome(read: () => readonly unknown[]): unknown {
  try {
    return read();
  } catch (error) {
    return (error as Error).message;
  }
}

function splitRows(bytes: Buffer): unknown[] {
  const text = runAtOnce(splitTable(bytes));
  return Array.from(text.ends, (_, index) => JSON.parse(rowText(text, index)) as unknown);
}

const DAMAGE = ['', '"', ',', '[', ']', '{', '}', ':', '\\', '\u00a0', '\u0001', 'é', '"production":[1],', ' ,'];

test('splitTable finds the rows that JSON.parse finds, in any JSON and in any layout', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.constantFrom(undefined, 1, '\t'),
      fc.jsonValue(),
      (rows, indent, other) => {
        const text = JSON.stringify({ other, production: rows, after: other }, null, indent);
        for (const bytes of [Buffer.from(text), Buffer.from(`\uFEFF${text}`)])
          assert.deepEqual(splitRows(bytes), JSON.parse(text).production);
      },
    ),
    { numRuns: 300 },
  );
});

test('compileTable accepts a damaged text only where JSON.parse does', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 4 }),
      fc.jsonValue(),
      fc.array(fc.tuple(fc.nat({ max: 300 }), fc.constantFrom(...DAMAGE)), { minLength: 1, maxLength: 2 }),
      (rows, other, damages) => {
        let text = JSON.stringify({ other, production: rows, after: other });
        for (const [at, damage] of damages)
          text = text.slice(0, at % text.length) + damage + text.slice((at % text.length) + (damage === '' ? 1 : 0));
        const bytes = Buffer.from(text);
        const expected = outcome(() => parseTableText(bytes).rows);
        // The two parsers may report different faults of a text that has several.
        const refusal = outcome(() => [runAtOnce(compileTable(bytes))]);
        assert.equal(typeof refusal, typeof expected, text);
        if (typeof expected !== 'string') assert.deepEqual(splitRows(bytes), expected, text);
      },
    ),
    { numRuns: 1000 },
  );
});

test('splitTable reads a string, an escape and a character that lie across two steps', () => {
  const step = 256 * 1024;
  for (const [name, item] of [
    ['characters', '😀'],
    ['escapes', '\\"'],
    ['quotes', '",'],
  ] as const)
    for (let shift = 0; shift < 5; shift++) {
      const padding = 'x'.repeat(step - 40 + shift) + item.repeat(20);
      const text = JSON.stringify({ padding, production: [{ padding }, 7], x: 1 });
      assert.deepEqual(splitRows(Buffer.from(text)), [{ padding }, 7], `${name} ${shift}`);
    }
  for (let shift = 0; shift < 5; shift++) {
    const bytes = Buffer.from(JSON.stringify({ padding: 'x'.repeat(step + 40), production: [] }));
    bytes[step - 2 + shift] = 0x80;
    assert.throws(() => splitRows(bytes), new Error('it is not UTF-8'));
  }
});

test('a row index finds each of many rows, also those whose ids have the same hash', () => {
  // FNV-1a gives both ids of a pair the same hash.
  const pairs = [
    ['costarring', 'liquid'],
    ['declinate', 'macallums'],
    ['altarage', 'zinke'],
  ].flat();
  const rows = [...pairs, ...Array.from({ length: 5000 }, (_, i) => `id ${i}`)].map((id) => {
    const application = { owner: { issuer: 'i', subject: String(id.length) } };
    return { id, digest: undefined, application } as unknown as CredentialRow;
  });
  const index = createRowIndex(rows.length, (number) => rows[number] as CredentialRow);
  for (const [number, row] of rows.entries()) {
    assert.equal(index.has(row.id), false);
    index.add(row, number);
  }
  for (const row of rows) assert.equal(index.get(row.id), row);
  assert.equal(index.get('none'), undefined);
  assert.deepEqual([...index.values()], rows);
  const expected = rows.filter(({ id }) => id.length === 6);
  assert.deepEqual(index.ownedBy({ issuer: 'i', subject: '6' }), expected);
  index.quarantine('liquid');
  assert.deepEqual([index.get('liquid'), index.has('liquid'), index.size], [undefined, true, rows.length - 1]);
  assert.equal(index.get('costarring')?.id, 'costarring');
});

test('a table keeps no compiled row of its load, but the same row for each request of a caller', () => {
  const { row, id } = makeRow();
  const table = runAtOnce(compileTable(Buffer.from(JSON.stringify({ production: [row] }))));
  assert.equal(table.rows.get(id), table.rows.get(id));
});

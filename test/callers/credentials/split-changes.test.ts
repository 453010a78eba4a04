// A table that is read by its changes is the table that is read as a whole, whatever has changed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runAtOnce } from '../../../src/callers/credentials/table/slices.ts';
import { splitTable } from '../../../src/callers/credentials/table/split.ts';
import { splitChanges } from '../../../src/callers/credentials/table/split-changes.ts';
import { type CredentialTable, compileTable, literalKey } from '../../../src/callers/credentials/table/table.ts';

const IDS = ['000000000001', '000000000002', '000000000003', '000000000004', 'x', 'row 2'];
const OWNERS = ['s', 't'].map((subject) => ({ issuer: 'i', subject }));
const HASH = `sha256:${'A'.repeat(43)}`;

function maybe(...values: unknown[]) {
  return fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 });
}

const row = fc.record(
  {
    id: fc.constantFrom(...IDS),
    name: fc.constantFrom('n', 'm', 5),
    hash: fc.constantFrom(HASH, HASH, HASH, 'bad', undefined),
    authorization: maybe('k', 'l'),
    owner: maybe(...OWNERS),
    description: maybe('é"\\}],{"production":[', 'd'),
    revoked_at: maybe('2020-01-01', null),
    methods: maybe(['GET'], 'x'),
  },
  { noNullPrototype: true },
);
const item: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 9, arbitrary: row },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, [], ']}', '{"production":[', 7) },
);

/** A change of the rows, or of the text. */
type Edit =
  | { readonly kind: 'rows'; readonly at: number; readonly removed: number; readonly items: readonly unknown[] }
  | { readonly kind: 'text'; readonly at: number; readonly removed: number; readonly insert: string }
  | { readonly kind: 'layout'; readonly indent: number; readonly version: number };

const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('rows' as const),
      at: fc.nat(9),
      removed: fc.nat(2),
      items: fc.array(item, { maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('text' as const),
      at: fc.nat(1000),
      removed: fc.nat(2),
      insert: fc.constantFrom('', ',', '7,', ',7', '],"x":[', '"', '{', '}', ']', '\\', '\n', 'é', '"production":[],'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('layout' as const),
      indent: fc.constantFrom(0, 1),
      version: fc.nat(2000),
    }),
  },
);

function facts(table: CredentialTable) {
  const sorted = (values: Iterable<unknown>) => Array.from(values, (value) => JSON.stringify(value)).sort();
  return {
    rows: [...table.rows.values()],
    size: table.rows.size,
    byId: IDS.map((id) => table.rows.get(id)),
    owned: OWNERS.map((owner) => table.rows.ownedBy(owner)),
    literals: ['k', 'l'].map((value) => [...table.literals].find(([key]) => key === literalKey(Buffer.from(value)))),
    // The order of the checks decides whether a repeated id or a repeated literal is found first, or both.
    quarantined: new Set(
      sorted(
        table.quarantined.map((row) => ({ ...row, reason: row.reason.replace(/^its .* is in the/, 'a field in the') })),
      ),
    ),
    members: table.text?.members,
  };
}

function compile(bytes: Buffer, previous?: CredentialTable): CredentialTable | string {
  try {
    return runAtOnce(compileTable(bytes, { previous }));
  } catch (error) {
    return (error as Error).message;
  }
}

function isReadByChanges(bytes: Buffer, { text }: CredentialTable): boolean {
  try {
    return text !== undefined && runAtOnce(splitChanges(bytes, text)) !== undefined;
  } catch {
    return false;
  }
}

const RUNS = Number(process.env.RUNS ?? 200);

test('compileTable makes the same table with the previous one as without, after any series of changes', () => {
  let partial = 0;
  fc.assert(
    fc.property(fc.array(item, { maxLength: 8 }), fc.array(edit, { minLength: 1, maxLength: 6 }), (first, edits) => {
      let rows = first;
      let layout = { indent: 0, version: 0 };
      const write = () =>
        JSON.stringify({ store: { version: layout.version }, production: rows, after: 1 }, null, layout.indent);
      let table = compile(Buffer.from(write()));
      for (const change of edits) {
        if (change.kind === 'layout') layout = change;
        if (change.kind === 'rows')
          rows = rows.toSpliced(change.at % (rows.length + 1), change.removed, ...change.items);
        let text = write();
        if (change.kind === 'text') {
          const at = change.at % text.length;
          text = text.slice(0, at) + change.insert + text.slice(at + change.removed);
        }
        const bytes = Buffer.from(text);
        const previous = typeof table === 'string' ? undefined : table;
        if (previous !== undefined && isReadByChanges(bytes, previous)) partial++;
        const next = compile(bytes, previous);
        const whole = compile(bytes);
        if (typeof next === 'string' || typeof whole === 'string') assert.equal(next, whole, text);
        else assert.deepEqual(facts(next), facts(whole), text);
        if (typeof next !== 'string') table = next;
      }
    }),
    { numRuns: RUNS },
  );
  assert.ok(partial > RUNS / 4, `${partial} of the texts were read by their changes`);
});

test('splitChanges finds the row that has changed among many, and reads no other', () => {
  const rows = Array.from(
    { length: 3000 },
    (_, i) => ({ id: `${i}`, note: 'x'.repeat(300) }) as { id: string; note?: string },
  );
  const textOf = (list: readonly unknown[]) => Buffer.from(JSON.stringify({ store: list.length, production: list }));
  const old = runAtOnce(splitTable(textOf(rows)));
  const changed = { id: 'changed' };
  const cases: [string, readonly unknown[], number, number][] = [
    ['the first', rows.with(0, changed), 0, 2999],
    ['one within', rows.with(1234, changed), 1234, 1765],
    ['the last', rows.with(-1, changed), 2999, 0],
    ['a new one', [...rows, changed], 2999, 0],
    ['one less', rows.toSpliced(5, 1), 5, 2993],
    ['none', rows, 2999, 0],
  ];
  for (const [name, list, head, tail] of cases) {
    const bytes = textOf(list);
    const changes = runAtOnce(splitChanges(bytes, old));
    assert.deepEqual([changes?.head, changes?.tail], [head, tail], name);
    const { ends, members, listStart, listEnd } = runAtOnce(splitTable(bytes));
    const { text } = changes ?? {};
    assert.deepEqual(
      [text?.ends, text?.members, text?.listStart, text?.listEnd],
      [ends, members, listStart, listEnd],
      name,
    );
  }
});

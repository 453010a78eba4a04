// Finds the rows of a large table in its text. The text is in one buffer, outside of the heap of V8. In memory, each
// row costs some 24 bytes beside the text. A row is compiled when a request needs it, and the latest ones are kept.
import { createBoundedMap } from '../../../base/bounded-map.ts';
import type { CredentialRow, Owner } from './row.ts';
import type { Sliced } from './slices.ts';

/** Compiled rows that a table keeps, at about 1 KB each. */
const MAX_COMPILED = 10_000;
const INSERTS_A_STEP = 10_000;

/** Id → row. The ids of quarantined rows are known, but they lead to no row. */
export type IndexedRows = Pick<ReturnType<typeof createRowIndex>, 'size' | 'get' | 'values' | 'ownedBy' | 'columns'>;

/** @param compile compiles the row with a number, which was added before */
export function createRowIndex(count: number, compile: (number: number) => CredentialRow) {
  /**
   * The facts about each row, by its number in the text: the hash of the id, which is 0 for a row that is quarantined;
   * and the hash of the owner, which is 0 for a row without owner. `literals` has the numbers of the rows with a
   * literal instead of a digest.
   */
  const columns = { ids: new Uint32Array(count), owners: new Uint32Array(count), literals: new Set<number>() };
  /** A hash table with open addressing: the numbers of rows plus one, at most two thirds full. */
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(count * 1.5 + 1)));
  const quarantinedIds = new Set<string>();
  const compiledRows = createBoundedMap<CredentialRow>(MAX_COMPILED);
  let size = 0;

  function find(id: string): { readonly row: CredentialRow; readonly number: number } | undefined {
    const hash = hashOf(id);
    for (let slot = firstSlot(hash); slots[slot] !== 0; slot = nextSlot(slot)) {
      const number = (slots[slot] as number) - 1;
      if (columns.ids[number] !== hash) continue;
      // Two ids may have the same hash.
      const row = compile(number);
      if (row.id === id) return { row, number };
    }
    return undefined;
  }

  const firstSlot = (hash: number) => hash & (slots.length - 1);
  const nextSlot = (slot: number) => (slot + 1) & (slots.length - 1);

  function get(id: string): CredentialRow | undefined {
    if (quarantinedIds.has(id)) return undefined;
    const compiledRow = compiledRows.get(id);
    if (compiledRow !== undefined) return compiledRow;
    const row = find(id)?.row;
    if (row !== undefined) compiledRows.set(id, row);
    return row;
  }

  function* compileAll(hashes: Uint32Array, wanted?: number): Generator<CredentialRow> {
    for (const [number, hash] of hashes.entries()) {
      if (hash === 0 || (wanted !== undefined && hash !== wanted)) continue;
      if (columns.ids[number] !== 0) yield compile(number);
    }
  }

  function insert(hash: number, number: number): void {
    columns.ids[number] = hash;
    let slot = firstSlot(hash);
    while (slots[slot] !== 0) slot = nextSlot(slot);
    slots[slot] = number + 1;
    size++;
  }

  return {
    columns,
    /** The number of rows, without quarantined ones. */
    get size() {
      return size;
    },
    get,
    /** Compiles all rows, one after the other, in the order of the table. */
    values: () => compileAll(columns.ids),
    ownedBy: ({ issuer, subject }: Owner) =>
      [...compileAll(columns.owners, hashOf(`${issuer} ${subject}`))].filter(
        ({ application: { owner } }) => owner?.subject === subject && owner.issuer === issuer,
      ),
    /** Whether the id is known, also as that of a quarantined row. */
    has: (id: string) => quarantinedIds.has(id) || find(id) !== undefined,
    /** Adds the row with this number in the text, which must be valid and whose id must be new. */
    add(row: CredentialRow, number: number): void {
      const { owner } = row.application;
      if (owner !== undefined) columns.owners[number] = hashOf(`${owner.issuer} ${owner.subject}`);
      if (row.digest === undefined) columns.literals.add(number);
      insert(hashOf(row.id), number);
    },
    /** Adds rows of an old index that are the same in the new text. Quarantined rows and literals are left out. */
    *keep(old: typeof columns, oldNumber: number, firstNumber: number, rowCount: number): Sliced<void> {
      columns.owners.set(old.owners.subarray(oldNumber, oldNumber + rowCount), firstNumber);
      for (let index = 0; index < rowCount; index++) {
        const hash = old.ids[oldNumber + index] as number;
        if (hash !== 0 && !old.literals.has(oldNumber + index)) insert(hash, firstNumber + index);
        if (index % INSERTS_A_STEP === 0) yield;
      }
    },
    /** Makes the id lead to no row. */
    quarantine(id: string): void {
      const found = find(id);
      quarantinedIds.add(id);
      if (found === undefined) return;
      columns.ids[found.number] = 0;
      size--;
    },
  };
}

/** FNV-1a with a last mix, because the low bits choose the slot. Never 0. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0 || 1;
}

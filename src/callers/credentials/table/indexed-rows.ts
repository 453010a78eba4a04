// Finds the rows of a large table in its text. The text is in one buffer, outside of the heap of V8. In memory, each
// row costs some 24 bytes beside the text. A row is compiled when a request needs it, and the latest ones are kept.
import { createBoundedMap } from '../../../base/bounded-map.ts';
import type { Owner } from './table.ts';

/** Compiled rows that a table keeps, at about 1 KB each. */
const MAX_COMPILED = 10_000;

/** The index needs only these fields of a compiled row. */
interface Row {
  readonly id: string;
  readonly application: { readonly owner?: Owner };
}

/** Id → row. The ids of quarantined rows are known, but they lead to no row. */
export interface IndexedRows<R extends Row> {
  /** The number of rows, without quarantined ones. */
  readonly size: number;
  get(id: string): R | undefined;
  /** Compiles all rows, one after the other, in the order of the table. */
  values(): Iterable<R>;
  /** Compiles all rows of an owner. */
  ownedBy(owner: Owner): R[];
}

export interface RowIndex<R extends Row> extends IndexedRows<R> {
  /** Whether the id is known, also as that of a quarantined row. */
  has(id: string): boolean;
  /** Adds the row with this number in the text, which must be valid and whose id must be new. */
  add(row: R, number: number): void;
  /** Makes the id lead to no row. */
  quarantine(id: string): void;
}

/** @param compile compiles the row with a number, which was added before */
export function createRowIndex<R extends Row>(count: number, compile: (number: number) => R): RowIndex<R> {
  /** The hash of the id of each row; 0 for a row that was not added. */
  const idHashes = new Uint32Array(count);
  /** The hash of the owner of each row; 0 for a row without owner. */
  const ownerHashes = new Uint32Array(count);
  /** A hash table with open addressing: the numbers of rows plus one, at most two thirds full. */
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(count * 1.5 + 1)));
  const quarantinedIds = new Set<string>();
  const compiledRows = createBoundedMap<R>(MAX_COMPILED);
  let size = 0;

  function find(id: string): R | undefined {
    const hash = hashOf(id);
    for (let slot = firstSlot(hash); slots[slot] !== 0; slot = nextSlot(slot)) {
      const number = (slots[slot] as number) - 1;
      if (idHashes[number] !== hash) continue;
      // Two ids may have the same hash.
      const row = compile(number);
      if (row.id === id) return row;
    }
    return undefined;
  }

  const firstSlot = (hash: number) => hash & (slots.length - 1);
  const nextSlot = (slot: number) => (slot + 1) & (slots.length - 1);

  function get(id: string): R | undefined {
    if (quarantinedIds.has(id)) return undefined;
    const compiledRow = compiledRows.get(id);
    if (compiledRow !== undefined) return compiledRow;
    const row = find(id);
    if (row !== undefined) compiledRows.set(id, row);
    return row;
  }

  function* compileAll(hashes: Uint32Array, wanted?: number): Generator<R> {
    for (const [number, hash] of hashes.entries()) {
      if (hash === 0 || (wanted !== undefined && hash !== wanted)) continue;
      const row = compile(number);
      if (!quarantinedIds.has(row.id)) yield row;
    }
  }

  return {
    get size() {
      return size;
    },
    get,
    values: () => compileAll(idHashes),
    ownedBy: ({ issuer, subject }) =>
      [...compileAll(ownerHashes, hashOf(`${issuer} ${subject}`))].filter(
        ({ application: { owner } }) => owner?.subject === subject && owner.issuer === issuer,
      ),
    has: (id) => quarantinedIds.has(id) || find(id) !== undefined,
    add(row, number) {
      const { owner } = row.application;
      if (owner !== undefined) ownerHashes[number] = hashOf(`${owner.issuer} ${owner.subject}`);
      const hash = hashOf(row.id);
      idHashes[number] = hash;
      let slot = firstSlot(hash);
      while (slots[slot] !== 0) slot = nextSlot(slot);
      slots[slot] = number + 1;
      size++;
    },
    quarantine(id) {
      if (!quarantinedIds.has(id) && find(id) !== undefined) size--;
      quarantinedIds.add(id);
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

// A map with a maximum size. When the map is full, it drops the entries that were used longest ago. The entries are in
// two halves, a young and an old one. Nearly all reads find their entry in the young half, and such a read costs
// one look-up and no reordering.

export interface BoundedMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  /** Returns the entries; those in the young half come first. */
  entries(): Iterable<[string, V]>;
  size(): number;
}

/** @param maxEntries the maximum size; of all entries, at least the `maxEntries / 2` used last stay in the map */
export function createBoundedMap<V>(maxEntries: number): BoundedMap<V> {
  const half = Math.max(1, Math.floor(maxEntries / 2));
  let young = new Map<string, V>();
  let old = new Map<string, V>();

  function set(key: string, value: V): void {
    if (young.size >= half && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const oldValue = old.get(key);
      if (oldValue === undefined) return undefined;
      old.delete(key);
      set(key, oldValue);
      return oldValue;
    },
    set(key, value) {
      old.delete(key);
      set(key, value);
    },
    *entries() {
      yield* young;
      yield* old;
    },
    size: () => young.size + old.size,
  };
}

// A map with a maximum size, which keeps the entries that were used last. The entries are in two halves, `young` and
// `old`. When `young` is full, it becomes `old`, and the entries of the old half before it are dropped. A read moves
// its entry to `young`. Nearly all reads find their entry there already, and such a read costs one look-up.

/** A map for any values but undefined. */
export interface BoundedMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  /** Returns the entries; those in the young half come first. */
  entries(): Iterable<[string, V]>;
  size(): number;
}

/** @param maxEntries the maximum number of entries; the half of them that was used last is never dropped */
export function createBoundedMap<V>(maxEntries: number): BoundedMap<V> {
  const halfSize = Math.max(1, Math.floor(maxEntries / 2));
  let young = new Map<string, V>();
  let old = new Map<string, V>();

  function set(key: string, value: V): void {
    if (young.size >= halfSize && !young.has(key)) {
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

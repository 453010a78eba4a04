// A map with a maximum size, which drops entries that were not used recently. The entries are in two halves, `young`
// and `old`. When `young` is full, all entries of `old` are dropped, and `young` becomes `old`. A read moves its entry
// to `young`. Nearly all reads find their entry in `young`, and such a read costs one look-up.

/** No value may be undefined. */
export type BoundedMap<V> = ReturnType<typeof createBoundedMap<V>>;

/** @param maxEntries with 100, the 50 entries that were used most recently are never dropped */
export function createBoundedMap<V>(maxEntries: number) {
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
    get(key: string): V | undefined {
      const value = young.get(key);
      if (value !== undefined) return value;
      const oldValue = old.get(key);
      if (oldValue === undefined) return undefined;
      old.delete(key);
      set(key, oldValue);
      return oldValue;
    },
    set(key: string, value: V): void {
      old.delete(key);
      set(key, value);
    },
    *entries(): Generator<[string, V]> {
      yield* young;
      yield* old;
    },
    size: () => young.size + old.size,
  };
}

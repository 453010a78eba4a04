// A map that forgets what has not been asked for longest. In two halves, so that a hit in the younger one, which nearly
// all are, costs one look-up and no reordering.

export interface BoundedMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  /** Those last asked for come before the others. */
  entries(): Iterable<[string, V]>;
  /** Entries at the moment. */
  size(): number;
}

/** @param most entries at most; at least half as many are the ones last asked for */
export function createBoundedMap<V>(most: number): BoundedMap<V> {
  const half = Math.max(1, Math.floor(most / 2));
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
      const aged = old.get(key);
      if (aged === undefined) return undefined;
      old.delete(key);
      set(key, aged);
      return aged;
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

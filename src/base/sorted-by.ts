/** Returns the items in the order of `<`. All machines and locales have it, so a rewritten file has the same lines. */
export function sortedBy<Item>(items: Iterable<Item>, textOf: (item: Item) => string): Item[] {
  return [...items].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

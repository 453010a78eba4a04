/**
 * Returns the items in the order of their texts. All machines and locales have this order, that of `<`, so a file that
 * is written again has no other lines.
 */
export function sortedBy<Item>(items: Iterable<Item>, textOf: (item: Item) => string): Item[] {
  return [...items].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

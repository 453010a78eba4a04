// How the page of a group is spelt in a URL, in the log and in the metrics.

/** Returns the page of a group as most people write it: `user` for `User`. */
export function pageOf(group: string): string {
  return group.charAt(0).toLowerCase() + group.slice(1);
}

const pages = new Map<string, string>();

/**
 * Names what served a request: the page of its group, or of an explicit row its name. Empty: nothing was found to
 * serve.
 */
export function servingPage({ group, page, operation }: { group: string; page: string; operation: string }): string {
  // A page that no group serves may be any text. The page of an explicit row is one of a table.
  if (group === '') return operation === '' ? '' : page;
  const known = pages.get(group) ?? pageOf(group);
  pages.set(group, known);
  return known;
}

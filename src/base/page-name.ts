// Names the page of a group, which is its name in a URL, in the log and in the metrics.

/** Returns the usual spelling of a group's page: `user` for `User`. */
export function pageOf(group: string): string {
  return group.charAt(0).toLowerCase() + group.slice(1);
}

const pages = new Map<string, string>();

/** Returns the page of the group or of the explicit route that served a request; empty: nothing served it. */
export function servingPage({ group, page, operation }: { group: string; page: string; operation: string }): string {
  // Without a group and an operation, the page is any text that a client sent. An explicit route's page is constant.
  if (group === '') return operation === '' ? '' : page;
  const servedPage = pages.get(group) ?? pageOf(group);
  pages.set(group, servedPage);
  return servedPage;
}

// How a URL spells a group. It knows the names of groups, and no request.

/** The page of a group, as most clients write it: `user` for `User`. */
export function pageOf(group: string): string {
  return group.charAt(0).toLowerCase() + group.slice(1);
}

const pages = new Map<string, string>();

interface Served {
  /** '' where no group serves. */
  readonly group: string;
  /** As the request has it. */
  readonly page: string;
  readonly operation: string;
}

/** The page of the group that serves; of an explicit route its name; '' where nothing serves: that page may be any text. */
export function servingPage({ group, page, operation }: Served): string {
  if (group === '') return operation === '' ? '' : page;
  let spelt = pages.get(group);
  if (spelt === undefined) {
    spelt = pageOf(group);
    pages.set(group, spelt);
  }
  return spelt;
}

// Converts between the name of a group and the name of its page: `User` and `user`, `v2/Order` and `v2/order`. URLs,
// the log and the metrics use the name of the page. Files use the name of the group.

/**
 * The name of the service file in a list of groups. No URL can name the service file, because the name of a group
 * begins with an upper case letter.
 */
export const SERVICE = 'service';

const PAGE = /^([a-z][a-z0-9-]*\/)?([A-Za-z])([A-Za-z0-9_-]*)$/;

/** Returns the usual spelling of a group's page: `user` for `User`. */
export function pageOf(group: string): string {
  const at = group.lastIndexOf('/') + 1;
  return group.slice(0, at) + group.charAt(at).toLowerCase() + group.slice(at + 1);
}

/**
 * Returns the group of a page. Returns undefined for a text that cannot name a group, such as `..`, `__proto__` or
 * `a.b`.
 */
export function groupNameOf(page: string): string | undefined {
  const [, folder = '', first, rest] = PAGE.exec(page) ?? [];
  return first === undefined ? undefined : `${folder}${first.toUpperCase()}${rest}`;
}

const pages = new Map<string, string>();

/**
 * Returns the page of the group or of the explicit route that served a request. Returns an empty text when nothing
 * served the request.
 */
export function servingPage({
  group,
  groupInUrl,
  operation,
}: Record<'group' | 'groupInUrl' | 'operation', string>): string {
  // Without a group and an operation, `groupInUrl` can be any text that a client sent, so it is not returned. With an
  // operation but no group, an explicit route served the request, and the page of such a route is constant.
  if (group === '') return operation === '' ? '' : groupInUrl;
  let servedPage = pages.get(group);
  if (servedPage === undefined) {
    servedPage = pageOf(group);
    pages.set(group, servedPage);
  }
  return servedPage;
}

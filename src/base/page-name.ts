// Converts between the name of a group in files and its name in URLs: `User` and `user`, `v2/Order` and `v2/order`. The
// log and the metrics call the name in URLs `page`.

/**
 * The name of the service file in a list of groups. No URL can name the service file, because the name of a group
 * begins with an upper case letter.
 */
export const SERVICE = 'service';

const GROUP_IN_URL = /^([a-z][a-z0-9-]*\/)?([A-Za-z])([A-Za-z0-9_-]*)$/;

/** Returns the usual spelling of a group in URLs: `user` for `User`, `v2/order` for `v2/Order`. */
export function urlNameOf(group: string): string {
  const nameStart = group.lastIndexOf('/') + 1;
  return group.slice(0, nameStart) + group.charAt(nameStart).toLowerCase() + group.slice(nameStart + 1);
}

/**
 * Returns the name of the group that a URL names. Returns undefined for a text that cannot name a group, such as `..`,
 * `__proto__` or `a.b`.
 */
export function groupNameOf(urlName: string): string | undefined {
  const [, folder = '', first, rest] = GROUP_IN_URL.exec(urlName) ?? [];
  return first === undefined ? undefined : `${folder}${first.toUpperCase()}${rest}`;
}

/** Name of a group in files → its name in URLs. */
const servedPages = new Map<string, string>();

/**
 * Returns the `page` of a request for the log and the metrics: the group that served the request, as URLs name it, or
 * the page of a route that Gatefold itself has, such as `openapi.json`. Returns an empty text when nothing served the
 * request.
 */
export function servingPage({
  group,
  groupInUrl,
  operation,
}: Record<'group' | 'groupInUrl' | 'operation', string>): string {
  // With an operation but no group, a route of Gatefold itself served the request, and its page is constant. With
  // neither of them, `groupInUrl` can be any text that a client sent, so it is not returned.
  if (group === '') return operation === '' ? '' : groupInUrl;
  let page = servedPages.get(group);
  if (page === undefined) {
    page = urlNameOf(group);
    servedPages.set(group, page);
  }
  return page;
}

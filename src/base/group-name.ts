// Converts between the two names of a group: `v2/Order` in the code, and `v2/order` in URLs, the log and the metrics.

/**
 * The name that stands for `service.ts` in lists of groups. `service.ts` has the rules for all controllers and is no
 * group. No URL leads to it, because `groupNameOf` makes the first letter upper case: the URL `service` names the group
 * `Service`.
 */
export const SERVICE = 'service';

/** The group of `Controller.ts`, which answers the base path and what no named group takes; `v2/` in a folder. */
export const ROOT = '/';

/** The group of `fallback` of the service file. No URL leads to this name. */
export const FALLBACK = '/*';

export function isRoot(group: string): boolean {
  return group.endsWith('/');
}

/** Captures the folder with its slash (if any), the first letter, and the other letters of a group. */
const GROUP_IN_URL = /^([a-z][a-z0-9-]*\/)?([A-Za-z])([A-Za-z0-9_-]*)$/;
const ROOT_OR_FALLBACK = /^(?:(?:[a-z][a-z0-9-]*)?\/|\/\*)$/;

/** Returns the name of a group in URLs: `user` for `User`, `v2/order` for `v2/Order`. */
export function urlNameOf(group: string): string {
  const nameStart = group.lastIndexOf('/') + 1;
  return group.slice(0, nameStart) + group.charAt(nameStart).toLowerCase() + group.slice(nameStart + 1);
}

/** Returns the group that a URL names: `User` for `user`; undefined for a text that names none, such as `__proto__`. */
export function groupNameOf(urlName: string): string | undefined {
  if (ROOT_OR_FALLBACK.test(urlName)) return urlName;
  const [, folder = '', first, rest] = GROUP_IN_URL.exec(urlName) ?? [];
  return first === undefined ? undefined : `${folder}${first.toUpperCase()}${rest}`;
}

/** Returns the part of an id that stands for a group: `v2_order` for `v2/order`, and `root` or `v2_root` for a root. */
export function idOfGroup(urlName: string): string {
  return `${urlName}${isRoot(urlName) ? 'root' : ''}`.replace(/^\//, '').replace('/', '_');
}

/** Matches the id of a root group. A client writes a named group that has such a name, `root`, as `Root`. */
export const ROOT_ID = /^(?:([a-z][a-z0-9-]*)_)?root$/;

/** Returns the path of a group: `/api/order` for `order`, and `/api` for the root group. */
export function pathOfGroup(basePath: string, urlName: string): string {
  return `${basePath}/${urlName}`.replace(/\/+$/, '');
}

/** A cache of `urlNameOf`, because each request needs the name: `User` → `user`. */
const urlNamesByGroup = new Map<string, string>();

type Served = Record<'group' | 'groupInUrl' | 'operation', string>;

/** Returns `page` for the log and the metrics: `user` for a group, `openapi.json` for a route of Gatefold, else ''. */
export function servingPage({ group, groupInUrl, operation }: Served): string {
  // Without an operation, `groupInUrl` is any text of a client, which would make the number of metrics unlimited.
  if (group === '') return operation === '' ? '' : groupInUrl;
  let page = urlNamesByGroup.get(group);
  if (page === undefined) {
    page = urlNameOf(group);
    urlNamesByGroup.set(group, page);
  }
  return page;
}

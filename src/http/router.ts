// Matches a path with the ordered rows of routes.ts, by comparing decoded segments. No row becomes a regular
// expression, and a table with a row that no request can reach is refused.
import type { Route } from './routes.ts';
import { parsePath, type TargetPath } from './target.ts';

/** The rows that a path fits. The first of these rows that takes the method serves the request (decisions 1.2). */
export interface ResolvedPath {
  readonly path: TargetPath;
  /** In the order of the table. */
  readonly matches: readonly RouteMatch[];
}

export interface RouteMatch {
  readonly route: Route;
  /** The handler group that the path names, or the path below `/api` of an explicit row; '' for `/api` alone. */
  readonly page: string;
  /** All segments after the page. */
  readonly slugs: readonly string[];
}

export interface Router {
  /** @throws HttpError MALFORMED_PATH */
  resolve(rawPath: string): ResolvedPath;
}

/**
 * Maximum number of paths in the cache of resolved paths. A flood of made-up paths removes the usual paths from the
 * cache, and they are then resolved again.
 */
export const KEPT_PATHS = 1000;
/**
 * Maximum characters of a path in the cache. One character takes 30 bytes of segments and slugs in the worst case, so
 * all paths take 4 MB at most.
 */
export const MAX_KEPT_PATH_LENGTH = 128;

/**
 * @param basePath the base path of the routes; the segments after it name the page of an explicit row
 * @throws Error naming both rows, when one can never be reached
 */
export function createRouter(routes: readonly Route[], basePath = '/api'): Router {
  const depth = basePath.split('/').length - 1;
  const patterns = routes.map((route) => parsePattern(route, routes));
  checkReachable(patterns);
  const resolvedPaths = new Map<string, ResolvedPath>();
  return {
    resolve(rawPath) {
      const resolvedBefore = resolvedPaths.get(rawPath);
      if (resolvedBefore !== undefined) return resolvedBefore;
      const isKept = rawPath.length <= MAX_KEPT_PATH_LENGTH;
      // The path is cut from the request target, and V8 would keep the whole target in memory. A target may have a
      // query of up to 16 KiB, so the path is copied.
      const path = parsePath(isKept ? Buffer.from(rawPath, 'latin1').toString('latin1') : rawPath);
      const matches = patterns.map((pattern) => match(pattern, path, depth)).filter((fit) => fit !== undefined);
      const resolved = { path, matches };
      if (!isKept) return resolved;
      if (resolvedPaths.size >= KEPT_PATHS) resolvedPaths.delete(resolvedPaths.keys().next().value as string);
      resolvedPaths.set(path.raw, resolved);
      return resolved;
    },
  };
}

export function firstFit(matches: readonly RouteMatch[], method: string): RouteMatch | undefined {
  for (const match of matches) {
    if (takesMethod(match.route, method)) return match;
  }
  return undefined;
}

export function takesMethod(route: Route, method: string): boolean {
  return route.methods === 'any' || route.methods.includes(method);
}

interface Pattern {
  readonly route: Route;
  readonly literals: readonly string[];
  readonly tail: 'none' | 'page' | 'params';
  /**
   * Whether the path must end in a slash; `either` when a slash at the end has no meaning (decisions 1.3). The slash
   * has a meaning only where both spellings are rows: `/api` and `/api/`.
   */
  readonly slash: boolean | 'either';
}

function parsePattern(route: Route, routes: readonly Route[]): Pattern {
  const segments = route.path.split('/').filter((segment) => segment !== '');
  const last = segments.at(-1);
  const tail = last === '{params}' ? 'params' : last === '{page}' ? 'page' : 'none';
  const literals = tail === 'none' ? segments : segments.slice(0, -1);
  const invalid = literals.find((literal) => /[{}%]/.test(literal));
  if (invalid !== undefined)
    throw new Error(
      `route ${describe(route)}: ${invalid} is not a literal segment; only the last may be {page} or {params}`,
    );
  const hasSlash = route.path.endsWith('/');
  const other = hasSlash ? route.path.slice(0, -1) : `${route.path}/`;
  return { route, literals, tail, slash: routes.some(({ path }) => path === other) ? hasSlash : 'either' };
}

function match({ route, literals, tail, slash }: Pattern, path: TargetPath, depth: number): RouteMatch | undefined {
  const { segments, trailingSlash } = path;
  const rest = segments.length - literals.length;
  if (tail === 'none' ? rest !== 0 : tail === 'page' ? rest !== 1 : rest < 1) return undefined;
  if (slash !== 'either' && slash !== trailingSlash) return undefined;
  for (let i = 0; i < literals.length; i++) {
    if (literals[i] !== segments[i]) return undefined;
  }
  if (tail === 'none') return { route, page: segments.slice(depth).join('/'), slugs: [] };
  const [first = '', ...others] = segments.slice(literals.length);
  // One decoded segment may contain `<controller>/<method>`. Such a segment is split once and no further.
  const cut = first.indexOf('/');
  if (cut < 0) return { route, page: first, slugs: others };
  return { route, page: first.slice(0, cut), slugs: [first.slice(cut + 1), ...others].filter((slug) => slug !== '') };
}

function checkReachable(patterns: readonly Pattern[]): void {
  patterns.forEach((below, i) => {
    const above = patterns.slice(0, i).filter((pattern) => coversPath(pattern, below));
    const methods = below.route.methods;
    const swallower =
      methods === 'any'
        ? above.find(({ route }) => route.methods === 'any')
        : methods.every((method) => above.some(({ route }) => takesMethod(route, method)))
          ? above.find(({ route }) => methods.some((method) => takesMethod(route, method)))
          : undefined;
    if (swallower === undefined) return;
    throw new Error(
      `route ${describe(below.route)} can never be reached: ${describe(swallower.route)} is above it and takes all of its requests`,
    );
  });
}

/** Says whether `above` fits every path that `below` fits. */
function coversPath(above: Pattern, below: Pattern): boolean {
  if (above.literals.length > below.literals.length) return false;
  if (above.literals.some((literal, i) => literal !== below.literals[i])) return false;
  const sameSlash = above.slash === 'either' || above.slash === below.slash;
  const further = below.literals.length - above.literals.length;
  if (above.tail === 'none') return further === 0 && below.tail === 'none' && sameSlash;
  if (above.tail === 'page')
    return (further === 1 && below.tail === 'none') || (further === 0 && below.tail === 'page');
  return further >= 1 || below.tail !== 'none';
}

function describe(route: Route): string {
  return `${route.methods === 'any' ? 'any' : route.methods.join(', ')} ${route.path}`;
}

// Matches a path with the ordered rows of routes.ts, by comparing decoded segments. A table with a row that no request
// can reach is refused.
import type { Route } from './routes.ts';
import { parsePath, type TargetPath } from './target.ts';

/** The rows that match a path. The first of them that takes the method serves the request (decisions 1.2). */
export interface ResolvedPath {
  readonly path: TargetPath;
  /** In the order of the table. */
  readonly matches: readonly RouteMatch[];
}

export interface RouteMatch {
  readonly route: Route;
  /** The group that the path names. For a row of one operation, the path below `/api`. '' for `/api` alone. */
  readonly groupInUrl: string;
  /** The decoded segments after `groupInUrl`. */
  readonly slugs: readonly string[];
}

export interface Router {
  /** @throws HttpError MALFORMED_PATH */
  resolve(rawPath: string): ResolvedPath;
}

/**
 * Maximum number of paths in the cache of resolved paths. A flood of made-up paths only makes the usual paths be
 * resolved again.
 */
export const MAX_CACHED_PATHS = 1000;
/**
 * Maximum characters of a path in the cache. In the worst case a character takes 30 bytes of segments, so the whole
 * cache takes 4 MB at most.
 */
export const MAX_CACHED_PATH_LENGTH = 128;

/**
 * @param basePath the path that all routes begin with
 * @throws Error naming both rows, when one row takes all requests of the other
 */
export function createRouter(routes: readonly Route[], basePath = '/api'): Router {
  const depth = basePath.split('/').length - 1;
  const patterns = routes.map((route) => parsePattern(route, routes));
  checkReachable(patterns);
  const cache = new Map<string, ResolvedPath>();
  return {
    resolve(rawPath) {
      const cached = cache.get(rawPath);
      if (cached !== undefined) return cached;
      const isCacheable = rawPath.length <= MAX_CACHED_PATH_LENGTH;
      // A slice would keep its whole request target in memory, with a query of up to 16 KiB. So a path is copied for
      // the cache.
      const path = parsePath(isCacheable ? Buffer.from(rawPath, 'latin1').toString('latin1') : rawPath);
      const matches = patterns.map((pattern) => match(pattern, path, depth)).filter((fit) => fit !== undefined);
      const resolved = { path, matches };
      if (!isCacheable) return resolved;
      if (cache.size >= MAX_CACHED_PATHS) cache.delete(cache.keys().next().value as string);
      cache.set(path.raw, resolved);
      return resolved;
    },
  };
}

/** Returns the first match whose row takes the method. */
export function firstMatch(matches: readonly RouteMatch[], method: string): RouteMatch | undefined {
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
   * Whether the path must end in a slash. `either` when that does not matter (decisions 1.3): the table does not have
   * both spellings, such as `/api` and `/api/`.
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
  const otherSpelling = hasSlash ? route.path.slice(0, -1) : `${route.path}/`;
  return { route, literals, tail, slash: routes.some(({ path }) => path === otherSpelling) ? hasSlash : 'either' };
}

function match({ route, literals, tail, slash }: Pattern, path: TargetPath, depth: number): RouteMatch | undefined {
  const { segments, trailingSlash } = path;
  const rest = segments.length - literals.length;
  if (tail === 'none' ? rest !== 0 : tail === 'page' ? rest !== 1 : rest < 1) return undefined;
  if (slash !== 'either' && slash !== trailingSlash) return undefined;
  for (let i = 0; i < literals.length; i++) {
    if (literals[i] !== segments[i]) return undefined;
  }
  if (tail === 'none') return { route, groupInUrl: segments.slice(depth).join('/'), slugs: [] };
  const [first = '', ...others] = segments.slice(literals.length);
  // A decoded segment can contain a slash: `order%2Fdeleted`. Such a segment is split at its first slash only.
  const slashIndex = first.indexOf('/');
  if (slashIndex < 0) return { route, groupInUrl: first, slugs: others };
  return {
    route,
    groupInUrl: first.slice(0, slashIndex),
    slugs: [first.slice(slashIndex + 1), ...others].filter((slug) => slug !== ''),
  };
}

function checkReachable(patterns: readonly Pattern[]): void {
  patterns.forEach((below, i) => {
    const above = patterns.slice(0, i).filter((pattern) => coversPath(pattern, below));
    const methods = below.route.methods;
    const coveringPattern =
      methods === 'any'
        ? above.find(({ route }) => route.methods === 'any')
        : methods.every((method) => above.some(({ route }) => takesMethod(route, method)))
          ? above.find(({ route }) => methods.some((method) => takesMethod(route, method)))
          : undefined;
    if (coveringPattern === undefined) return;
    throw new Error(
      `route ${describe(below.route)} can never be reached: ${describe(coveringPattern.route)} is above it and takes all of its requests`,
    );
  });
}

/** Says whether `above` matches every path that `below` matches. */
function coversPath(above: Pattern, below: Pattern): boolean {
  if (above.literals.length > below.literals.length) return false;
  if (above.literals.some((literal, i) => literal !== below.literals[i])) return false;
  const fitsSameSlash = above.slash === 'either' || above.slash === below.slash;
  const extraSegments = below.literals.length - above.literals.length;
  if (above.tail === 'none') return extraSegments === 0 && below.tail === 'none' && fitsSameSlash;
  if (above.tail === 'page')
    return (extraSegments === 1 && below.tail === 'none') || (extraSegments === 0 && below.tail === 'page');
  return extraSegments >= 1 || below.tail !== 'none';
}

function describe(route: Route): string {
  return `${route.methods === 'any' ? 'any' : route.methods.join(', ')} ${route.path}`;
}

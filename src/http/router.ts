// Matches a path with the ordered rows of routes.ts, by comparing decoded segments. A table with a row that no request
// can reach is refused. The decisions in the comments are those of docs/DECISIONS.md.
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
  /** The group that the path names: `order` for `/api/order/7`. For other rows, such as `/api/docs`, it is `docs`. */
  readonly groupInUrl: string;
  /** The decoded segments after `groupInUrl`. */
  readonly slugs: readonly string[];
}

export interface Router {
  /** @throws HttpError MALFORMED_PATH */
  resolve(rawPath: string): ResolvedPath;
}

/** Maximum number of paths in the cache. A flood of made-up paths only makes the usual paths be resolved again. */
export const MAX_CACHED_PATHS = 1000;
/** Maximum characters of a cached path. A character takes up to 30 bytes of segments, so the cache takes up to 4 MB. */
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
  /** Whether `{params}` follows the literals. */
  readonly hasParams: boolean;
  /**
   * `true` when the path must end in a slash, `false` when it must not. Usually both fit (`either`). Only a table that
   * has both spellings, such as `/api` and `/api/`, distinguishes them (decisions 1.3).
   */
  readonly endsInSlash: boolean | 'either';
}

function parsePattern(route: Route, routes: readonly Route[]): Pattern {
  const segments = route.path.split('/').filter((segment) => segment !== '');
  const hasParams = segments.at(-1) === '{params}';
  const literals = hasParams ? segments.slice(0, -1) : segments;
  const invalid = literals.find((literal) => /[{}%]/.test(literal));
  if (invalid !== undefined)
    throw new Error(`route ${describe(route)}: ${invalid} is not a literal segment; only the last may be {params}`);
  const hasSlash = route.path.endsWith('/');
  const otherSpelling = hasSlash ? route.path.slice(0, -1) : `${route.path}/`;
  const endsInSlash = routes.some(({ path }) => path === otherSpelling) ? hasSlash : 'either';
  return { route, literals, hasParams, endsInSlash };
}

/** @param depth the number of segments of the base path */
function match(pattern: Pattern, path: TargetPath, depth: number): RouteMatch | undefined {
  const { route, literals, hasParams, endsInSlash } = pattern;
  const { segments } = path;
  if (hasParams ? segments.length <= literals.length : segments.length !== literals.length) return undefined;
  if (endsInSlash !== 'either' && endsInSlash !== path.endsInSlash) return undefined;
  for (let i = 0; i < literals.length; i++) {
    if (literals[i] !== segments[i]) return undefined;
  }
  if (!hasParams) return { route, groupInUrl: segments.slice(depth).join('/'), slugs: [] };
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
  if (above.hasParams) return below.hasParams || below.literals.length > above.literals.length;
  const fitsSameSlash = above.endsInSlash === 'either' || above.endsInSlash === below.endsInSlash;
  return !below.hasParams && below.literals.length === above.literals.length && fitsSameSlash;
}

function describe(route: Route): string {
  return `${route.methods === 'any' ? 'any' : route.methods.join(', ')} ${route.path}`;
}

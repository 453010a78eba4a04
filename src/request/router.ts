// Matches a path with the ordered rows of routes.ts, by comparing decoded segments. A table with a dead row (a row that
// no request can reach) is refused.
import type { Route } from './routes.ts';
import { parsePath, type TargetPath } from './target.ts';

/** The rows that match a path. The first row that takes the method serves the request (docs/DECISIONS.md, 1.2). */
export interface ResolvedPath {
  readonly path: TargetPath;
  /** In the order of the table. */
  readonly matches: readonly RouteMatch[];
}

export interface RouteMatch {
  readonly route: Route;
  /** The first segment, which names a group unless it is `docs` or its like: `order` for `/api/order/7`. */
  readonly groupInUrl: string;
  /** The decoded segments after `groupInUrl`. */
  readonly slugs: readonly string[];
  /** Whether `groupInUrl` is a part of a segment that has a slash, as in `order%2F7`. */
  readonly isPartOfSegment: boolean;
}

export type Router = ReturnType<typeof createRouter>;

/** Maximum number of paths in the cache. After a flood of made-up paths, the usual ones are resolved again. */
const MAX_CACHED_PATHS = 1000;
/** Maximum characters of a cached path. A character takes up to 30 bytes of segments, so the cache takes up to 4 MB. */
const MAX_CACHED_PATH_LENGTH = 128;

/** @throws Error when a row is malformed or dead; the message names it and the first row that takes its requests */
export function createRouter(routes: readonly Route[], basePath = '/api') {
  const depth = basePath.split('/').length - 1;
  const patterns = routes.map((route) => parsePattern(route, routes));
  checkReachable(patterns);
  const cache = new Map<string, ResolvedPath>();
  return {
    resolve(rawPath: string): ResolvedPath {
      const cached = cache.get(rawPath);
      if (cached !== undefined) return cached;
      const isCacheable = rawPath.length <= MAX_CACHED_PATH_LENGTH;
      // `rawPath` can be a slice, which keeps the whole request target in memory, with a query of up to 16 KiB. So the
      // path is copied for the cache.
      const path = parsePath(isCacheable ? Buffer.from(rawPath, 'latin1').toString('latin1') : rawPath);
      const matches = patterns.map((pattern) => match(pattern, path, depth)).filter((row) => row !== undefined);
      const resolved = { path, matches };
      if (!isCacheable) return resolved;
      // The first key of a Map is the oldest.
      if (cache.size >= MAX_CACHED_PATHS) cache.delete(cache.keys().next().value as string);
      cache.set(path.raw, resolved);
      return resolved;
    },
  };
}

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
  readonly hasParams: boolean;
  /**
   * `either`, unless the table has both spellings of the path, such as `/api` and `/api/` (docs/DECISIONS.md,
   * 1.3). Then `true` when a path must end in a slash, and `false` when a path must not.
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
  if (!hasParams) return { route, groupInUrl: segments[depth] ?? '', slugs: [], isPartOfSegment: false };
  const [first = '', ...others] = segments.slice(literals.length);
  // A decoded segment can contain a slash: `order%2Fdeleted`. Such a segment is split at its first slash only.
  const slashIndex = first.indexOf('/');
  if (slashIndex < 0) return { route, groupInUrl: first, slugs: others, isPartOfSegment: false };
  return {
    route,
    groupInUrl: first.slice(0, slashIndex),
    slugs: [first.slice(slashIndex + 1), ...others].filter((slug) => slug !== ''),
    isPartOfSegment: true,
  };
}

/** @throws Error when the rows above a row, one or several, take all its requests */
function checkReachable(patterns: readonly Pattern[]): void {
  patterns.forEach((lower, i) => {
    const covering = patterns.slice(0, i).filter((upper) => coversPath(upper, lower));
    const methods = lower.route.methods;
    const firstCovering =
      methods === 'any'
        ? covering.find(({ route }) => route.methods === 'any')
        : methods.every((method) => covering.some(({ route }) => takesMethod(route, method)))
          ? covering.find(({ route }) => methods.some((method) => takesMethod(route, method)))
          : undefined;
    if (firstCovering === undefined) return;
    throw new Error(
      `route ${describe(lower.route)} can never be reached: ${describe(firstCovering.route)} is above it and takes all of its requests`,
    );
  });
}

/** Says whether `upper` matches every path that `lower` matches. */
function coversPath(upper: Pattern, lower: Pattern): boolean {
  if (upper.literals.length > lower.literals.length) return false;
  if (upper.literals.some((literal, i) => literal !== lower.literals[i])) return false;
  if (upper.hasParams) return lower.hasParams || lower.literals.length > upper.literals.length;
  const fitsSameSlash = upper.endsInSlash === 'either' || upper.endsInSlash === lower.endsInSlash;
  return !lower.hasParams && lower.literals.length === upper.literals.length && fitsSameSlash;
}

function describe(route: Route): string {
  return `${route.methods === 'any' ? 'any' : route.methods.join(', ')} ${route.path}`;
}

// The routes of a group: refuses names and sets of names that make no sense, and finds the route that fits a path. The
// grammar of a name is base/route-name.ts. Patterns are compared segment by segment: none becomes a regular expression.
// This file reads nothing of a request but the verb and the decoded segments.
import { METHODS } from '../base/builtins.ts';
import { namesOf, type Segment, segmentsOf, splitRouteName, VERB_OPERATIONS } from '../base/route-name.ts';

export interface GroupRoute {
  /** The name of the operation, as written. */
  readonly name: string;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** The last segment takes all that is left. */
  readonly takesRest: boolean;
}

export interface RouteFit {
  readonly route: GroupRoute;
  /** The values of the named segments, decoded. */
  readonly path: Record<string, string>;
}

/**
 * @returns undefined for a name that is not meant as a route
 * @throws Error one line that says what is wrong with it
 */
export function parseRouteName(name: string): GroupRoute | undefined {
  const split = splitRouteName(name);
  const refuse = (reason: string): never => {
    throw new Error(`${JSON.stringify(name)} is no route: ${reason}`);
  };
  if (split === undefined) {
    // A name that begins with an HTTP method and a space is meant as a route; any other odd name is no operation.
    const [word = '', ...rest] = name.split(' ');
    return rest.length > 0 && METHODS.includes(word.toUpperCase())
      ? refuse(`it must begin with one of ${[...VERB_OPERATIONS.keys()].join(', ')}, in capitals`)
      : undefined;
  }
  const { verb, pattern } = split;
  if (pattern.startsWith('/')) refuse('a pattern begins without a slash, since it stands below the group');
  const segments = segmentsOf(pattern);
  for (const { literal } of segments) {
    if (literal === '') refuse('a segment of it is empty; the bare group is the operation of the verb, such as index');
    if (literal !== undefined && /[\s{}*%?#\\]/.test(literal))
      refuse(`${JSON.stringify(literal)} is neither {name}, {name*} nor a literal segment`);
  }
  const names = namesOf(segments);
  const twice = names.find((captured, i) => names.indexOf(captured) < i);
  if (twice !== undefined) refuse(`it has {${twice}} twice`);
  const early = segments.slice(0, -1).find(isRest);
  if (early !== undefined) refuse(`{${namesOf([early])[0]}*} takes the rest, so it must be last`);
  return { name, verb, segments, takesRest: segments.some(isRest) };
}

function isRest(segment: Segment): boolean {
  return segment.literal === undefined && segment.isRest;
}

/**
 * @param posted names of operations that POST reaches by their name, before any route
 * @throws Error naming both, when one route takes all requests of a later one
 */
export function checkReachable(routes: readonly GroupRoute[], posted: readonly string[]): void {
  routes.forEach((below, i) => {
    const above = routes.slice(0, i).find((route) => route.verb === below.verb && covers(route, below));
    if (above !== undefined)
      throw new Error(
        `route '${below.name}' can never be reached: '${above.name}' stands above it and fits all of its paths`,
      );
    const first = below.segments[0]?.literal;
    if (below.verb === 'POST' && first !== undefined && posted.includes(first))
      throw new Error(
        `route '${below.name}' can never be reached: the operation ${first} takes every POST to its name`,
      );
  });
}

/** Whether every path that `below` fits is one that `above` fits too. */
function covers(above: GroupRoute, below: GroupRoute): boolean {
  const { length } = above.segments;
  if (above.takesRest ? below.segments.length < length : below.takesRest || below.segments.length !== length)
    return false;
  return above.segments.every(({ literal }, i) => literal === undefined || literal === below.segments[i]?.literal);
}

/** First fit. HEAD falls to GET where no route of its own fits. */
export function fitRoute(routes: readonly GroupRoute[], verb: string, path: readonly string[]): RouteFit | undefined {
  for (const route of routes) {
    if (route.verb === verb && fits(route, path)) return { route, path: capture(route, path) };
  }
  return verb === 'HEAD' ? fitRoute(routes, 'GET', path) : undefined;
}

/** The methods under which a path exists. */
export function verbsOf(routes: readonly GroupRoute[], path: readonly string[]): Set<string> {
  const verbs = new Set<string>();
  for (const route of routes) if (fits(route, path)) verbs.add(route.verb);
  if (verbs.has('GET')) verbs.add('HEAD');
  return verbs;
}

function fits({ segments, takesRest }: GroupRoute, path: readonly string[]): boolean {
  const { length } = segments;
  if (takesRest ? path.length < length : path.length !== length) return false;
  for (let i = 0; i < length; i++) {
    const literal = segments[i]?.literal;
    if (literal !== undefined && literal !== path[i]) return false;
  }
  return true;
}

function capture({ segments, takesRest }: GroupRoute, path: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {};
  segments.forEach((segment, i) => {
    if (segment.literal !== undefined) return;
    const isRest = takesRest && i === segments.length - 1;
    values[segment.name] = isRest ? path.slice(i).join('/') : (path[i] as string);
  });
  return values;
}

// The routes of a group: a method whose name is an HTTP method and a pattern, `'GET {id}/items/{item}'`. Parses such
// names, refuses those that can never be reached, and finds the one that fits. Patterns are compared segment by
// segment: none ever becomes a regular expression. It knows nothing of requests beyond the verb and the decoded
// segments.
import { METHODS } from '../base/builtins.ts';

export interface GroupRoute {
  /** As written: the name of the operation. */
  readonly name: string;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** Its last segment takes all that is left, one segment at least. */
  readonly takesRest: boolean;
}

/** One that is captured has a name. */
export type Segment = { readonly literal: string } | { readonly literal: undefined; readonly name: string };

export interface RouteFit {
  readonly route: GroupRoute;
  /** What the named segments are, decoded. */
  readonly path: Record<string, string>;
}

const VERBS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const NAMED_SEGMENT = /^\{([A-Za-z][A-Za-z0-9_]*)(\*?)\}$/;

/**
 * @returns undefined for a name that is not meant as a route
 * @throws Error one line that says what is wrong with it
 */
export function parseRouteName(name: string): GroupRoute | undefined {
  const space = name.indexOf(' ');
  const verb = name.slice(0, Math.max(space, 0));
  // Whoever begins a name with an HTTP method and a space means a route; any other odd name is no operation, as ever.
  if (!METHODS.includes(verb.toUpperCase())) return undefined;
  const refuse = (reason: string): never => {
    throw new Error(`${JSON.stringify(name)} is no route: ${reason}`);
  };
  if (!VERBS.includes(verb)) refuse(`it must begin with one of ${VERBS.join(', ')}, in capitals`);
  const pattern = name.slice(space + 1);
  if (pattern.startsWith('/')) refuse('a pattern begins without a slash, since it stands below the group');
  const pieces = pattern.split('/');
  const names = new Set<string>();
  let takesRest = false;
  const segments = pieces.map((piece, i): Segment => {
    const [, captured, star] = NAMED_SEGMENT.exec(piece) ?? [];
    if (captured === undefined) {
      if (piece === '') refuse('a segment of it is empty; the bare group is the operation of the verb, such as index');
      if (/[\s{}*%?#\\]/.test(piece))
        refuse(`${JSON.stringify(piece)} is neither {name}, {name*} nor a literal segment`);
      return { literal: piece };
    }
    if (names.has(captured)) refuse(`it has {${captured}} twice`);
    names.add(captured);
    if (star === '*' && i < pieces.length - 1) refuse(`{${captured}*} takes the rest, so it must be last`);
    takesRest = star === '*';
    return { literal: undefined, name: captured };
  });
  return { name, verb, segments, takesRest };
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

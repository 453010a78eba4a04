// The routes of a group, such as `GET {id}`. A name that is invalid, or that another one contradicts, refuses the file.
// Patterns are compared segment by segment, without regular expressions. base/route-name.ts has the grammar of a name.
import { METHODS } from '../base/builtins.ts';
import { LoadRefusal } from '../base/load-refusal.ts';
import {
  ANY_VERB,
  methodOf,
  namesOf,
  type Segment,
  segmentsOf,
  splitRouteName,
  VERB_OPERATIONS,
} from '../base/route-name.ts';

export interface GroupRoute {
  readonly name: string;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** Whether the last segment, `{name*}`, takes all further segments of the path. */
  readonly takesRest: boolean;
}

/** Returns undefined for a name that is not meant as a route. @throws LoadRefusal */
export function parseRouteName(name: string): GroupRoute | undefined {
  const split = splitRouteName(name);
  const refuse = (reason: string): never => {
    throw new LoadRefusal('INVALID_ROUTE', `${JSON.stringify(name)} is no route: ${reason}`);
  };
  if (split === undefined) {
    // A name that begins with an HTTP method and a space is meant as a route. Any other name is not.
    const [word = '', ...rest] = name.split(' ');
    return rest.length > 0 && [...METHODS, ANY_VERB].includes(word.toUpperCase())
      ? refuse(`it must begin with one of ${[...VERB_OPERATIONS.keys(), ANY_VERB].join(', ')}, in capitals`)
      : undefined;
  }
  const { verb, pattern } = split;
  if (pattern?.startsWith('/')) refuse('a pattern begins without a slash, since it stands below the group');
  const segments = segmentsOf(split);
  for (const [i, segment] of segments.entries()) {
    if (segment.literal === '') refuse(`a segment of it is empty; the bare group is '${verb}' without a space`);
    if (
      /[\s{}*%?#\\]/.test(segment.literal ?? segment.suffix) ||
      (segment.literal === undefined && segment.isRest && segment.suffix !== '')
    )
      refuse(`${JSON.stringify(pattern?.split('/')[i])} is neither {name}, {name}.json, {name*} nor a literal segment`);
    const [foreign, dots, captured] = /^(?::|\[+(\.{3})?|<(?:\w+:)?)(\w+).*/.exec(segment.literal ?? '') ?? [];
    if (foreign !== undefined)
      refuse(`${foreign} is a literal here; a segment with a name is {${captured}${dots === undefined ? '' : '*'}}`);
  }
  const names = namesOf(segments);
  const repeated = names.find((captured, i) => names.indexOf(captured) < i);
  if (repeated !== undefined) refuse(`it has {${repeated}} twice`);
  const misplaced = segments.slice(0, -1).find(isRest);
  if (misplaced !== undefined) refuse(`{${namesOf([misplaced])[0]}*} takes the rest, so it must be last`);
  return { name, verb, segments, takesRest: segments.some(isRest) };
}

function isRest(segment: Segment): boolean {
  return segment.literal === undefined && segment.isRest;
}

/**
 * Builds the routes of a group in the order in which a request tries them. Routes for `ANY` come last. In a segment, a
 * literal comes before `{name}.json`, this before `{name}`, and `{name}` before `{name*}`. A group that has a route is
 * strict: its verb operations, such as `index` for GET, are routes of the bare group (`/api/order`). Any other
 * operation is called by a POST to its name (`/api/order/cancel`).
 *
 * @throws LoadRefusal when a name is invalid, two operations answer the same requests, or a route is never reached
 */
export function createRoutes(names: Iterable<string>): readonly GroupRoute[] {
  const allNames = new Set(names);
  const explicitRoutes = [...allNames].map(parseRouteName).filter((route) => route !== undefined);
  if (explicitRoutes.length === 0) return [];
  for (const [verb, name] of VERB_OPERATIONS) {
    if (!allNames.has(verb) || !allNames.has(name)) continue;
    const cure = verb === 'HEAD' ? `rename index to 'GET'` : 'keep one of them';
    const both = `'${verb}' and ${name} are both the operation of ${verb} on the bare group`;
    throw new LoadRefusal('INVALID_ROUTE', `${both}: ${cure}`);
  }
  const routes = [...explicitRoutes, ...verbRoutes(allNames)].sort(compareRoutes);
  checkReachable(routes, allNames);
  return routes;
}

export function verbRoutes(names: Iterable<string>): readonly GroupRoute[] {
  return [...names].flatMap((name): GroupRoute[] => {
    const verb = methodOf(name);
    return verb === undefined ? [] : [{ name, verb, segments: [], takesRest: false }];
  });
}

/** Compares two routes for their order. For equal patterns, HEAD comes before GET, because GET also answers HEAD. */
function compareRoutes(a: GroupRoute, b: GroupRoute): number {
  if (a.verb !== b.verb && (a.verb === ANY_VERB || b.verb === ANY_VERB)) return a.verb === ANY_VERB ? 1 : -1;
  const difference = a.segments.findIndex((segment, i) => rankOf(segment) !== rankOf(b.segments[i]));
  if (difference >= 0) return rankOf(a.segments[difference]) - rankOf(b.segments[difference]);
  return a.segments.length - b.segments.length || Number(b.verb === 'HEAD') - Number(a.verb === 'HEAD');
}

/** Returns the rank of a segment in the order; 0 when the route has no segment at this index. */
function rankOf(segment: Segment | undefined): number {
  if (segment === undefined) return 0;
  if (segment.literal !== undefined) return 1;
  if (segment.isRest) return 3;
  // A longer suffix comes first, because a text can end in both.
  return 2 - segment.suffix.length / (segment.suffix.length + 1);
}

/** Refuses a route that no request can reach. `POST /api/order/cancel` calls an operation `cancel` before any route. */
function checkReachable(routes: readonly GroupRoute[], names: ReadonlySet<string>): void {
  for (const route of routes) {
    const takers = samplesOf(route, routes).map((path) => {
      const [first = ''] = path;
      const isCalledByName = route.verb === 'POST' && names.has(first) && !routes.some(({ name }) => name === first);
      return isCalledByName ? `the operation ${first}` : `'${fitRoute(routes, route.verb, path)?.route.name}'`;
    });
    if (takers.includes(`'${route.name}'`)) continue;
    const others = [...new Set(takers)];
    const reason = `${others.join(' and ')} ${others.length > 1 ? 'take' : 'takes'} all of its paths`;
    throw new LoadRefusal('INVALID_ROUTE', `route '${route.name}' can never be reached: ${reason}`);
  }
}

/** Returns paths that represent all paths of a route: for `{id}`, they have a text that is no literal of any route. */
function samplesOf({ segments, takesRest }: GroupRoute, routes: readonly GroupRoute[]): string[][] {
  const path = segments.map((segment) => segment.literal ?? `\0${segment.suffix}`);
  const maxLength = Math.max(...routes.map((route) => route.segments.length));
  const extraSegments = takesRest ? maxLength + 1 - segments.length : 0;
  return Array.from({ length: extraSegments + 1 }, (_, i) => [...path, ...Array<string>(i).fill('\0')]);
}

/** Returns the HTTP methods that reach a route, in the order of the header `Allow`. */
export function methodsOf(route: GroupRoute, routes: readonly GroupRoute[]): string[] {
  if (route.verb === ANY_VERB) return [ANY_VERB];
  return [...VERB_OPERATIONS.keys()].filter((verb) =>
    samplesOf(route, routes).some((path) => fitRoute(routes, verb, path)?.route.name === route.name),
  );
}

/** Returns the first route that fits, with the values of its named segments. HEAD fits routes of HEAD and of GET. */
export function fitRoute(routes: readonly GroupRoute[], verb: string, path: readonly string[]) {
  for (const route of routes) {
    const takesVerb = route.verb === verb || (verb === 'HEAD' && route.verb === 'GET') || route.verb === ANY_VERB;
    if (takesVerb && fits(route, path)) return { route, path: capture(route, path) };
  }
  return undefined;
}

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
    const segment = segments[i] as Segment;
    const text = path[i] as string;
    const fitsHere = segment.literal === undefined ? hasValueBefore(segment.suffix, text) : segment.literal === text;
    if (!fitsHere) return false;
  }
  return true;
}

const hasValueBefore = (suffix: string, text: string): boolean =>
  suffix === '' || (text.length > suffix.length && text.endsWith(suffix));

function capture({ segments, takesRest }: GroupRoute, path: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {};
  segments.forEach((segment, i) => {
    if (segment.literal !== undefined) return;
    const isRest = takesRest && i === segments.length - 1;
    const text = isRest ? path.slice(i).join('/') : (path[i] as string);
    values[segment.name] = text.slice(0, text.length - segment.suffix.length);
  });
  return values;
}

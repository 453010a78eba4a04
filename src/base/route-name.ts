// The grammar of an operation's name, and its only reader. A name is an operation of the verb table (`created`), a
// route (`'PUT'`, `'GET {id}/items/{item}'`), or any other name. The client runs this file, too, so it imports nothing.
// groups/group-routes.ts refuses names that make no sense, and finds the route that fits a path.

/** HTTP method → the operation that it calls on the bare group (reference 4.1), in the order of `Allow`. */
export const VERB_OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['GET', 'index'],
  ['HEAD', 'index'],
  ['POST', 'created'],
  ['PUT', 'red'],
  ['PATCH', 'patch'],
  ['DELETE', 'deleted'],
  ['OPTIONS', 'options'],
]);

export type Verb = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** Verb operation → its method. `index` has GET, which the table has before HEAD. */
const METHOD_OF: ReadonlyMap<string, string> = new Map(
  Array.from(VERB_OPERATIONS, ([verb, name]): [string, string] => [name, verb]).reverse(),
);

/** Returns the method that calls an operation of the verb table on the bare group; of any other name, undefined. */
export function methodOf(name: string): string | undefined {
  return METHOD_OF.get(name);
}

export interface RouteName {
  readonly verb: string;
  /** Undefined: the route of the bare group. */
  readonly pattern: string | undefined;
}

/** Splits the name of a route at its first space; returns undefined for a name that does not begin with a method. */
export function splitRouteName(name: string): RouteName | undefined {
  const [verb = ''] = name.split(' ', 1);
  if (!VERB_OPERATIONS.has(verb)) return undefined;
  return { verb, pattern: name === verb ? undefined : name.slice(verb.length + 1) };
}

export type Segment =
  | { readonly literal: string }
  /** `isRest`: takes all segments that are left, one at least. */
  | { readonly literal: undefined; readonly name: string; readonly isRest: boolean };

const NAMED_SEGMENT = /^\{([A-Za-z][A-Za-z0-9_]*)(\*?)\}$/;

/** Reads a pattern segment by segment. Text that is no `{name}` or `{name*}` is literal. */
export function segmentsOf({ pattern }: RouteName): Segment[] {
  if (pattern === undefined) return [];
  return pattern.split('/').map((text) => {
    const [, name, star] = NAMED_SEGMENT.exec(text) ?? [];
    return name === undefined ? { literal: text } : { literal: undefined, name, isRest: star === '*' };
  });
}

/** Returns the names of the captured segments, in their order. */
export function namesOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => (segment.literal === undefined ? [segment.name] : []));
}

/** `GET {id}/items` → `GET_by_id_items`. The id changes only with the name of the operation. */
export function idOf(name: string): string {
  return name
    .replaceAll(/\{(\w+)\*?\}/g, 'by_$1')
    .replaceAll(/\W+/g, '_')
    .replace(/_+$/, '');
}

/** Operations whose `data` is the query. */
const BODILESS = /^(?:index|deleted|options|(?:GET|HEAD|DELETE|OPTIONS)(?: .*)?)$/;

/** Says whether the `data` of an operation is the query: its requests have no body. */
export function isBodiless(name: string): boolean {
  return BODILESS.test(name);
}

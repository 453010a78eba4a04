// The grammar of an operation's name, and its only reader: an operation of the verb table (`created`), a quoted route
// (`'GET {id}/items/{item}'`), or any other name. The client runs this file, too, so it imports nothing. Which names
// refuse a file, and which route fits a path, is groups/group-routes.ts.

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

/** Splits the name of a route at its first space; returns undefined for a name that does not begin with a method. */
export function splitRouteName(name: string): { readonly verb: string; readonly pattern: string } | undefined {
  const [verb = ''] = name.split(' ', 1);
  return name.includes(' ') && VERB_OPERATIONS.has(verb) ? { verb, pattern: name.slice(verb.length + 1) } : undefined;
}

export type Segment =
  | { readonly literal: string }
  /** `isRest`: takes all segments that are left, one at least. */
  | { readonly literal: undefined; readonly name: string; readonly isRest: boolean };

const NAMED_SEGMENT = /^\{([A-Za-z][A-Za-z0-9_]*)(\*?)\}$/;

/** Reads a pattern segment by segment. Text that is no `{name}` or `{name*}` is literal. */
export function segmentsOf(pattern: string): Segment[] {
  return pattern.split('/').map((text) => {
    const [, name, star] = NAMED_SEGMENT.exec(text) ?? [];
    return name === undefined ? { literal: text } : { literal: undefined, name, isRest: star === '*' };
  });
}

/** Returns the names of the captured segments, in their order. */
export function namesOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => (segment.literal === undefined ? [segment.name] : []));
}

// The grammar of operation names, which no other file parses: an operation of the verb table (`created`), a route
// (`'PUT'`, `'GET {id}/items/{item}'`), or any other name. `gatefold/client` also runs this file, so it imports
// nothing.

/**
 * The verb table: maps each HTTP method to the operation that the method calls on the bare group, a path without
 * further segments (docs/REFERENCE.md, 4.1). `red` is not a typo. The methods have the order of the header `Allow`.
 */
export const VERB_OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['GET', 'index'],
  ['HEAD', 'index'],
  ['POST', 'created'],
  ['PUT', 'red'],
  ['PATCH', 'patch'],
  ['DELETE', 'deleted'],
  ['OPTIONS', 'options'],
]);

/** In a route, `ANY` stands for each method that no other route of the group takes. */
export const ANY_VERB = 'ANY';

export type Verb = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** GET and HEAD both call `index`. In the reverse order, the entry of GET comes last and replaces that of HEAD. */
const METHODS_BY_OPERATION: ReadonlyMap<string, string> = new Map(
  Array.from(VERB_OPERATIONS, ([verb, name]): [string, string] => [name, verb]).reverse(),
);

/** Returns `POST` for `created`. Returns undefined for a name that is not in the verb table. */
export function methodOf(name: string): string | undefined {
  return METHODS_BY_OPERATION.get(name);
}

/**
 * Returns the HTTP method that an operation is meant for: the one of its route or of the verb table, and PUT for
 * `updated`. Any other name, such as `publish`, is meant for POST.
 */
export function verbOf(name: string): string {
  return splitRouteName(name)?.verb ?? methodOf(name) ?? (name === 'updated' ? 'PUT' : 'POST');
}

/** Splits the name of a route, such as `GET {id}/items`; undefined for a name that does not begin with a method. */
export function splitRouteName(name: string) {
  const [verb = ''] = name.split(' ', 1);
  if (verb !== ANY_VERB && !VERB_OPERATIONS.has(verb)) return undefined;
  return { verb, pattern: name === verb ? undefined : name.slice(verb.length + 1) };
}

export type Segment =
  | { readonly literal: string }
  /** `{name}` captures one segment, `{name}.json` the text before `suffix`, and `{name*}` (`isRest`) all the rest. */
  | { readonly literal: undefined; readonly name: string; readonly isRest: boolean; readonly suffix: string };

const NAMED_SEGMENT = /^\{([A-Za-z][A-Za-z0-9_]*)(\*?)\}(.*)$/;

/** Splits a pattern into segments. A segment that begins with no valid name in braces is literal. */
export function segmentsOf({ pattern }: { readonly pattern: string | undefined }): Segment[] {
  if (pattern === undefined) return [];
  return pattern.split('/').map((text) => {
    const [, name, star, suffix] = NAMED_SEGMENT.exec(text) ?? [];
    return name === undefined
      ? { literal: text }
      : { literal: undefined, name, isRest: star === '*', suffix: suffix as string };
  });
}

export function namesOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => (segment.literal === undefined ? [segment.name] : []));
}

/** Returns `GET_by_id_items` for `GET {id}/items`. The id changes only with the name. */
export function operationIdOf(name: string): string {
  return name
    .replaceAll(/\{(\w+)\*?\}/g, 'by_$1')
    .replaceAll(/\W+/g, '_')
    .replace(/_+$/, '');
}

// The media types of request bodies that the gateway decodes itself, and what they mean in `accepts` of an operation.
// The essence of a media type is the type without its parameters, in lower case: `text/plain`.

export type DecodedKind = 'json' | 'form' | 'multipart' | 'text';

export const DECODED_KINDS: ReadonlyMap<string, DecodedKind> = new Map([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
]);

export function decodedKind(essence: string): DecodedKind | undefined {
  return essence.endsWith('+json') ? 'json' : DECODED_KINDS.get(essence);
}

/** Says whether a type of `accepts` is one that the gateway decodes. A range, such as `text/*`, is none. */
export function isBuiltInType(type: string): boolean {
  return decodedKind(type.toLowerCase()) !== undefined;
}

/** Says whether `accepts` lists all types that the operation takes. Otherwise, it adds types to those decoded. */
export function isExactList(accepts: readonly string[] | undefined): accepts is readonly string[] {
  return accepts?.some(isBuiltInType) === true;
}

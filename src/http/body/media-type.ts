// Content-Type, parsed once (RFC 9110, 8.3.1), and what it means for a request body.
import { refusal } from '../../base/errors.ts';

/** A `blob` is what an operation lets in by name. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text' | 'blob';

const EXACT: ReadonlyMap<string, BodyKind> = new Map([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
]);

const KNOWN_TYPES = 100;
const LONGEST_KNOWN_TYPE = 128;
const known = new Map<string, BodyKind>();

/**
 * @param contentType the header's value; undefined means JSON
 * @param accepts media types and ranges let in beside those that are decoded
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET
 */
export function bodyKindOf(contentType: string | undefined, accepts?: readonly string[]): BodyKind {
  if (contentType === undefined || contentType === 'application/json') return 'json';
  if (accepts !== undefined && !isDecoded(contentType)) {
    checkAccepted(contentType, accepts);
    return 'blob';
  }
  const before = known.get(contentType);
  if (before !== undefined) return before;
  const kind = parse(contentType);
  if (known.size < KNOWN_TYPES && contentType.length <= LONGEST_KNOWN_TYPE) known.set(contentType, kind);
  return kind;
}

const TYPE = /^([!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+)[\t ]*(?:;|$)/i;
const CHARSET = /;[\t ]*charset=(?:"((?:[^"\\]|\\.)*)"|([^;\t ]*))[\t ]*(?=;|$)/gi;

function isDecoded(contentType: string): boolean {
  const type = typeOf(contentType);
  return type !== undefined && decodedKind(type) !== undefined;
}

/** @throws HttpError UNSUPPORTED_MEDIA_TYPE */
export function checkAccepted(contentType: string | undefined, accepts: readonly string[]): void {
  const type = typeOf(contentType ?? '');
  const fits = (range: string) => range === '*/*' || range === type || (range.endsWith('/*') && type?.startsWith(range.slice(0, -1)));
  if (type === undefined || !accepts.some((range) => fits(range.toLowerCase())))
    throw refusal('UNSUPPORTED_MEDIA_TYPE', `Cannot read the body: beside JSON, forms and text, ${accepts.join(', ')} is taken`);
}

function typeOf(contentType: string): string | undefined {
  return TYPE.exec(contentType)?.[1]?.toLowerCase();
}

function decodedKind(type: string): BodyKind | undefined {
  return type.endsWith('+json') ? 'json' : EXACT.get(type);
}

function parse(contentType: string): BodyKind {
  const type = typeOf(contentType);
  const kind = type === undefined ? undefined : decodedKind(type);
  if (kind === undefined) {
    throw refusal('UNSUPPORTED_MEDIA_TYPE', 'Cannot read the body: send JSON, a form (urlencoded or multipart) or text/plain');
  }
  for (const [, quoted, plain] of contentType.matchAll(CHARSET)) {
    if (!/^utf-?8$/i.test(quoted ?? plain ?? '')) throw refusal('UNSUPPORTED_CHARSET');
  }
  return kind;
}

// Content-Type, parsed once (RFC 9110, 8.3.1), and what it means for a request body.
import { refusal } from '../base/errors.ts';

export type BodyKind = 'json' | 'form' | 'multipart' | 'text';

const EXACT: ReadonlyMap<string, BodyKind> = new Map([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
]);

const KNOWN_TYPES = 100;
const known = new Map<string, BodyKind>();

/**
 * @param contentType the header's value; undefined means JSON
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET
 */
export function bodyKindOf(contentType: string | undefined): BodyKind {
  if (contentType === undefined || contentType === 'application/json') return 'json';
  const before = known.get(contentType);
  if (before !== undefined) return before;
  const kind = parse(contentType);
  if (known.size < KNOWN_TYPES) known.set(contentType, kind);
  return kind;
}

const TYPE = /^([!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+)[\t ]*(?:;|$)/i;
const CHARSET = /;[\t ]*charset=(?:"((?:[^"\\]|\\.)*)"|([^;\t ]*))[\t ]*(?=;|$)/gi;

function parse(contentType: string): BodyKind {
  const type = TYPE.exec(contentType)?.[1]?.toLowerCase();
  const kind = type === undefined ? undefined : type.endsWith('+json') ? 'json' : EXACT.get(type);
  if (kind === undefined) {
    throw refusal('UNSUPPORTED_MEDIA_TYPE', 'Cannot read the body: send JSON, a form (urlencoded or multipart) or text/plain');
  }
  for (const [, quoted, plain] of contentType.matchAll(CHARSET)) {
    if (!/^utf-?8$/i.test(quoted ?? plain ?? '')) throw refusal('UNSUPPORTED_CHARSET');
  }
  return kind;
}

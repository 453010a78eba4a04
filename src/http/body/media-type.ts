// Content-Type, parsed by Node as the WHATWG standard has it, and the way in which a request body of that type is
// decoded.
import type { MIMEType } from 'node:util';
import { util } from '../../base/builtins.ts';
import { refusal } from '../../base/errors.ts';

/** A `blob` is a body that no decoder reads and that the operation accepts by its media type. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text' | 'blob';

const KINDS: ReadonlyMap<string, BodyKind> = new Map([
  ['application/json', 'json'],
  // Many clients send this spelling; parsing it would take some microseconds of each request.
  ['application/json; charset=utf-8', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
]);

/**
 * @param contentType the header's value; undefined means JSON
 * @param accepts media types and ranges that the operation accepts beside those that are decoded
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET
 */
export function bodyKindOf(contentType: string | undefined, accepts?: readonly string[]): BodyKind {
  if (contentType === undefined || contentType === 'application/json') return 'json';
  const usual = KINDS.get(contentType);
  if (usual !== undefined) return usual;
  const type = parseMediaType(contentType);
  const essence = type?.essence ?? '';
  const kind = essence.endsWith('+json') ? 'json' : KINDS.get(essence);
  if (kind === undefined) {
    checkAccepted(contentType, accepts);
    return 'blob';
  }
  if (!/^utf-?8$/i.test(type?.params.get('charset') ?? 'utf-8')) throw refusal('UNSUPPORTED_CHARSET');
  return kind;
}

/** @throws HttpError UNSUPPORTED_MEDIA_TYPE */
export function checkAccepted(contentType: string | undefined, accepts: readonly string[] | undefined): void {
  const essence = parseMediaType(contentType ?? '')?.essence;
  const fits = (range: string) =>
    range === '*/*' || range === essence || (range.endsWith('/*') && essence?.startsWith(range.slice(0, -1)));
  if (essence !== undefined && accepts?.some((range) => fits(range.toLowerCase()))) return;
  const allowed =
    accepts === undefined
      ? 'send JSON, a form (urlencoded or multipart) or text/plain'
      : `beside JSON, forms and text, ${accepts.join(', ')} is taken`;
  throw refusal('UNSUPPORTED_MEDIA_TYPE', `Cannot read the body: ${allowed}`);
}

/** @returns undefined when the value is no media type */
export function parseMediaType(contentType: string): MIMEType | undefined {
  try {
    return new (util().MIMEType)(contentType);
  } catch {
    return undefined;
  }
}

// Chooses the decoder of a request body by its Content-Type, which Node parses by the WHATWG standard. The essence of a
// media type is the type without its parameters, in lower case: `text/plain`.
import type { MIMEType } from 'node:util';
import { util } from '../../base/builtins.ts';
import { refusal } from '../../base/errors.ts';

/** How a body is decoded. A `blob` is passed to the operation undecoded, because the operation accepts its type. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text' | 'blob';

const KINDS: ReadonlyMap<string, BodyKind> = new Map([
  ['application/json', 'json'],
  // Many clients send this spelling, so it is looked up without parsing, which would cost microseconds a request.
  ['application/json; charset=utf-8', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
]);

/**
 * Chooses how a body is decoded. Without a Content-Type, the body is JSON.
 *
 * @param accepts the media types and ranges (`image/*`) that the operation gets undecoded
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET
 */
export function bodyKindOf(contentType: string | undefined, accepts?: readonly string[]): BodyKind {
  if (contentType === undefined || contentType === 'application/json') return 'json';
  const usualKind = KINDS.get(contentType);
  if (usualKind !== undefined) return usualKind;
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

/** @throws HttpError UNSUPPORTED_MEDIA_TYPE, whose message lists what every operation accepts, and then `accepts` */
export function checkAccepted(contentType: string | undefined, accepts: readonly string[] | undefined): void {
  const essence = parseMediaType(contentType ?? '')?.essence;
  const matches = (range: string) =>
    range === '*/*' || range === essence || (range.endsWith('/*') && essence?.startsWith(range.slice(0, -1)));
  if (essence !== undefined && accepts?.some((range) => matches(range.toLowerCase()))) return;
  const allowed = ['JSON', 'a form (urlencoded or multipart)', 'text/plain', ...(accepts ?? [])];
  throw refusal('UNSUPPORTED_MEDIA_TYPE', `Cannot read the body: send one of ${allowed.join(', ')}`);
}

export function parseMediaType(contentType: string): MIMEType | undefined {
  try {
    return new (util().MIMEType)(contentType);
  } catch {
    return undefined;
  }
}

// Chooses the decoder of a request body by its Content-Type, which Node parses by the WHATWG standard. The essence of a
// media type is the type without its parameters, in lower case: `text/plain`.
import type { MIMEType } from 'node:util';
import { util } from '../../base/builtins.ts';
import { refusal } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import { DECODED_KINDS, type DecodedKind, decodedKind, isExactList } from '../../base/media-kinds.ts';

/** How a body is decoded. A `blob` is passed to the operation undecoded, because the operation accepts its type. */
export type BodyKind = DecodedKind | 'blob';

/**
 * Chooses how a body is decoded. Without a Content-Type, the body is JSON.
 *
 * @param accepts media types and ranges (`image/*`). A list that names a type that the gateway decodes is exact.
 *   Otherwise, its types are accepted undecoded beside those that the gateway decodes
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET
 */
export function bodyKindOf(contentType: string | undefined, accepts?: readonly string[]): BodyKind {
  const isExact = isExactList(accepts);
  if (isExact) checkAccepted(contentType ?? 'application/json', accepts);
  // Many clients send these spellings, so they are not parsed, which would cost microseconds a request.
  if (contentType === undefined || contentType === 'application/json; charset=utf-8') return 'json';
  const usualKind = DECODED_KINDS.get(contentType);
  if (usualKind !== undefined) return usualKind;
  const type = parseMediaType(contentType);
  const essence = type?.essence ?? '';
  const kind = decodedKind(essence);
  if (kind === undefined) {
    if (!isExact) checkAccepted(contentType, accepts, DECODED);
    return 'blob';
  }
  if (!/^utf-?8$/i.test(type?.params.get('charset') ?? 'utf-8')) throw refusal('UNSUPPORTED_CHARSET');
  return kind;
}

const DECODED = ['JSON', 'a form (urlencoded or multipart)', 'text/plain'];

/** @param others accepted beside `accepts`, in words @throws HttpError UNSUPPORTED_MEDIA_TYPE, which lists both */
export function checkAccepted(
  contentType: string | undefined,
  accepts: readonly string[] | undefined,
  others: readonly string[] = [],
): void {
  const essence = parseMediaType(contentType ?? '')?.essence;
  const matches = (range: string) =>
    range === '*/*' || range === essence || (range.endsWith('/*') && essence?.startsWith(range.slice(0, -1)));
  if (essence !== undefined && accepts?.some((range) => matches(range.toLowerCase()))) return;
  const allowed = [...others, ...(accepts ?? [])].join(', ');
  throw refusal('UNSUPPORTED_MEDIA_TYPE', `Cannot read the body: send one of ${allowed}`);
}

/** Matches blanks as nobody sends them. Node before 26 reads 16 KiB of blanks in quadratic time, which is 0.3 s. */
const MANY_BLANKS = /[ \t]{32}/;

export function parseMediaType(contentType: string): MIMEType | undefined {
  if (MANY_BLANKS.test(contentType)) return undefined;
  return attempt(() => new (util().MIMEType)(contentType), undefined);
}

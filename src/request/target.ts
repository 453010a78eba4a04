// Turns a request target (`/api/order/7?all=1`) into path segments and query text. No other code decodes the percent
// escapes of a path. The decoded segments decide the route, the group and the rights, and never the text of the URL.
import { refusal } from '../base/errors.ts';

export interface TargetPath {
  /** The path as sent, without the query, for the log. */
  readonly raw: string;
  /** The decoded segments that are not empty. */
  readonly segments: readonly string[];
  /** Whether the path ends in a slash, which matters only for the row `/api/` of routes.ts. */
  readonly endsInSlash: boolean;
}

/** Maximum segments of a path. A head has room for 8,000, and the request keeps each of them several times. */
const MAX_SEGMENTS = 1000;

/**
 * Parses the path of a target in origin form, or in absolute form (RFC 9112, 3.2.2), whose authority is ignored.
 *
 * @param raw the target without its query
 * @throws HttpError MALFORMED_PATH
 */
export function parsePath(raw: string): TargetPath {
  checkBytes(raw, 0);
  const path = raw.charCodeAt(0) === SLASH ? raw : pathOfAbsolute(raw);
  const segments: string[] = [];
  for (const piece of path.split('/')) {
    if (piece !== '') segments.push(decodeSegment(piece));
  }
  if (segments.length > MAX_SEGMENTS)
    throw refusal('MALFORMED_PATH', `Cannot read the path: it has more than ${MAX_SEGMENTS} segments`);
  return { raw, segments, endsInSlash: path.endsWith('/') };
}

/** Refuses `#`, and each byte that is not visible ASCII (RFC 3986, 2). @param from the index of the first byte */
export function checkBytes(target: string, from: number): void {
  for (let i = from; i < target.length; i++) {
    const byte = target.charCodeAt(i);
    if (byte < 0x21 || byte > 0x7e || byte === HASH) {
      throw refusal('MALFORMED_PATH', `Cannot read the request target: byte ${i} must be percent-encoded`);
    }
  }
}

const SLASH = 0x2f;
const HASH = 0x23;

/** Returns `/api` for `http://example.com/api`, and '' for `http://example.com`. */
function pathOfAbsolute(raw: string): string {
  const match = /^https?:\/\/([^/@]+)(\/.*)?$/i.exec(raw);
  if (match === null) throw refusal('MALFORMED_PATH', 'Cannot read the request target: it must begin with a slash');
  return match[2] ?? '';
}

function decodeSegment(piece: string): string {
  if (!piece.includes('%')) return piece;
  let decoded: string;
  try {
    decoded = decodeURIComponent(piece);
  } catch {
    throw refusal(
      'MALFORMED_PATH',
      'Cannot decode the path: a percent sign is not followed by valid UTF-8 in hexadecimal',
    );
  }
  for (let i = 0; i < decoded.length; i++) {
    const code = decoded.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
      throw refusal('MALFORMED_PATH', 'Cannot read the path: it holds a control character');
  }
  return decoded;
}

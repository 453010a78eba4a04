// The headers that the server sets itself: CORS, the content type of JSON, and those against caching and sniffing. An
// operation must not set one of these names.
import { validateHeaderName, validateHeaderValue } from '../base/builtins.ts';
import type { HttpError } from '../base/errors.ts';
import { idsOf, type Log } from '../base/log.ts';
import { isOnEveryAnswer, isReservedHeader } from '../base/server-headers.ts';

export const ALLOW_METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS';
/** `*` does not cover `Authorization` (Fetch standard, `Access-Control-Allow-Headers`). */
const ALLOW_HEADERS = '*, Authorization';
export const ON_EVERY_ANSWER = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Allow-Methods',
  ALLOW_METHODS,
  'Access-Control-Allow-Headers',
  ALLOW_HEADERS,
  // With `nosniff`, a browser trusts the content type and does not guess another from the bytes.
  'X-Content-Type-Options',
  'nosniff',
];
export const NO_STORE = ['Cache-Control', 'no-store'];

/**
 * Returns the headers of an error as one array of names and values in turn. A header that an error must not set is
 * dropped and logged.
 *
 * @param subject the request that the log line names
 */
export function ownedHeaders(
  error: Pick<HttpError, 'headers' | 'code'>,
  subject: Parameters<typeof idsOf>[0],
  log: Log,
): string[] {
  const headers: string[] = [];
  for (const [name, value] of Object.entries(error.headers ?? {})) {
    const lower = name.toLowerCase();
    if (isOnEveryAnswer(lower)) continue;
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
      // The server sends the envelope of an error, so it also sets the type and the caching of that envelope.
      if (isReservedHeader(lower) || lower === 'content-type' || lower === 'cache-control')
        throw new Error('it belongs to the server');
      headers.push(name, String(value));
    } catch (invalid) {
      log.warn('header-dropped', {
        ...idsOf(subject),
        header: name.slice(0, 100),
        error_code: error.code,
        reason: (invalid as Error).message,
      });
    }
  }
  return headers;
}

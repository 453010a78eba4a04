// Decides from which URLs the keys of a provider may be fetched: https URLs, and http URLs on loopback only. Without
// TLS, anybody on the network path could replace the keys.
import { isLoopback } from '../../base/store-address.ts';
import { withoutBrackets } from '../../base/values.ts';

/** @returns undefined for text that is no URL, or a URL from which no keys may be fetched */
function parseAddress(text: unknown): URL | undefined {
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined;
  const isLocal = isLoopback(withoutBrackets(url.hostname));
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLocal) ? url : undefined;
}

/**
 * Returns whether the text is a URL without query and fragment, as an issuer is (OpenID Connect Discovery 1.0 3). The
 * text itself is searched, because the parsed URL of `https://a.example/?` has an empty query.
 */
export function isIssuer(text: unknown): text is string {
  return parseAddress(text) !== undefined && !/[?#]/.test(String(text));
}

/** Returns whether the text can be a `jwks_uri`. With an https issuer, an http URL is refused, even on loopback. */
export function isKeyAddress(text: unknown, issuer: string): text is string {
  const url = parseAddress(text);
  return url !== undefined && (url.protocol === 'https:' || issuer.startsWith('http:'));
}

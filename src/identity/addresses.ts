// Which addresses keys may be fetched from: https, and http on loopback only. Keys fetched in the clear could be
// anybody's.

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/**
 * The URL, or `undefined` when it is not one that keys may come from. Host names are compared as `URL` normalised them.
 */
export function parseAddress(text: unknown): URL | undefined {
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname)) ? url : undefined;
}

/**
 * An issuer has no query either (OpenID Connect Discovery 1.0 section 3). The text itself is the name, never
 * `url.href`.
 */
export function isIssuer(text: unknown): text is string {
  const url = parseAddress(text);
  return url !== undefined && !String(text).includes('?') && !String(text).includes('#');
}

/** A key address, given or discovered: an https issuer is not led down to http, not even on loopback. */
export function isKeyAddress(text: unknown, issuer: string): text is string {
  const url = parseAddress(text);
  return url !== undefined && (url.protocol === 'https:' || issuer.startsWith('http:'));
}

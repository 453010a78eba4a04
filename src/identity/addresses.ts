// Decides which URLs keys may be fetched from: https, and http on loopback alone. Without TLS, anybody on the network
// path could replace the keys.

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** The URL; `undefined` when no keys may be fetched from it. The host is compared after `URL` has normalised it. */
export function parseAddress(text: unknown): URL | undefined {
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname)) ? url : undefined;
}

/**
 * Whether the text can be an issuer, which has no query either (OpenID Connect Discovery 1.0 section 3). Issuers are
 * compared as texts, never as `url.href`.
 */
export function isIssuer(text: unknown): text is string {
  const url = parseAddress(text);
  return url !== undefined && !String(text).includes('?') && !String(text).includes('#');
}

/** Whether the text can be a `jwks_uri`. An https issuer cannot have an http one, not even on loopback. */
export function isKeyAddress(text: unknown, issuer: string): text is string {
  const url = parseAddress(text);
  return url !== undefined && (url.protocol === 'https:' || issuer.startsWith('http:'));
}

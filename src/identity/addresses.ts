// Decides from which URLs keys may be fetched: https URLs, and http URLs on loopback only. Without TLS, anybody on the
// network path could replace the keys.

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** Returns the URL as `URL` normalises it; `undefined` when no keys may be fetched from it. */
export function parseAddress(text: unknown): URL | undefined {
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname)) ? url : undefined;
}

/**
 * Returns whether the text can be an issuer. An issuer has neither a query nor a fragment (OpenID Connect Discovery 1.0
 * section 3). Issuers are compared as texts, never as `url.href`.
 */
export function isIssuer(text: unknown): text is string {
  const url = parseAddress(text);
  return url !== undefined && !String(text).includes('?') && !String(text).includes('#');
}

/** Whether the text can be a `jwks_uri`. With an https issuer, an http address is refused, even on loopback. */
export function isKeyAddress(text: unknown, issuer: string): text is string {
  const url = parseAddress(text);
  return url !== undefined && (url.protocol === 'https:' || issuer.startsWith('http:'));
}

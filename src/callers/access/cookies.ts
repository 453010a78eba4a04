// Reads the header `Cookie` (RFC 6265, section 5.4) into an object without a prototype, and sets cookies.
import type { CookieOptions } from '../../api/controller/answer-headers.ts';
import { attempt } from '../../base/failure.ts';
import { formatCookie } from '../../base/set-cookie.ts';
import { trimBlanks } from '../../base/values.ts';
import type { Exchange } from '../../request/exchange.ts';
import type { OriginParts } from './origin-check.ts';

export function cookiesOf(exchange: Exchange): Readonly<Record<string, string>> {
  exchange.caller.cookies ??= parseCookies(exchange.head.cookie);
  return exchange.caller.cookies;
}

export function cookieSetter(exchange: Exchange, parts: OriginParts) {
  return (name: string, value: string, options?: CookieOptions): void =>
    exchange.answer.settableHeaders.setCookie(formatCookie(name, value, options, isHttps(exchange, parts)));
}

/** Whether the client uses HTTPS. `X-Forwarded-Proto` is believed: by a lie, a client harms only its own cookies. */
export function isHttps({ request: { headers } }: Exchange, { isSecure, publicOrigins }: OriginParts): boolean {
  return (
    isSecure ||
    /^\s*https\b/i.test(String(headers['x-forwarded-proto'] ?? '')) ||
    publicOrigins.some((origin) => origin.startsWith('https:'))
  );
}

/**
 * @returns Key: the name of a cookie. Value: its value, decoded. The first of two cookies with the same name counts,
 *   because browsers send the cookie with the longest path first
 */
function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  const cookies: Record<string, string> = Object.create(null);
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals < 1) continue;
    // A browser lets no subdomain set `__Host-session`, but `\u00a0__Host-session`, which `trim` would shorten.
    const name = trimBlanks(pair.slice(0, equals));
    if (name === '' || name in cookies) continue;
    const value = trimBlanks(pair.slice(equals + 1));
    // A pair of double quotes around the value does not belong to it.
    cookies[name] = decode(value.startsWith('"') ? value.replace(/^"(.*)"$/s, '$1') : value);
  }
  return cookies;
}

function decode(value: string): string {
  // A percent sign that is no escape is a part of the value.
  return value.includes('%') ? attempt(() => decodeURIComponent(value), value) : value;
}

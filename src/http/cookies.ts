// Reads the header `Cookie` (RFC 6265, section 5.4) into an object without a prototype.
import type { Exchange } from './exchange.ts';

/** The cookies of a request, which are parsed once. */
export function cookiesOf(exchange: Exchange): Readonly<Record<string, string>> {
  exchange.cookies ??= parseCookies(exchange.request.headers.cookie);
  return exchange.cookies;
}

/**
 * @returns the cookies by name, decoded; when two cookies have the same name, the first counts, because its path is the
 *   longest
 */
function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  const cookies: Record<string, string> = Object.create(null);
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals < 0) continue;
    const name = pair.slice(0, equals).trim();
    if (name === '' || name in cookies) continue;
    const value = pair.slice(equals + 1).trim();
    cookies[name] = decode(
      value.startsWith('"') && value.endsWith('"') && value.length > 1 ? value.slice(1, -1) : value,
    );
  }
  return Object.freeze(cookies);
}

function decode(value: string): string {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

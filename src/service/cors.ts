// Cross-origin rules of a service file: which origins may read answers, and which requests are refused because of their
// origin. The rules follow the Fetch standard. This file writes no header: the files in http/ do.
import { isToken } from '../base/values.ts';
import type { CorsOptions } from '../controller/service.ts';

export interface CorsPolicy {
  /** Returns whether an origin may read answers. `allows` is undefined when any origin may read them. */
  readonly allows: ((origin: string) => boolean) | undefined;
  readonly credentials: boolean;
  /** Seconds for which a browser may cache the answer to a preflight. */
  readonly maxAge: number;
  /**
   * Names of the headers that a page may send: `A, B`. With undefined, a page may send all that its preflight asks for.
   */
  readonly allowHeaders: string | undefined;
  /** Names of the headers that a page may read: `A, B`. With undefined, a page may read all headers of the answer. */
  readonly exposeHeaders: string | undefined;
}

const PROPERTIES = ['origins', 'credentials', 'maxAge', 'allowHeaders', 'exposeHeaders'];
/** The default of `maxAge`, in seconds: a day. */
const DEFAULT_MAX_AGE = 86_400;

/** @throws Error whose message is one line */
export function createCorsPolicy(options: CorsOptions): CorsPolicy {
  const unknown = Object.keys(options).find((name) => !PROPERTIES.includes(name));
  if (unknown !== undefined) throw new Error(`${unknown} is no property; there are ${PROPERTIES.join(', ')}`);
  const { origins = '*', credentials = false, maxAge = DEFAULT_MAX_AGE, allowHeaders, exposeHeaders } = options;
  if (typeof credentials !== 'boolean') throw new Error('credentials must be true or false');
  if (!Number.isSafeInteger(maxAge) || maxAge < 0) throw new Error('maxAge must be a number of seconds');
  if (origins === '*' && credentials)
    throw new Error("credentials needs a list of origins: with '*' browsers send no cookies");
  if (origins !== '*' && !Array.isArray(origins)) throw new Error("origins must be '*' or a list of origins");
  return {
    allows: origins === '*' ? undefined : createMatcher(origins),
    credentials,
    maxAge,
    allowHeaders: joinHeaders('allowHeaders', allowHeaders, credentials),
    exposeHeaders: joinHeaders('exposeHeaders', exposeHeaders, credentials),
  };
}

/**
 * Checks a list of header names and joins them with commas. When credentials are allowed, browsers take `*` as the name
 * of a header and not as a wildcard (Fetch standard, "CORS protocol and credentials").
 *
 * @param property the name of the list, for error messages
 */
function joinHeaders(
  property: string,
  headers: readonly string[] | undefined,
  allowsCredentials: boolean,
): string | undefined {
  if (headers === undefined) return undefined;
  if (!Array.isArray(headers) || !headers.every((header) => typeof header === 'string' && isToken(header)))
    throw new Error(`${property} must be a list of header names`);
  if (allowsCredentials && headers.includes('*')) throw new Error(`${property}: with credentials '*' is no wildcard`);
  return headers.join(', ');
}

function createMatcher(origins: readonly unknown[]): (origin: string) => boolean {
  const exact = new Set<string>();
  const suffixes: string[] = [];
  for (const entry of origins) {
    if (typeof entry !== 'string') throw new Error('an origin must be a text');
    // `https://*.example.com` is valid if `https://wildcard.example.com` is an origin.
    const withoutWildcard = entry.replace(/^https:\/\/\*\./, 'https://wildcard.');
    if (!isOrigin(withoutWildcard))
      throw new Error(
        `${JSON.stringify(entry)} is no origin: write scheme, host and port alone, such as https://app.example.com`,
      );
    if (withoutWildcard === entry) exact.add(entry);
    else suffixes.push(entry.slice('https://*'.length));
  }
  return (origin) => exact.has(origin) || suffixes.some((suffix) => isSubdomain(origin, suffix));
}

/**
 * Returns whether a text is an origin such as `https://example.com:8443`. The text `null` is not accepted. Browsers
 * send `null` for every page in a sandbox, and any page can put itself into a sandbox.
 */
function isOrigin(text: string): boolean {
  try {
    // The URL parser accepts `*` in a host name.
    return new URL(text).origin === text && !text.includes('*');
  } catch {
    return false;
  }
}

/** @param suffix a host with the dot before it, and perhaps a port: `.example.com` */
function isSubdomain(origin: string, suffix: string): boolean {
  if (!origin.startsWith('https://') || !origin.endsWith(suffix)) return false;
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(origin.slice('https://'.length, -suffix.length));
}

// The cross-origin rules of a service file, which follow the Fetch standard. The rules say which origins may read
// answers. request/answer/ writes the headers, and origin-check.ts refuses requests.

import type { CorsOptions } from '../../api/controller/service.ts';
import { isBetween, isOrigin, isToken } from '../../base/values.ts';

export interface CorsPolicy {
  /** Whether `origins` is written. Without it, `allows` is undefined, too. */
  readonly namesOrigins: boolean;
  /** Returns whether an origin may read answers; undefined when any origin may read them. */
  readonly allows: ((origin: string) => boolean) | undefined;
  /** Whether browsers may send cookies with requests from the allowed origins. */
  readonly credentials: boolean;
  /** Seconds for which a browser may cache the answer to a preflight. */
  readonly maxAge: number;
  /** The names of the headers that a page may send, such as `A, B`; undefined for all that its preflight asks for. */
  readonly allowHeaders: string | undefined;
  /** The names of the headers that a page may read, such as `A, B`; undefined for all headers of the answer. */
  readonly exposeHeaders: string | undefined;
}

const PROPERTIES = ['origins', 'credentials', 'maxAge', 'allowHeaders', 'exposeHeaders'];
/** The default of `maxAge`, in seconds: a day. */
const DEFAULT_MAX_AGE = 86_400;

/** @throws Error whose message is one line */
export function createCorsPolicy(options: CorsOptions): CorsPolicy {
  const unknownName = Object.keys(options).find((name) => !PROPERTIES.includes(name));
  if (unknownName !== undefined) throw new Error(`${unknownName} is no property; there are ${PROPERTIES.join(', ')}`);
  const { origins = '*', credentials = false, maxAge = DEFAULT_MAX_AGE, allowHeaders, exposeHeaders } = options;
  if (typeof credentials !== 'boolean') throw new Error('credentials must be true or false');
  if (!isBetween(maxAge, 0, Number.MAX_SAFE_INTEGER)) throw new Error('maxAge must be a number of seconds');
  if (origins === '*' && credentials)
    throw new Error("credentials needs a list of origins: with '*' browsers send no cookies");
  if (origins !== '*' && !Array.isArray(origins)) throw new Error("origins must be '*' or a list of origins");
  return {
    namesOrigins: options.origins !== undefined,
    allows: origins === '*' ? undefined : createMatcher(origins),
    credentials,
    maxAge,
    allowHeaders: joinHeaders('allowHeaders', allowHeaders, credentials),
    exposeHeaders: joinHeaders('exposeHeaders', exposeHeaders, credentials),
  };
}

/**
 * Checks a list of header names and joins them with commas. Refuses `*` with credentials, because browsers then take it
 * as the name of a header and not as a wildcard (Fetch standard, "CORS protocol and credentials").
 */
function joinHeaders(
  property: string,
  names: readonly string[] | undefined,
  hasCredentials: boolean,
): string | undefined {
  if (names === undefined) return undefined;
  if (!Array.isArray(names) || !names.every((header) => typeof header === 'string' && isToken(header)))
    throw new Error(`${property} must be a list of header names`);
  if (hasCredentials && names.includes('*')) throw new Error(`${property}: with credentials '*' is no wildcard`);
  return names.join(', ');
}

/** Returns a function that says whether an origin is allowed. @throws Error whose message is one line */
function createMatcher(origins: readonly unknown[]): (origin: string) => boolean {
  const exactOrigins = new Set<string>();
  const suffixes: string[] = [];
  for (const entry of origins) {
    if (typeof entry !== 'string') throw new Error('an origin must be a text');
    // `isOrigin` refuses an asterisk, so `https://*.example.com` is checked as `https://wildcard.example.com`.
    const checkedOrigin = entry.replace(/^https:\/\/\*\./, 'https://wildcard.');
    if (!isOrigin(checkedOrigin))
      throw new Error(
        `${JSON.stringify(entry)} is no origin: write scheme, host and port alone, such as https://app.example.com`,
      );
    if (checkedOrigin === entry) exactOrigins.add(entry);
    else suffixes.push(entry.slice('https://*'.length));
  }
  return (origin) => exactOrigins.has(origin) || suffixes.some((suffix) => isSubdomain(origin, suffix));
}

/** A subdomain may have any depth. @param suffix a dot, the host, and perhaps a port: `.example.com` */
function isSubdomain(origin: string, suffix: string): boolean {
  if (!origin.startsWith('https://') || !origin.endsWith(suffix)) return false;
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(origin.slice('https://'.length, -suffix.length));
}

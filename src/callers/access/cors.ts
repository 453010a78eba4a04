// The cross-origin rules of a service file, which follow the Fetch standard. The rules say which origins may read
// answers. request/answer/ writes the headers, and origin-check.ts refuses requests.

import type { IncomingMessage } from 'node:http';
import type { CorsOptions } from '../../api/controller/service.ts';
import { isBetween, isOrigin, isPlainFunction, isThenable, isToken } from '../../base/values.ts';

type AllowsOrigin = (origin: string, request: IncomingMessage) => boolean;

export type CorsPolicy = Readonly<ReturnType<typeof createCorsPolicy>>;

const PROPERTIES = ['origins', 'credentials', 'methods', 'preflightStatus', 'maxAge', 'allowHeaders', 'exposeHeaders'];
export const ALL_METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS';
/** The default of `maxAge`, in seconds: a day. */
const DEFAULT_MAX_AGE = 86_400;

/** @throws Error whose message is one line */
export function createCorsPolicy(options: CorsOptions) {
  const unknownName = Object.keys(options).find((name) => !PROPERTIES.includes(name));
  if (unknownName !== undefined) throw new Error(`${unknownName} is no property; there are ${PROPERTIES.join(', ')}`);
  const { origins = '*', credentials = false, maxAge = DEFAULT_MAX_AGE, allowHeaders, exposeHeaders } = options;
  const { methods, preflightStatus = 200 } = options;
  if (typeof credentials !== 'boolean') throw new Error('credentials must be true or false');
  if (!isBetween(maxAge, 0, Number.MAX_SAFE_INTEGER)) throw new Error('maxAge must be a number of seconds');
  if (origins === '*' && credentials)
    throw new Error("credentials needs a list of origins: with '*' browsers send no cookies");
  if (preflightStatus !== 200 && preflightStatus !== 204) throw new Error('preflightStatus must be 200 or 204');
  const isFunction = typeof origins === 'function';
  if (isFunction ? !isPlainFunction(origins) : origins !== '*' && !Array.isArray(origins))
    throw new Error("origins must be '*' or a list of origins, or a function (origin, request) => boolean");
  const allows: AllowsOrigin | undefined =
    origins === '*' ? undefined : isFunction ? guardFunction(origins, credentials) : createMatcher(origins);
  return {
    /** Whether `origins` is written. Without it, `allows` is undefined, too. */
    namesOrigins: options.origins !== undefined,
    /** Returns whether an origin may read answers; undefined when any origin may read them. */
    allows,
    /** Whether all origins are allowed: by `*`, or by a function that allows an origin that it cannot know. */
    isOpen: allows === undefined || (isFunction && allows(UNKNOWN_ORIGIN, NO_REQUEST)),
    /** Whether `allows` can answer differently for another request of the same origin. */
    dependsOnRequest: isFunction,
    /** Whether browsers may send cookies with requests from the allowed origins. */
    credentials,
    /** The value of `Access-Control-Allow-Methods`. */
    methods: methods === undefined ? ALL_METHODS : joinMethods(methods),
    preflightStatus,
    /** Seconds for which a browser may cache the answer to a preflight. */
    maxAge,
    /** The names of the headers that a page may send, such as `A, B`; undefined for all that its preflight asks for. */
    allowHeaders: joinHeaders('allowHeaders', allowHeaders, credentials),
    /** The names of the headers that a page may read, such as `A, B`; undefined for all headers of the answer. */
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

function joinMethods(methods: readonly string[]): string {
  const known = ALL_METHODS.split(', ');
  if (!Array.isArray(methods) || methods.length === 0 || !methods.every((method) => known.includes(method)))
    throw new Error(`methods must be a list of ${ALL_METHODS}`);
  return methods.join(', ');
}

/** An origin that no rule of an author can mean, and a request without anything. */
const UNKNOWN_ORIGIN = 'https://gatefold.invalid';
const NO_REQUEST = Object.freeze({ method: 'GET', url: '/', headers: {} }) as unknown as IncomingMessage;
/** Matches an origin in the header `Origin`. It never matches `null`, which any page can send (`isOrigin`). */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^\s/,*?#]+$/i;

/**
 * Returns `origins`, a function of the author, so that it never throws: a throw and anything but `true` is a no.
 *
 * @throws Error whose message is one line, when the function answers wrongly to an origin that it cannot know
 */
function guardFunction(origins: AllowsOrigin, credentials: boolean): AllowsOrigin {
  const ask: (...args: Parameters<AllowsOrigin>) => unknown = (origin, request) => {
    try {
      const answer: unknown = origins(origin, request);
      // Without a listener, a rejection of the promise would be an uncaught exception.
      if (isThenable(answer)) Promise.resolve(answer).catch(() => {});
      return answer;
    } catch {
      return false;
    }
  };
  const answer = ask(UNKNOWN_ORIGIN, NO_REQUEST);
  if (isThenable(answer)) throw new Error('origins returned a promise: it must return true or false itself');
  if (typeof answer !== 'boolean') throw new Error(`origins returned ${typeof answer} and not true or false`);
  if (credentials && answer)
    throw new Error(`origins allows ${UNKNOWN_ORIGIN}, so with credentials every page could act for your users`);
  return (origin, request) => ORIGIN.test(origin) && ask(origin, request) === true;
}

/** Returns a function that says whether an origin is allowed. @throws Error whose message is one line */
function createMatcher(origins: readonly unknown[]): (origin: string) => boolean {
  const exactOrigins = new Set<string>();
  const suffixes: string[] = [];
  for (const entry of origins) {
    if (typeof entry !== 'string') throw new Error('an origin must be a text');
    // `isOrigin` refuses an asterisk, so `https://*.example.com` is checked as `https://wildcard.example.com`. Without
    // a host, as of a variable that is empty, `https://*.` would allow every host that ends in a dot.
    const checkedOrigin = entry.replace(/^https:\/\/\*\.(?=[^:])/, 'https://wildcard.');
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

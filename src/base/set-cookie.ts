// Writes the value of a header `Set-Cookie` (RFC 6265, 4.1). A cookie that a browser would drop in silence is an error.
import type { CookieOptions } from '../api/controller/answer-headers.ts';
import { isBoolean, isObject, isToken } from './values.ts';

/** Maximum bytes of name and value. Browsers drop a longer cookie. */
const MAX_COOKIE_LENGTH = 4096;

/** By option: a function that checks its value, and the description of a valid value for the error. */
const OPTIONS: Readonly<
  Record<keyof CookieOptions, readonly [isValid: (value: unknown) => boolean, expected: string]>
> = {
  httpOnly: [isBoolean, 'true or false'],
  sameSite: [(value) => ['Strict', 'Lax', 'None'].includes(value as string), "'Strict', 'Lax' or 'None'"],
  secure: [isBoolean, 'true or false'],
  path: [(value) => typeof value === 'string' && /^\/[!-:<-~]*$/.test(value), 'a path that begins with /'],
  domain: [(value) => typeof value === 'string' && /^[a-z0-9.-]+$/i.test(value), 'the name of a host'],
  maxAge: [(value) => Number.isSafeInteger(value) && (value as number) >= 0, 'a whole number of seconds'],
};

/** @throws TypeError for an invalid name, value or option, and for a cookie that every browser drops */
export function formatCookie(name: string, value: string, options: CookieOptions = {}, isHttps = false): string {
  const fail = (mistake: string): never => {
    throw new TypeError(`setCookie: ${mistake}`);
  };
  if (typeof name !== 'string' || !isToken(name)) fail(`${JSON.stringify(name)} is no name of a cookie`);
  if (typeof value !== 'string') fail(`the value of ${name} must be a text`);
  if (!isObject(options)) fail(`the options of ${name} must be an object`);
  for (const [option, content] of Object.entries(options)) {
    const rule = Object.hasOwn(OPTIONS, option) ? OPTIONS[option as keyof CookieOptions] : undefined;
    if (rule === undefined) return fail(`${option} is no option; there are ${Object.keys(OPTIONS).join(', ')}`);
    if (content !== undefined && !rule[0](content)) fail(`${option} must be ${rule[1]}`);
  }
  const { httpOnly = true, sameSite = 'Lax', path = '/', domain, maxAge } = options;
  const isHostOnly = /^__host-/i.test(name);
  const needsSecure = sameSite === 'None' || isHostOnly || /^__secure-/i.test(name);
  const { secure = isHttps || needsSecure } = options;
  if (needsSecure && !secure) fail(`browsers drop ${name} without secure`);
  if (isHostOnly && (path !== '/' || domain !== undefined)) fail(`${name} can have no other path than / and no domain`);
  const pair = `${name}=${encode(value, fail)}`;
  if (pair.length > MAX_COOKIE_LENGTH)
    fail(`${name} has ${pair.length} bytes, and browsers drop over ${MAX_COOKIE_LENGTH}`);
  const parts = [
    pair,
    domain !== undefined && `Domain=${domain}`,
    `Path=${path}`,
    maxAge !== undefined && `Max-Age=${maxAge}`,
    httpOnly && 'HttpOnly',
    secure && 'Secure',
    `SameSite=${sameSite}`,
  ];
  return parts.filter(Boolean).join('; ');
}

function encode(value: string, fail: (mistake: string) => never): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return fail('the value has half of a surrogate pair');
  }
}

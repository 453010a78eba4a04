// Parses the values of settings: one parser for each kind of value. settings.ts chooses the kind of each setting.

import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { domainToASCII } from 'node:url';
import { isServable } from './files/servable.ts';
import { parseRate, RATE_FORM, type Rate } from './rate.ts';
import { TIME_UNITS } from './time.ts';
import { isOrigin, withoutBrackets } from './values.ts';

/** Thrown by each parser. The message names the form that the value needs: `a path`. */
export class InvalidValue extends Error {}

export function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    // The negation also refuses NaN.
    if (!(value >= min && value <= max)) throw new InvalidValue(`a whole number from ${min} to ${max}`);
    return value;
  };
}

/** Returns a parser to which an empty text means undefined. Any other text is parsed by `parse`. */
export function optional<T>(parse: (text: string) => T) {
  return (text: string): T | undefined => (text === '' ? undefined : parse(text));
}

/** Returns a parser to which a word such as `off` means undefined. Any other text is parsed by `parse`. */
export function orWord<T>(word: string, parse: (text: string) => T) {
  return (text: string): T | undefined => {
    if (text === word) return undefined;
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidValue(`${word} or ${(error as Error).message}`);
    }
  };
}

/** Parses a host name or address. An IPv6 address may have brackets, as in a URL. */
export function hostName(text: string): string {
  const host = withoutBrackets(text);
  // A server that listens on an empty host listens on all interfaces.
  if (host === '' || /[\s/@,]/.test(host)) throw new InvalidValue('a host name or address');
  return host;
}

export function folder(cwd: string) {
  return (text: string): string => {
    if (text === '' || text.includes('\0')) throw new InvalidValue('a path');
    return resolve(cwd, text);
  };
}

export function file(cwd: string) {
  return (text: string): string => {
    if (isKeyText(text)) throw new InvalidValue('the path of a file');
    return folder(cwd)(text);
  };
}

export function fileName(text: string): string {
  if (!isServable(text.split('/'))) throw new InvalidValue('the name of a file in the folder, such as index.html');
  return text;
}

/** Returns whether a text is a PEM key or certificate, given instead of a path. No message may show such a text. */
export function isKeyText(text: string): boolean {
  return text.includes('-----BEGIN');
}

/** Parses addresses and CIDR blocks. callers/access/address.ts compares addresses with the list. */
export function networks(text: string): readonly string[] {
  const list = listOf(text);
  if (!list.every(isNetwork)) throw new InvalidValue('a list of addresses and blocks such as 10.0.0.0/8,::1');
  return list;
}

function isNetwork(entry: string): boolean {
  const [address = '', bits = '0', ...rest] = entry.split('/');
  const maxBits = isIP(address) === 4 ? 32 : 128;
  return isIP(address) !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= maxBits;
}

/** Parses the prefix of all paths: `/v1/` becomes `/v1`, and `/` becomes ''. */
export function basePath(text: string): string {
  if (!/^(?:\/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*\/?$/.test(text) || text === '')
    throw new InvalidValue('a path such as /api, /shop/v1 or /, of letters, digits, - . _ and ~');
  return text.replace(/\/$/, '');
}

export function origins(text: string): readonly string[] {
  const list = listOf(text);
  if (!list.every((origin) => /^https?:/.test(origin) && isOrigin(origin)))
    throw new InvalidValue('an origin such as https://api.example.com, or several with commas, without a path');
  return list;
}

// A name has 4 to 253 characters, a dot, and labels of up to 63 characters. Its last label is no number, unlike that of
// an IPv4 address. Names with `*` need the challenge dns-01 (RFC 8555), which is not supported.
const HOST_NAME = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** Maximum number of names in one certificate of Let's Encrypt. */
const MAX_NAMES = 100;

export function hostNames(text: string): readonly string[] {
  const names = listOf(text).map((name) => domainToASCII(name));
  if (names.length > MAX_NAMES || !names.every((name) => HOST_NAME.test(name)))
    throw new InvalidValue(
      `a list of host names such as api.example.com,www.example.com, ${MAX_NAMES} at most, without * and addresses`,
    );
  return [...new Set(names)];
}

/** Matches a host name, an IPv4 address, or a pattern for the names below a name: `*.internal`. */
const HOST_PATTERN = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** Parses `all`, `off`, or a list of hosts. `off` becomes an empty list. */
export function hostPatterns(text: string): readonly string[] | 'all' {
  if (text === 'all') return 'all';
  if (text === 'off') return [];
  const list = listOf(text.toLowerCase()).map(withoutBrackets);
  if (list.length === 0 || !list.every((host) => HOST_PATTERN.test(host) || isIP(host) !== 0))
    throw new InvalidValue('all, off or a list of hosts such as api.example.com,*.internal, without ports');
  return list;
}

export function emailAddresses(text: string): readonly string[] {
  const list = listOf(text).map((address) => address.replace(/^mailto:/i, ''));
  if (!list.every((address) => /^[^\s@,?]+@[^\s@,?]+$/.test(address)))
    throw new InvalidValue('an e-mail address, or several with commas');
  return list;
}

export function httpsUrl(text: string): string {
  if (!URL.canParse(text) || new URL(text).protocol !== 'https:')
    throw new InvalidValue('a URL that begins with https://');
  return text;
}

function listOf(text: string): string[] {
  return text === '' ? [] : text.split(',').map((item) => item.trim());
}

export function oneOf<const T extends string>(values: readonly T[]) {
  return (text: string): T => {
    if (!(values as readonly string[]).includes(text)) throw new InvalidValue(`one of ${values.join(', ')}`);
    return text as T;
  };
}

export function sessionKey(text: string): string {
  if (text.length < 32) throw new InvalidValue('32 characters or longer');
  return text;
}

/** Parses `500ms`, `30s`, `2m`, `1h` to milliseconds, from `min` to a day. A number without a unit is seconds. */
export function duration(min: number) {
  return (text: string): number => {
    const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text);
    const value = match === null ? Number.NaN : Math.round(Number(match[1]) * (TIME_UNITS[match[2] ?? 's'] as number));
    // The limit is far below 2^31 - 1 ms (24 days). Beyond that, Node's timers fire at once.
    if (!(value >= min && value <= 86_400_000))
      throw new InvalidValue('a time such as 500ms, 30s or 2m, a day at most');
    return value;
  };
}

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2 };

/** Parses `65536`, `65536b`, `64KiB`, `2MiB` to bytes. `k` and `kb` also mean KiB, and `m` and `mb` also mean MiB. */
export function size(min: number, max = Number.MAX_SAFE_INTEGER) {
  const limits = max === Number.MAX_SAFE_INTEGER ? `${min} bytes at least` : `from ${min} to ${max} bytes`;
  return (text: string): number => {
    const match = /^(\d{1,10})(?:([km])(?:i?b)?|b)?$/i.exec(text);
    const unit = (match?.[2] ?? '').toLowerCase();
    const value = match === null ? Number.NaN : Number(match[1]) * (SIZE_UNITS[unit] as number);
    if (!(value >= min && value <= max)) throw new InvalidValue(`a size such as 65536, 64KiB or 2MiB, ${limits}`);
    return value;
  };
}

export function rate(text: string): Rate {
  const parsed = parseRate(text);
  if (parsed === undefined) throw new InvalidValue(RATE_FORM);
  return parsed;
}

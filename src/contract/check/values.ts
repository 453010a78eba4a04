// Checks of values that have no parts: literals, strings, numbers.

import type { Schema } from '../contract.ts';
import { IS_DATE } from '../schema/schema.ts';
import { FORMATS } from '../types/formats.ts';
import { LIMITS } from '../types/limits.ts';
import { stepsOf, type Ways, waysOf } from '../types/pattern.ts';
import type { Check } from './run.ts';

const DECIMAL = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
/** Of an enumeration, in a message. */
const MOST_NAMED = 10;
const MOST_CHARACTERS = 100;

export function oneOf(values: readonly unknown[], texts: boolean): Check {
  const set = new Set(values);
  const read = texts
    ? new Map(values.filter((value) => value !== null).map((value) => [String(value), value]))
    : undefined;
  const message = `must be ${listed(values)}`;
  return (value, run) => {
    if (set.has(value)) return value;
    const found = typeof value === 'string' ? read?.get(value) : undefined;
    return found ?? run.wrong(message);
  };
}

/** `"a" or "b"`, cut at ten. */
export function listed(values: readonly unknown[]): string {
  const texts = values.slice(0, MOST_NAMED).map((value) => cut(JSON.stringify(value)));
  if (values.length > MOST_NAMED) return `one of ${texts.join(', ')}, … (${values.length} in all)`;
  return texts.length <= 2 ? texts.join(' or ') : `one of ${texts.join(', ')}`;
}

const cut = (text: string): string => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);

export const FORMAT_NAMES: Readonly<Record<string, string>> = {
  email: 'an email address',
  uuid: 'a UUID',
  date: 'a date like 2026-12-31',
  'date-time': 'a date and time like 2026-12-31T23:59:59Z',
  time: 'a time like 23:59:59Z',
  uri: 'a URI',
  ipv4: 'an IPv4 address',
  hostname: 'a host name',
};

const plainString: Check = (value, run) => (typeof value === 'string' ? value : run.wrong('must be a string'));

export function compileString(schema: Schema): Check {
  const { minLength, maxLength, format } = schema as { minLength?: number; maxLength?: number; format?: string };
  const toDate = Object.hasOwn(schema, IS_DATE);
  const fits = format === undefined ? undefined : FORMATS[format];
  if (format !== undefined && fits === undefined) throw new Error(`the format ${format} is not known`);
  const pattern = schema.pattern === undefined ? undefined : compilePattern(schema.pattern as string);
  if (minLength === undefined && maxLength === undefined && pattern === undefined && fits === undefined)
    return plainString;
  const kind = toDate ? `must be ${FORMAT_NAMES['date-time']}` : 'must be a string';
  return (value, run) => {
    if (typeof value !== 'string') return run.wrong(kind);
    // Lengths count characters, of which there are at most as many as units.
    if (maxLength !== undefined && value.length > maxLength && lengthOf(value) > maxLength) {
      return run.wrong(`must have at most ${maxLength} ${maxLength === 1 ? 'character' : 'characters'}`);
    }
    if (minLength !== undefined && (value.length < minLength || (minLength > 1 && lengthOf(value) < minLength))) {
      return run.wrong(minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`);
    }
    if (fits !== undefined && !fits(value)) return run.wrong(`must be ${FORMAT_NAMES[format as string]}`);
    if (pattern !== undefined && pattern(value, run) === undefined) return undefined;
    return toDate ? new Date(value) : value;
  };
}

/** A pattern runs last, and only as long as the request has steps left: backtracking may take a power of the length. */
function compilePattern(source: string): Check {
  const test = new RegExp(source, 'u');
  let ways: Ways | undefined;
  const message = `must match ${cut(source)}`;
  return (value, run) => {
    const text = value as string;
    // The load has refused the patterns for which this throws.
    ways ??= waysOf(source);
    if (ways.length > 0) {
      const steps = stepsOf(ways, text.length);
      run.patternSteps += steps;
      if (steps > LIMITS.patternSteps) return run.wrong('is too long for its pattern');
      if (run.patternSteps > LIMITS.patternSteps) return run.wrong('is more than one request can match with patterns');
    }
    return test.test(text) ? text : run.wrong(message);
  };
}

export function compileNumber(schema: Schema, texts: boolean): Check {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Readonly<
    Record<string, number | undefined>
  >;
  const integer = schema.type === 'integer';
  const what = integer ? 'must be a whole number' : 'must be a number';
  const isBounded = [minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf].some(
    (bound) => bound !== undefined,
  );
  return (given, run) => {
    const value = texts && typeof given === 'string' ? readNumber(given) : given;
    if (typeof value !== 'number' || !Number.isFinite(value)) return run.wrong(what);
    if (integer && !Number.isSafeInteger(value)) return run.wrong(what);
    if (!isBounded) return value;
    if (minimum !== undefined && value < minimum) return run.wrong(`must be at least ${minimum}`);
    if (maximum !== undefined && value > maximum) return run.wrong(`must be at most ${maximum}`);
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
      return run.wrong(`must be more than ${exclusiveMinimum}`);
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
      return run.wrong(`must be less than ${exclusiveMaximum}`);
    if (multipleOf !== undefined && !isMultiple(value, multipleOf))
      return run.wrong(`must be a multiple of ${multipleOf}`);
    return value;
  };
}

/** As JSON would have it, and `.5`; undefined for what is no number. */
function readNumber(text: string): number | undefined {
  // Up to nine digits, as nearly all are.
  let value = 0;
  let i = 0;
  for (; i < text.length && i < 9; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  if (i > 0 && i === text.length) return value;
  return text.length <= 50 && DECIMAL.test(text) ? Number(text) : undefined;
}

/** Decided by the decimal digits of both: 0.3 is a multiple of 0.1, although 0.3 / 0.1 is not 3. */
function isMultiple(value: number, step: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(step)) return value % step === 0;
  const [digits, exponent] = decimalOf(value);
  const [stepDigits, stepExponent] = decimalOf(step);
  // Neither has more than 21 digits, so that more than 80 powers of ten change nothing.
  const shift = Math.max(-80, Math.min(exponent - stepExponent, 80));
  if (shift >= 0) return (digits * 10n ** BigInt(shift)) % stepDigits === 0n;
  return digits % (stepDigits * 10n ** BigInt(-shift)) === 0n;
}

/** `-1.25e-7` is -125 times ten to the power of -9. */
function decimalOf(value: number): readonly [digits: bigint, exponent: number] {
  const [, whole = '', fraction = '', exponent = '0'] = /^(-?\d+)(?:\.(\d+))?(?:e(.+))?$/.exec(String(value)) ?? [];
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}

/** In characters: a pair of surrogates is one. */
function lengthOf(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) length--;
  }
  return length;
}

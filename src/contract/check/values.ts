// Compiles the schemas of literals, strings and numbers.

import type { Schema } from '../contract.ts';
import { IS_DATE, IS_TRIMMED } from '../schema/schema.ts';
import { NOTE_FORMATS } from '../source/constraint-tags.ts';
import { LIMITS } from '../types/check-cost.ts';
import { FORMATS } from '../types/formats.ts';
import { type Retries, retriesOf, stepsOf } from '../types/pattern.ts';
import { FAULTS } from './messages.ts';
import { type Check, PER_STEP } from './run.ts';

/** A decimal number with a digit at least on one side of the point: `1`, `1.5`, `1.`, `.5`, `-1e3`. */
const DECIMAL = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** @param parsesText whether to accept `"7"` for the literal 7, as in a query. The check then returns the literal */
export function compileLiterals(literals: readonly unknown[], parsesText: boolean): Check {
  const allowed = new Set(literals);
  const byText = parsesText ? new Map(literals.map((literal) => [String(literal), literal])) : undefined;
  const fault = FAULTS.notLiteral(literals);
  return (value, run) => {
    if (allowed.has(value)) return value;
    const literal = typeof value === 'string' ? byText?.get(value) : undefined;
    // No text is the literal null.
    return literal ?? run.report(fault);
  };
}

const checkString: Check = (value, run) => (typeof value === 'string' ? value : run.report(FAULTS.notString));

export function compileString(schema: Schema): Check {
  const { minLength, maxLength } = schema;
  const format = NOTE_FORMATS.has(schema.format as string) ? undefined : schema.format;
  const isTrimmed = Object.hasOwn(schema, IS_TRIMMED);
  const becomesDate = Object.hasOwn(schema, IS_DATE);
  const matchesFormat = format === undefined ? undefined : FORMATS[format];
  if (format !== undefined && matchesFormat === undefined) throw new Error(`No check implements the format ${format}`);
  const matchPattern = schema.pattern === undefined ? undefined : compilePattern(schema.pattern);
  if ([minLength, maxLength, matchPattern, matchesFormat].every((rule) => rule === undefined) && !isTrimmed)
    return checkString;
  const cost = matchPattern === undefined && matchesFormat === undefined ? 1 / PER_STEP.entries : 1;
  const notString = becomesDate ? FAULTS.notFormat('date-time') : FAULTS.notString;
  return (sent, run) => {
    if (typeof sent !== 'string') return run.report(notString);
    const value = isTrimmed ? sent.trim() : sent;
    run.spend(cost + value.length / PER_STEP.characters);
    // Counting characters takes time, so `length` is compared first. `length` is the number of UTF-16 units, which is
    // never less than the number of characters: `'😀'.length` is 2.
    if (maxLength !== undefined && value.length > maxLength && countCharacters(value) > maxLength)
      return run.report(FAULTS.tooLong(maxLength));
    if (minLength !== undefined && (value.length < minLength || (minLength > 1 && countCharacters(value) < minLength)))
      return run.report(minLength === 1 ? FAULTS.empty : FAULTS.tooShort(minLength));
    if (matchesFormat !== undefined && !matchesFormat(value)) return run.report(FAULTS.notFormat(format as string));
    if (matchPattern !== undefined && matchPattern(value, run) === undefined) return undefined;
    return becomesDate ? new Date(value) : value;
  };
}

/**
 * Compiles a pattern. The time of a match can grow with a power of the text's length, because V8 tries each way to
 * divide the text among the pattern's repetitions. So the steps are estimated before the pattern runs. A request is
 * refused when one match, or all its checks together, would need too many steps.
 */
function compilePattern(source: string): Check {
  const regExp = new RegExp(source, 'u');
  let retries: Retries | undefined;
  const fault = FAULTS.noMatch(source);
  return (value, run) => {
    const text = value as string;
    // `retriesOf` cannot throw here: it throws only for patterns with which the controller would not have loaded.
    retries ??= retriesOf(source);
    if (retries.length > 0) {
      const steps = stepsOf(retries, text.length);
      if (steps > LIMITS.patternSteps) return run.report(FAULTS.tooLongForPattern);
      run.spend(steps);
    }
    return regExp.test(text) ? text : run.report(fault);
  };
}

export function compileNumber(schema: Schema, parsesText: boolean): Check {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const isInteger = schema.type === 'integer';
  const notNumber = isInteger ? FAULTS.notInteger : FAULTS.notNumber;
  const bounds = [minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf];
  const isBounded = bounds.some((bound) => bound !== undefined);
  return (sent, run) => {
    const value = parsesText && typeof sent === 'string' ? parseNumber(sent) : sent;
    if (typeof value !== 'number' || !Number.isFinite(value)) return run.report(notNumber);
    if (isInteger && !Number.isSafeInteger(value)) {
      if (!Number.isInteger(value)) return run.report(notNumber);
      if (value > 0) return run.report(FAULTS.tooLarge(maximum ?? Number.MAX_SAFE_INTEGER));
      return run.report(FAULTS.tooSmall(minimum ?? Number.MIN_SAFE_INTEGER));
    }
    if (!isBounded) return value;
    if (minimum !== undefined && value < minimum) return run.report(FAULTS.tooSmall(minimum));
    if (maximum !== undefined && value > maximum) return run.report(FAULTS.tooLarge(maximum));
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
      return run.report(FAULTS.notMoreThan(exclusiveMinimum));
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
      return run.report(FAULTS.notLessThan(exclusiveMaximum));
    if (multipleOf === undefined) return value;
    run.spend(2);
    return isMultiple(value, multipleOf) ? value : run.report(FAULTS.notMultiple(multipleOf));
  };
}

/** Parses a JSON number, and also the forms `.5`, `5.` and `07`. Returns undefined when the text is not a number. */
function parseNumber(text: string): number | undefined {
  return text.length <= 50 && DECIMAL.test(text) ? Number(text) : undefined;
}

/** Whether a number is a multiple of `step`. Computes with decimal digits, because `0.3 / 0.1` is 2.999… */
function isMultiple(value: number, step: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(step)) return value % step === 0;
  const [digits, exponent] = decimalOf(value);
  const [stepDigits, stepExponent] = decimalOf(step);
  // Both numbers have at most 21 digits. The power of ten has one factor 2 and one factor 5 for each digit of a shift.
  // A number of 21 digits has fewer than 80 of each, so a shift by more than 80 digits changes no result.
  const shift = Math.max(-80, Math.min(exponent - stepExponent, 80));
  const powerOf = (shift: number) => 10n ** BigInt(Math.max(shift, 0));
  return (digits * powerOf(shift)) % (stepDigits * powerOf(-shift)) === 0n;
}

/** Splits a number into whole digits and a power of ten: `-1.25e-7` is -125 times ten to the power of -9. */
function decimalOf(value: number): readonly [digits: bigint, exponent: number] {
  const [, integer = '', fraction = '', exponent = '0'] = /^(-?\d+)(?:\.(\d+))?(?:e(.+))?$/.exec(String(value)) ?? [];
  return [BigInt(integer + fraction), Number(exponent) - fraction.length];
}

/** Counts the characters of a text. A surrogate pair (two UTF-16 units) is one character. */
function countCharacters(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) length--;
  }
  return length;
}

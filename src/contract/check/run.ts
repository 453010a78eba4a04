// A check is a function that compile.ts makes from a schema. This file declares the type of a check, the mistakes and
// counters of one run, and the interface of the compiler.
import type { Schema } from '../contract.ts';
import { LIMITS } from '../types/limits.ts';
import { MESSAGES } from './messages.ts';

/**
 * Checks a value and converts it to its declared type.
 *
 * @returns the converted value, which is meaningless when the check has reported a mistake to `run`
 */
export type Check = (value: unknown, run: Run) => unknown;

/**
 * One mistake. Its pointer is built only after the mistake is found: each enclosing check puts its own key in front. So
 * the check of a value without mistakes builds no pointers.
 */
export interface Mistake {
  pointer: string;
  readonly message: string;
}

/** The most characters of one key that a pointer shows. */
const MAX_KEY_LENGTH = 200;
/** The most characters of a pointer that an error shows. */
const MAX_POINTER_LENGTH = 1000;

/** The mistakes and the counted costs of checking one part of a request. */
export class Run {
  mistakes: Mistake[] = [];
  depth = 0;
  /** The number of attempts to match a part of a union. */
  tries = 0;
  /** The estimated steps of all regular expressions. */
  patternSteps = 0;

  report(message: string): undefined {
    this.mistakes.push({ pointer: '', message });
    return undefined;
  }

  /** Puts a key in front of the pointers of all mistakes from index `from` on. */
  prefixPointers(key: string | number, from: number): undefined {
    const step = typeof key === 'number' ? `/${key}` : stepOf(key);
    for (let i = from; i < this.mistakes.length; i++) {
      const mistake = this.mistakes[i] as Mistake;
      mistake.pointer = step + mistake.pointer;
    }
  }

  reportMissing(key: string): undefined {
    this.report(MESSAGES.missing);
    return this.prefixPointers(key, this.mistakes.length - 1);
  }

  get hasMaxMistakes(): boolean {
    return this.mistakes.length >= LIMITS.mistakes;
  }
}

/**
 * Escapes a key as one step of a JSON pointer. A long key is cut, because the client chooses the keys of a record, and
 * each mistake repeats the key.
 */
export function stepOf(key: string): string {
  const shown = key.length > MAX_KEY_LENGTH ? `${key.slice(0, MAX_KEY_LENGTH)}…` : key;
  return `/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

export function cutPointer(pointer: string): string {
  return pointer.length > MAX_POINTER_LENGTH ? `${pointer.slice(0, MAX_POINTER_LENGTH)}…` : pointer;
}

export interface Compiler {
  compile(schema: Schema): Check;
  /** Follows the `$ref` of a schema. */
  resolve(schema: Schema): Schema;
  /**
   * Whether the checked values are strings from a query, a path or a form. The checks then parse numbers, booleans and
   * lists from these strings.
   */
  readonly readsText: boolean;
}

/** Follows a reference, and references to references. Returns any other schema unchanged, and `{}` for undefined. */
export function resolveReference(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>): Schema {
  let target = schema ?? {};
  for (let i = 0; typeof target.$ref === 'string' && i < 100; i++)
    target = defs[target.$ref.slice('#/$defs/'.length)] as Schema;
  return target;
}

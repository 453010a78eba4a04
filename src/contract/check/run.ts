// A check is a function that a schema is compiled to (compile.ts). This file has its type, the mistakes and counters of
// one run, and the compiler's interface.
import type { Schema } from '../contract.ts';
import { LIMITS } from '../types/limits.ts';
import { MESSAGES } from './messages.ts';

/**
 * Checks a value and converts it to its declared type.
 *
 * @returns the converted value; meaningless when the check has reported a mistake to `run`
 */
export type Check = (value: unknown, run: Run) => unknown;

/**
 * One mistake. Each check on the way out puts its own step in front of the pointer. So a value without mistakes costs
 * no pointer.
 */
export interface Mistake {
  pointer: string;
  readonly message: string;
}

/** Number of characters that a pointer shows of one key. */
const MAX_KEY_LENGTH = 200;
/** Number of characters that a problem shows of its pointer. */
const MAX_POINTER_LENGTH = 1000;

/** The mistakes and the counted costs of checking one part of a request. */
export class Run {
  mistakes: Mistake[] = [];
  depth = 0;
  /** Parts of unions that were tried. */
  tries = 0;
  patternSteps = 0;

  report(message: string): undefined {
    this.mistakes.push({ pointer: '', message });
    return undefined;
  }

  /** Puts a member's key in front of the pointers of the mistakes from index `from` on. */
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

  get isFull(): boolean {
    return this.mistakes.length >= LIMITS.mistakes;
  }
}

/**
 * One step of a JSON pointer, escaped. The client chooses the keys of a record, and each mistake repeats its key: so a
 * long key is cut.
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
   * Whether the values are strings from a query, a path or a form. Their checks parse numbers, booleans and lists from
   * them.
   */
  readonly readsText: boolean;
}

/** Follows a reference, and references to references. Returns any other schema as it is, and `{}` for none. */
export function resolveReference(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>): Schema {
  let target = schema ?? {};
  for (let i = 0; typeof target.$ref === 'string' && i < 100; i++)
    target = defs[target.$ref.slice('#/$defs/'.length)] as Schema;
  return target;
}

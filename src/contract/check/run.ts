// A check is a function that compile.ts makes from a schema. This file declares the type of a check, the interface of
// the compiler, and the run of a check: the mistakes that it finds, and the steps that it counts.
import type { Definitions, Problem, Schema } from '../contract.ts';
import { LIMITS } from '../types/check-cost.ts';
import { FAULTS, type Fault } from './messages.ts';
import type { RequestParts } from './request-check.ts';

/** Converts a value to its declared type. The result is meaningless when the check has reported a mistake to `run`. */
export type Check = (value: unknown, run: CheckRun) => unknown;

export interface Mistake extends Fault {
  /**
   * The path to the mistake, such as `/items/0/price`. A check that finds a mistake writes only `/price`. Each outer
   * check then puts its key in front. So the check of a value without mistakes builds no paths.
   */
  pointer: string;
}

/** Maximum characters of one key that a pointer shows. */
const MAX_KEY_LENGTH = 200;
/** Maximum characters of a pointer that an error shows. */
const MAX_POINTER_LENGTH = 1000;

/** How many of each one step pays for. A step is about 0.3 microseconds. The figures are measured. */
export const PER_STEP = {
  /** Entries of a list, and fields of an object. */
  entries: 16,
  /** Fields of an object with more than 128 fields. V8 keeps them in a dictionary, which it lists slowly. */
  fieldsOfLargeObject: 2,
  objects: 4,
  characters: 64,
} as const;

class TooManySteps extends Error {}

/** The run of the checks of one request. LIMITS has the maximum of `depth` and of the steps. */
export class CheckRun {
  /** The mistakes of the part that is being checked: the path, the query or the body. */
  mistakes: Mistake[] = [];
  /** The number of named types around the value that is being checked. */
  depth = 0;
  /** When set, an undeclared field is a mistake, except for fields with these names. */
  alsoDeclared: ReadonlySet<string> | undefined;
  fillsDefaults = true;
  /** The mistakes of the parts that have been checked. */
  readonly problems: Problem[] = [];
  #steps = 0;

  /** Runs a check. A check that needs too many steps ends, and has this one mistake. */
  check(check: Check, value: unknown): unknown {
    try {
      return check(value, this);
    } catch (error) {
      if (!(error instanceof TooManySteps)) throw error;
      this.mistakes = [{ pointer: '', ...FAULTS.tooManySteps }];
      return undefined;
    }
  }

  /** Replaces a part of a request by its converted value, or adds its mistakes to the problems. */
  checkPart(check: Check | undefined, parts: RequestParts, part: keyof RequestParts, place: Problem['in']): void {
    if (check === undefined) return;
    const converted = this.check(check, parts[part]);
    if (this.mistakes.length === 0) {
      parts[part] = converted;
      return;
    }
    for (const mistake of this.mistakes)
      this.problems.push({ in: place, ...mistake, pointer: cutPointer(mistake.pointer) });
    this.mistakes = [];
  }

  /**
   * Counts steps before they are done. Unions try a value several times, and unique lists in lists compare it several
   * times, so each check counts whatever can grow with the value. @throws TooManySteps
   */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > LIMITS.steps) throw new TooManySteps();
  }

  /** Reports a mistake of the checked value. Returns undefined, which the check returns as its meaningless result. */
  report(fault: Fault, pointer = ''): undefined {
    this.spend(1);
    this.mistakes.push({ pointer, ...fault });
    return undefined;
  }

  reportField(name: string, fault: Fault): undefined {
    return this.report(fault, escapeStep(name));
  }

  /** Puts a key in front of the pointers of the mistakes from index `from` on. */
  prefixPointers(key: string | number, from: number): undefined {
    this.spend(this.mistakes.length - from);
    const prefix = typeof key === 'number' ? `/${key}` : escapeStep(key);
    for (const mistake of this.mistakes.slice(from)) mistake.pointer = prefix + mistake.pointer;
  }

  get hasMaxMistakes(): boolean {
    return this.mistakes.length >= LIMITS.mistakes;
  }
}

/**
 * Escapes a key as one step of a JSON pointer: `a/b` as `/a~1b`. A long key is cut, because the client chooses the keys
 * of a `Record`, and the error repeats a key for each mistake.
 */
export function escapeStep(key: string): string {
  const shown = key.length > MAX_KEY_LENGTH ? `${key.slice(0, MAX_KEY_LENGTH)}…` : key;
  return `/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

export function cutPointer(pointer: string): string {
  return pointer.length > MAX_POINTER_LENGTH ? `${pointer.slice(0, MAX_POINTER_LENGTH)}…` : pointer;
}

export interface Compiler {
  compile(schema: Schema): Check;
  resolve(schema: Schema): Schema;
  /** Whether the checks parse numbers, booleans and lists from strings, as for a query, a path or a form. */
  readonly parsesText: boolean;
  /** The compiler for the defaults of fields, which are JSON; undefined when defaults are not filled in. */
  readonly forDefaults: Compiler | undefined;
}

/** Maximum number of references to references. The limit ends a circle. */
const MAX_REFERENCES = 100;

/** Follows a reference, and references to references. Returns any other schema unchanged, and `{}` for undefined. */
export function resolveReference(schema: Schema | undefined, defs: Definitions): Schema {
  let target = schema ?? {};
  for (let i = 0; typeof target.$ref === 'string' && i < MAX_REFERENCES; i++)
    target = defs[target.$ref.slice('#/$defs/'.length)] as Schema;
  return target;
}

/** Says whether a schema requires a field. A union does so if each of its parts does. */
export function hasRequiredField(schema: Schema | undefined, defs: Definitions): boolean {
  const { required = [], anyOf } = resolveReference(schema, defs);
  return required.length > 0 || anyOf?.every((part) => hasRequiredField(part, defs)) === true;
}

// What every check works with: how it is called, what it reports to, and how much one request may cost.
import type { Schema } from '../contract.ts';
import { LIMITS } from '../types/limits.ts';

/**
 * @returns the value as the operation gets it; when something is wrong, `run` has been told and the value means nothing
 */
export type Check = (value: unknown, run: Run) => unknown;

/** One mistake, its pointer put together from the inside out: what is right costs no path. */
export interface Mistake {
  pointer: string;
  readonly message: string;
}

/** Characters. */
const MOST_OF_KEY = 200;
const MOST_OF_POINTER = 1000;

/** What is found out while one request is checked. */
export class Run {
  mistakes: Mistake[] = [];
  depth = 0;
  tries = 0;
  patternSteps = 0;

  wrong(message: string): undefined {
    this.mistakes.push({ pointer: '', message });
    return undefined;
  }

  /** The mistakes from `from` on were found in the member `key`. */
  within(key: string | number, from: number): void {
    const step = typeof key === 'number' ? `/${key}` : stepOf(key);
    for (let i = from; i < this.mistakes.length; i++) {
      const mistake = this.mistakes[i] as Mistake;
      mistake.pointer = step + mistake.pointer;
    }
  }

  missing(key: string): void {
    this.mistakes.push({ pointer: '', message: 'is missing' });
    this.within(key, this.mistakes.length - 1);
  }

  get isFull(): boolean {
    return this.mistakes.length >= LIMITS.mistakes;
  }
}

/** Of a JSON pointer. The keys of a record are the client's: a long one would come back with each of its mistakes. */
export function stepOf(key: string): string {
  const known = key.length > MOST_OF_KEY ? `${key.slice(0, MOST_OF_KEY)}…` : key;
  return `/${known.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** What of a pointer is told. */
export function cutPointer(pointer: string): string {
  return pointer.length > MOST_OF_POINTER ? `${pointer.slice(0, MOST_OF_POINTER)}…` : pointer;
}

export interface Compiler {
  compile(schema: Schema): Check;
  /** What a `$ref` stands for. */
  resolve(schema: Schema): Schema;
  /** Values are texts, from a query, a path or a form: numbers, booleans and lists are read out of them. */
  readonly texts: boolean;
}

/** The schema that a reference stands for, in however many steps; any other schema is itself, and none is `{}`. */
export function resolveReference(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>): Schema {
  let target = schema ?? {};
  for (let i = 0; typeof target.$ref === 'string' && i < 100; i++)
    target = defs[target.$ref.slice('#/$defs/'.length)] as Schema;
  return target;
}

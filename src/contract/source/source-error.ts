// The errors of reading a source. `at` is the offset of the mistake in the source. The code that catches the error
// turns the offset into `file:line`.

/** Thrown for a source that cannot be parsed. */
export class SourceError extends Error {
  readonly at: number;
  /** The file, which its reader adds. */
  readonly path: string = '';
  readonly source: string = '';
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The advice for a type that TypeScript can write out. `gatefold contracts` asks it where an advice ends so. */
export const ASK = 'run gatefold contracts';
export const WRITE_OUT = `write the type out, or ${ASK}`;

/** Thrown for a type that is not among those that docs/CONTRACTS.md lists. */
export class Unsupported extends Error {
  /** The file that has the type; empty when the file is unknown. */
  readonly path: string;
  readonly at: number;
  /** The advice what to write instead; empty when the message has it already. By default, it is to give a schema. */
  readonly cure: string | undefined;
  /** The type that TypeScript can write out; undefined when it cannot, or when the contract has it already. */
  wanted?: WantedType | undefined;
  /** Whether the type was written out, and may be another one now. Such a type refuses its file, also as a result. */
  isStale = false;
  constructor(message: string, path: string, at: number, cure?: string) {
    super(message);
    this.path = path;
    this.at = at;
    this.cure = cure;
  }

  /** Only the message about a tag has its advice already. */
  get code(): 'TAG_WITHOUT_EFFECT' | 'UNREAD_TYPE' {
    return this.cure === '' ? 'TAG_WITHOUT_EFFECT' : 'UNREAD_TYPE';
  }
}

/** A type in a file of the author: its offset, and the kind of its node (syntax.ts). */
export interface WantedType {
  readonly path: string;
  readonly at: number;
  readonly kind: string;
}

/** Thrown when a type is needed to evaluate itself, as in `type A = keyof A`. */
export class CircularType extends Unsupported {}

/** Returns what `read` returns, or what `recover` makes of its error Unsupported. */
export function readOr<T>(read: () => T, recover: (error: Unsupported) => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unsupported) return recover(error);
    throw error;
  }
}

/** Returns a line number, counted from 1. */
export function lineOf(source: string, at: number): number {
  let line = 1;
  for (let i = source.indexOf('\n'); i >= 0 && i < at; i = source.indexOf('\n', i + 1)) line++;
  return line;
}

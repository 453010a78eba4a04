// The errors of reading a source: its syntax cannot be parsed, or a type in it is not supported. `at` is the offset of
// the mistake. The code that catches the error turns the offset into `file:line`.

/** The parser found something that it did not expect. */
export class SourceError extends Error {
  readonly at: number;
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The cure for a type of a package. read-operation.ts replaces `OPERATION` by the operation's name. */
export const SCHEMA_CURE =
  'declare the schema of its library, static operations = { OPERATION: { body: schema } }, or write a type of your own';

/** A type is not among those that docs/CONTRACTS.md lists. */
export class Unsupported extends Error {
  readonly path: string;
  readonly at: number;
  /** The advice what to write instead. The text is empty when the message has the advice. */
  readonly cure: string;
  constructor(message: string, path: string, at: number, cure = 'write unknown and check it yourself') {
    super(message);
    this.path = path;
    this.at = at;
    this.cure = cure;
  }
}

/** A type is needed to evaluate itself, as in `type A = keyof A`. */
export class CircularType extends Unsupported {}

/** The number of the line that holds the offset, counted from 1. */
export function lineOf(source: string, at: number): number {
  let line = 1;
  for (let i = source.indexOf('\n'); i >= 0 && i < at; i = source.indexOf('\n', i + 1)) line++;
  return line;
}

// The two ways in which a source cannot be read: its syntax is not followed, or a type in it is not understood. Both
// carry the place; who catches them makes `file:line` of it.

/** The parser lost its way. */
export class SourceError extends Error {
  /** Offset in the source. */
  readonly at: number;
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** A type that is outside of the subset. */
export class Unsupported extends Error {
  readonly path: string;
  readonly at: number;
  /** What to write instead; empty where the message says it. */
  readonly cure: string;
  constructor(message: string, path: string, at: number, cure = 'write unknown and check it yourself') {
    super(message);
    this.path = path;
    this.at = at;
    this.cure = cure;
  }
}

/** A type that is asked for while it is being worked out. */
export class CircularType extends Unsupported {}

export function lineOf(source: string, at: number): number {
  let line = 1;
  for (let i = source.indexOf('\n'); i >= 0 && i < at; i = source.indexOf('\n', i + 1)) line++;
  return line;
}

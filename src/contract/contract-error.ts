// The error of a controller whose types cannot be read, with the place of the mistake in its source.
import type { TypeFiles } from './source/files.ts';
import { lineOf } from './source/source-error.ts';

/** Says why a controller does not load: its source has a request type or an operation that cannot be read. */
export class ContractError extends Error {
  /** The file and the line of the mistake: `/path/UserController.ts:12`. */
  readonly at: string;
  /** The column in that line, counted from 1. The field is undefined when the column is unknown. */
  readonly column: number | undefined;
  /** @param place `/path/UserController.ts:12` or `/path/UserController.ts:12:5` */
  constructor(place: string, message: string) {
    const [, at = place, column] = /^(.*:\d+):(\d+)$/.exec(place) ?? [];
    super(`${at.replace(/^.*[\\/]/, '')}: ${message}`);
    this.at = at;
    this.column = column === undefined ? undefined : Number(column);
  }
}

/** Writes an offset in a file as `/path/UserController.ts:12:5`, or the path alone when the file cannot be read. */
export function placeOf(path: string, offset: number, files: TypeFiles): string {
  try {
    const { source } = files.read(path);
    return `${path}:${lineOf(source, offset)}:${offset - source.lastIndexOf('\n', offset - 1)}`;
  } catch {
    return path;
  }
}

import { type LoadErrorCode, LoadRefusal } from '../base/load-refusal.ts';
import type { SourceFiles } from './source/files.ts';
import { lineOf, type WantedType } from './source/source-error.ts';

/** Thrown for a controller that does not load, because a type or an operation of its source cannot be read. */
export class ContractError extends LoadRefusal {
  /** The file of the mistake, with the line if it is known: `/path/UserController.ts:12`. */
  readonly at: string;
  /** The column, counted from 1; undefined when the column is unknown. */
  readonly column: number | undefined;
  readonly wanted: WantedType | undefined;
  /** @param place `/path/UserController.ts:12:5`, without the column, or without line and column */
  constructor(place: string, message: string, code: LoadErrorCode = 'UNREAD_TYPE', wanted?: WantedType) {
    const [, at = place, column] = /^(.*:\d+):(\d+)$/.exec(place) ?? [];
    super(code, `${at.replace(/^.*[\\/]/, '')}: ${message}`);
    this.at = at;
    this.wanted = wanted;
    this.column = column === undefined ? undefined : Number(column);
  }
}

/** @returns `/path/UserController.ts:12:5` */
export function placeOf(path: string, offset: number, files: SourceFiles): string {
  const { source } = files.read(path);
  return `${path}:${lineOf(source, offset)}:${offset - source.lastIndexOf('\n', offset - 1)}`;
}

// Why a controller does not load, with its place: a request type that is not understood, or a source that is not
// followed.

import type { TypeFiles } from './source/files.ts';
import { lineOf } from './source/source-error.ts';

/** A request type that is not understood: the file does not load. The message is one line with its place. */
export class ContractError extends Error {
  /** `/path/UserController.ts:12` */
  readonly at: string;
  /** Of that line, from 1, where known. */
  readonly column: number | undefined;
  /** @param place `/path/UserController.ts:12`, or with a column behind */
  constructor(place: string, message: string) {
    const [, at = place, column] = /^(.*:\d+):(\d+)$/.exec(place) ?? [];
    super(`${at.replace(/^.*[\\/]/, '')}: ${message}`);
    this.at = at;
    this.column = column === undefined ? undefined : Number(column);
  }
}

/** `/path/UserController.ts:12:5` */
export function placeOf(path: string, at: number, files: TypeFiles): string {
  try {
    const { source } = files.read(path);
    return `${path}:${lineOf(source, at)}:${at - source.lastIndexOf('\n', at - 1)}`;
  } catch {
    return path;
  }
}

// Why a controller does not load, with its place: a request type that is not understood, or a source that is not followed.
import { lineOf } from './source-error.ts';
import type { TypeFiles } from './type-files.ts';

/** A request type that is not understood: the file does not load. The message is one line with its place. */
export class ContractError extends Error {
  /** `/path/UserController.ts:12` */
  readonly at: string;
  constructor(place: string, message: string) {
    super(`${place.replace(/^.*[\\/]/, '')}: ${message}`);
    this.at = place;
  }
}

/** `/path/UserController.ts:12` */
export function placeOf(path: string, at: number, files: TypeFiles): string {
  try {
    return `${path}:${lineOf(files.read(path).source, at)}`;
  } catch {
    return path;
  }
}

// A file as the body of an answer. request/answer/replies.ts sends it, whole or the part that the client asks for.
import type { FileContent } from './open-file.ts';

const BRAND = Symbol.for('gatefold.FileBody');

export class FileBody {
  readonly content: FileContent;
  readonly type: string;

  constructor(content: FileContent, type: string) {
    this.content = content;
    this.type = type;
  }
}

Object.defineProperty(FileBody.prototype, BRAND, { value: true });

/** Not by `instanceof`, because a controller may import another copy of this package. */
export function isFileBody(value: unknown): value is FileBody {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

/** Returns a strong entity tag. @param coding the content coding of the file, if it has one */
export function entityTagOf({ state: { mtimeNs, size, ino } }: FileContent, coding = ''): string {
  return `"${mtimeNs.toString(36)}-${size.toString(36)}-${ino.toString(36)}${coding && `-${coding}`}"`;
}

export function modifiedTimeOf({ state: { mtimeNs } }: FileContent): string {
  return new Date(Number(mtimeNs / 1_000_000n)).toUTCString();
}

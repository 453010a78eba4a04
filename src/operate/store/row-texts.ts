// The rows of a large table as the text of its file, in parts. After a change, only the parts that have a changed row
// are written anew, so a change of one row among 100,000 costs some milliseconds.

/** Each part of a table of a million rows has some 1,000 rows. */
const PARTS = 1024;
/** Names that were made for rows without an id of their own begin like this (entries.ts). */
const MADE_NAME = '~';

export class RowTexts {
  readonly #names = Array.from({ length: PARTS + 1 }, () => new Set<string>());
  readonly #texts: (Buffer | undefined)[] = [];

  /** Notes that a row is new, has changed, or is gone. */
  note(name: string, isThere: boolean): void {
    const part = partOf(name);
    if (isThere) this.#names[part]?.add(name);
    else this.#names[part]?.delete(name);
    this.#texts[part] = undefined;
  }

  /** Notes that any row may have changed. */
  forgetTexts(): void {
    this.#texts.length = 0;
  }

  /** @param textOf returns the JSON of a row @returns the list of rows without its brackets */
  list(textOf: (name: string) => string): Buffer[] {
    const texts = this.#names.map((names, part) => {
      const known = this.#texts[part];
      if (known !== undefined || names.size === 0) return known;
      const text = Buffer.from(Array.from(names, textOf).join(',\n'));
      this.#texts[part] = text;
      return text;
    });
    const comma = Buffer.from(',\n');
    return texts.flatMap((text) => (text === undefined ? [] : [comma, text])).slice(1);
  }
}

/** Made names are last: when the file is read, the first of two rows with the same id gets the id as its name. */
function partOf(name: string): number {
  if (name.startsWith(MADE_NAME)) return PARTS;
  let hash = 0;
  for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  return (hash ^ (hash >>> 15)) & (PARTS - 1);
}

// Compares words that may have typing errors, or differ in case and separators: `EXPIRES_AT` and `expiresAt`.

/** Counts the edits between two words: a letter added, removed, changed, or swapped with the next. */
export function editDistance(from: string, to: string): number {
  let [rowBeforeLast, lastRow]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= from.length; i++) {
    // `row[j]` is the distance from the first i letters of `from` to the first j letters of `to`.
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      // There is no letter before the first one.
      const isSwapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        (lastRow[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (lastRow[j - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (rowBeforeLast[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [rowBeforeLast, lastRow] = [lastRow, row];
  }
  return lastRow[to.length] as number;
}

export function isNear(from: string, to: string, maxEdits: number): boolean {
  return Math.abs(from.length - to.length) <= maxEdits && editDistance(from, to) <= maxEdits;
}

/** Returns the lower-case letters and digits of a name: `expiresat` for `expiresAt`, `expires-at` and `EXPIRES_AT`. */
export function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

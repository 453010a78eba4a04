// Compares words despite typing errors and spelling. The callers choose which words matter.

/** Counts the edits between two words: a letter added, removed, changed, or swapped with the next. */
export function editDistance(from: string, to: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, row];
  }
  return last[to.length] as number;
}

/**
 * Returns whether at most `most` edits separate the words. The words are never near when their lengths differ by more.
 */
export function isNear(from: string, to: string, most: number): boolean {
  return Math.abs(from.length - to.length) <= most && editDistance(from, to) <= most;
}

/** Returns the lower-case letters and digits of a name: `expiresat` for `expiresAt`, `expires-at` and `EXPIRES_AT`. */
export function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

// The texts of source files that a process reads before it gets the order to load the folder, while it has nothing else
// to do. At the load, a text is used only if the file has not changed since.
import { fingerprintOf, statOf } from '../base/fingerprint.ts';
import { readSource } from '../base/source-file.ts';

export interface EarlyTexts {
  /** Returns all texts. */
  all(): Iterable<string>;
  /** Returns the text of a file that still has this fingerprint. */
  find(path: string, fingerprint: string): string | undefined;
  /** Frees the memory of all texts. */
  clear(): void;
}

/**
 * Milliseconds since the last change of a file that is read early. Two writes within one tick of the kernel can leave
 * the same fingerprint, so a file that was just written may change without a new fingerprint.
 */
const MIN_AGE = 100;

/** @param paths real paths; a file that cannot be read is left out, and its load reports the error */
export function readEarly(paths: readonly string[]): EarlyTexts {
  const texts = new Map<string, { readonly fingerprint: string; readonly text: string }>();
  for (const path of paths) {
    const stat = statOf(path);
    if (stat === undefined || Date.now() - Math.max(stat.mtimeMs, stat.ctimeMs) < MIN_AGE) continue;
    try {
      texts.set(path, { fingerprint: fingerprintOf(stat), text: readSource(path) });
    } catch {}
  }
  return {
    *all() {
      for (const { text } of texts.values()) yield text;
    },
    find(path, fingerprint) {
      const early = texts.get(path);
      return early?.fingerprint === fingerprint ? early.text : undefined;
    },
    clear: () => texts.clear(),
  };
}

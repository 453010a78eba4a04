// The source texts of the modules that this process runs. The checks of requests are made from the types in a text, and
// must fit the code that runs. So the types and the code must come from the same text. Where Node hands over the text
// that it loads, this file uses that text. Elsewhere, a text is valid only if the file had it before the import and
// still has it.
import { checkSource, readSource } from '../base/source-file.ts';
import { SOURCE } from '../contract/source/files.ts';
import { isOwnFile } from '../own-files.ts';

export interface SourceTexts {
  /** Runs the step of Node's loader that reads a file, and keeps the text that the step has read. */
  keepTextOf<T extends LoadResult>(path: string, load: () => T): T;
  /**
   * Returns the text of a file that is about to be imported, or an empty text when the file cannot be read.
   *
   * @param isFresh whether the URL of the file is new, so that Node does not take the module from its cache
   */
  readBeforeImport(path: string, isFresh: boolean): string;
  /** @throws SourceChanged, and what reading the file throws */
  textOf(path: string): string;
  imported(): Iterable<string>;
  isImported(path: string): boolean;
}

interface LoadResult {
  readonly format?: string | null | undefined;
  readonly source?: unknown;
}

/** Error when a file has changed since it was imported. file-loader.ts then loads the file again. */
export class SourceChanged extends Error {
  constructor(path: string) {
    super(`${path} has changed while it was loaded`);
  }
}

export function createSourceTexts(): SourceTexts {
  /** Path → the text that Node has handed over and runs. */
  const running = new Map<string, string>();
  /** Path → the text from before an import, for files whose text Node does not hand over. */
  const expected = new Map<string, string>();

  const keepTextOf: SourceTexts['keepTextOf'] = (path, load) => {
    if (!isSource(path)) return load();
    checkSource(path);
    // Node hands over TypeScript as it was written, so the file is read once.
    const isTypeScript = path.endsWith('.ts') && process.features.typescript === 'strip';
    const handedOver = isTypeScript ? load() : undefined;
    if (isWritten(handedOver)) {
      running.set(path, textOfSource(handedOver.source));
      return handedOver;
    }
    const text = readSource(path);
    const loaded = load();
    // A tool may have transformed JavaScript, and CommonJS reads its files by itself. In both cases the file must not
    // change.
    running.set(path, isWritten(loaded) ? textOfSource(loaded.source) : refuseChange(path, text));
    return loaded;
  };

  function readBeforeImport(path: string, isFresh: boolean): string {
    try {
      const text = readSource(path);
      if (isSource(path) && (isFresh || !expected.has(path))) expected.set(path, text);
      return text;
    } catch {
      return '';
    }
  }

  function textOf(path: string): string {
    const text = running.get(path);
    if (text !== undefined) return text;
    const imported = expected.get(path);
    return imported === undefined ? readSource(path) : refuseChange(path, imported);
  }

  return {
    keepTextOf,
    readBeforeImport,
    textOf,
    imported: () => [...running.keys(), ...expected.keys()],
    isImported: (path) => running.has(path) || expected.has(path),
  };
}

/** Says whether the source is the text of the file, types included. */
function isWritten(loaded: LoadResult | undefined): loaded is LoadResult {
  return loaded?.format?.endsWith('-typescript') === true && loaded.source !== null && loaded.source !== undefined;
}

export function isSource(path: string): boolean {
  return SOURCE.test(path) && !isOwnFile(path) && !/[\\/]node_modules[\\/]/.test(path);
}

/** @throws SourceChanged */
function refuseChange(path: string, text: string): string {
  if (readSource(path) !== text) throw new SourceChanged(path);
  return text;
}

function textOfSource(source: unknown): string {
  return typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
}

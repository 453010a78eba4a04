// The source texts of the modules that this process runs. Checks are made from the types in a source, so the types must
// come from the same text as the code. Some versions of Node hand over the text that they load. For other versions, the
// text of the file from before the import is used, if the file still has this text.
import { checkSource, readSource } from '../../base/source-file.ts';
import { SOURCE_FILE } from '../../contract/source/files.ts';
import { isOwnFile } from '../../own-files.ts';

export type SourceTexts = ReturnType<typeof createSourceTexts>;

interface LoadResult {
  readonly format?: string | null | undefined;
  readonly source?: unknown;
}

/** Thrown when a file has changed since it was imported. file-loader.ts then loads the file again. */
export class SourceChanged extends Error {
  constructor(path: string) {
    super(`${path} has changed while it was loaded`);
  }
}

export function createSourceTexts() {
  /** By path: the text of the code that runs. */
  const runningTexts = new Map<string, string>();
  /** By path: the text from before an import, for files whose text Node does not hand over. */
  const expectedTexts = new Map<string, string>();

  /** Runs `load`, the step of Node's loader that reads a file, and keeps the text that the step has read. */
  function keepTextOf<T extends LoadResult>(path: string, load: () => T): T {
    if (!isAuthorsSource(path)) return load();
    checkSource(path);
    // Node hands over TypeScript as it was written, so the file is not read a second time.
    const isTypeScript = /\.m?ts$/.test(path) && process.features.typescript === 'strip';
    const handedOver = isTypeScript ? load() : undefined;
    if (isAsWritten(handedOver)) {
      runningTexts.set(path, textOfSource(handedOver.source));
      return handedOver;
    }
    const text = readSource(path);
    const loaded = load();
    // For JavaScript, Node can hand over the output of a tool, and for CommonJS, Node hands over no text. So the text
    // from before the load is used, if the file still has this text.
    runningTexts.set(path, isAsWritten(loaded) ? textOfSource(loaded.source) : refuseChange(path, text));
    return loaded;
  }

  /** Returns an empty text for an unreadable file. @param isFresh whether a new URL makes Node read the file again */
  function readBeforeImport(path: string, isFresh: boolean): string {
    try {
      const text = readSource(path);
      if (isAuthorsSource(path) && (isFresh || !expectedTexts.has(path))) expectedTexts.set(path, text);
      return text;
    } catch {
      return '';
    }
  }

  /** @param path of any file, imported or not. @throws SourceChanged, or the error of the read */
  function textOf(path: string): string {
    const text = runningTexts.get(path);
    if (text !== undefined) return text;
    const expectedText = expectedTexts.get(path);
    return expectedText === undefined ? readSource(path) : refuseChange(path, expectedText);
  }

  return {
    keepTextOf,
    readBeforeImport,
    textOf,
    imported: (): Iterable<string> => [...runningTexts.keys(), ...expectedTexts.keys()],
    isImported: (path: string) => runningTexts.has(path) || expectedTexts.has(path),
  };
}

/** Whether Node has handed over the text as it was written, types included. */
function isAsWritten(loaded: LoadResult | undefined): loaded is LoadResult {
  return loaded?.format?.endsWith('-typescript') === true && loaded.source !== null && loaded.source !== undefined;
}

/** Whether a file is code of the author: not of Gatefold, and not of a package. */
export function isAuthorsSource(path: string): boolean {
  return SOURCE_FILE.test(path) && !isOwnFile(path) && !/[\\/]node_modules[\\/]/.test(path);
}

/** Returns `text` if the file still has this text. @throws SourceChanged */
function refuseChange(path: string, text: string): string {
  if (readSource(path) !== text) throw new SourceChanged(path);
  return text;
}

function textOfSource(source: unknown): string {
  return typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
}

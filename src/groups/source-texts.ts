// The texts that a process runs: what was imported and what is read of it must be one and the same. Where Node hands
// over what it loads, that text is kept. Elsewhere a text counts when the file had it before the import and has it when
// it is read.
import { readSource } from '../base/source-file.ts';
import { SOURCE } from '../contract/source/files.ts';
import { isOwnFile } from '../own-files.ts';

export interface SourceTexts {
  /** Runs the step of Node's loader that reads a file, and keeps the text that it has read. */
  during<T extends { format?: string | null | undefined; source?: unknown }>(path: string, load: () => T): T;
  /**
   * The text of a file that is about to be imported; empty: it cannot be read.
   *
   * @param isFresh its URL is a new one: Node does not take the module from its cache
   */
  before(path: string, isFresh: boolean): string;
  /** @throws SourceChanged, and what reading the file throws */
  textOf(path: string): string;
  imported(): Iterable<string>;
}

/** A file is another one by now than it was when it was imported. */
export class SourceChanged extends Error {
  constructor(path: string) {
    super(`${path} has changed while it was loaded`);
  }
}

export function createSourceTexts(): SourceTexts {
  /** Texts that run, as Node has handed them over. */
  const running = new Map<string, string>();
  /** Texts as they were before an import that Node tells nothing of. */
  const expected = new Map<string, string>();

  const during: SourceTexts['during'] = (path, load) => {
    if (!isSource(path)) return load();
    const text = readSource(path);
    const loaded = load();
    const { format, source } = loaded;
    const isHandedOver = format?.endsWith('-typescript') === true && source !== null && source !== undefined;
    // JavaScript may be the work of a tool, and CommonJS reads its files by itself: the file must not change meanwhile.
    running.set(path, isHandedOver ? textOfSource(source) : unchanged(path, text));
    return loaded;
  };

  function before(path: string, isFresh: boolean): string {
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
    return imported === undefined ? readSource(path) : unchanged(path, imported);
  }

  return { during, before, textOf, imported: () => [...running.keys(), ...expected.keys()] };
}

function isSource(path: string): boolean {
  return SOURCE.test(path) && !isOwnFile(path) && !/[\\/]node_modules[\\/]/.test(path);
}

function unchanged(path: string, text: string): string {
  if (readSource(path) !== text) throw new SourceChanged(path);
  return text;
}

function textOfSource(source: unknown): string {
  return typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
}

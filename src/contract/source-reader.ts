// Decides whether the source of a controller has to be parsed at all, and loads the parser with the first one that does: a
// service without types in its operations and without private methods never pays for it.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type HiddenNames, MARK } from './marks.ts';
import { mayBeTyped } from './may-be-typed.ts';
import type { RunTimeOperation } from './read-operation.ts';
import type { ReadContract, Reader, RunTimeLevel } from './reader.ts';
import { sourceText } from './source-text.ts';

export interface ControllerSource {
  /** What each level of the controller hides, nearest first. @throws ContractError */
  hidden(levels: readonly RunTimeLevel[]): Promise<readonly HiddenNames[]>;
  /** Undefined when nothing in the source gives types to the operations. @throws ContractError */
  contract(operations: readonly RunTimeOperation[], levels: readonly RunTimeLevel[]): Promise<ReadContract | undefined>;
  /** The same, whatever it takes: for documents and commands. @throws ContractError */
  describe(operations: readonly RunTimeOperation[], levels: readonly RunTimeLevel[]): Promise<ReadContract>;
}

export interface SourceReaderOptions {
  /** Told of each file that was read, so that a change of it is seen. */
  readonly remember: (path: string) => void;
  /** What the process has imported so far. */
  readonly imported: () => readonly string[];
}

export type SourceReader = (path: string, group: string) => ControllerSource;

const NOTHING: HiddenNames = { has: () => false };
const RELATIVE_IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(['"])(\.{1,2}\/[^'"\n]+)\1/g;

export function createSourceReader({ remember, imported }: SourceReaderOptions): SourceReader {
  let parser: Promise<Reader> | undefined;
  const load = () => (parser ??= import('./reader.ts').then(({ createReader }) => createReader(remember)));

  return (path, group) => {
    const source = readFileSync(path, 'utf8');
    const others = once(() => reachableFrom(path, source, imported()));
    const texts = once(() => others().map((file) => sourceText(file, textOf(file))));
    const describe: ControllerSource['describe'] = async (operations, levels) => {
      const classNames = levels.map(({ className }) => className);
      return (await load()).contract({ path, group, operations, classNames, others: texts });
    };
    return {
      async hidden(levels) {
        if (!mayHide(source, levels, others)) return levels.map(() => NOTHING);
        return (await load()).hidden(path, group, levels, others);
      },
      async contract(operations, levels) {
        const text = sourceText(path, source);
        const isTyped = operations.some(
          ({ name, method, own, given }) =>
            !own || given.body !== undefined || given.query !== undefined || mayBeTyped(text, name, method, texts),
        );
        return isTyped ? describe(operations, levels) : undefined;
      },
      describe,
    };
  };
}

/** Whether a mark anywhere could be meant for one of these classes. */
function mayHide(source: string, levels: readonly RunTimeLevel[], others: () => readonly string[]): boolean {
  if (MARK.test(source) || source.includes('\\u')) return true;
  const [only] = levels;
  const standsHere = levels.length === 1 && only !== undefined && (only.className === undefined || declares(source, only.className));
  return !standsHere && others().some((path) => MARK.test(textOf(path)));
}

function declares(source: string, className: string): boolean {
  if (className === 'default') return /\bdefault\s+class\s*[{e]/.test(source);
  return new RegExp(`\\b(?:class\\s+${escapeName(className)}|${escapeName(className)}\\s*=\\s*class)(?![\\w$])`, 'u').test(source);
}

const escapeName = (name: string): string => name.replace(/[^\w]/g, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

/** Files that the controller imports by relative paths, and they in turn; of what the process has imported. */
function reachableFrom(path: string, source: string, imported: readonly string[]): string[] {
  const known = new Set(imported);
  const found = new Set<string>();
  const queue: [string, string][] = [[path, source]];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [from, text] = next;
    for (const [, , specifier] of text.matchAll(RELATIVE_IMPORT)) {
      const plain = resolve(dirname(from), specifier as string);
      const file = [plain, plain.replace(/\.js$/, '.ts'), `${plain}.ts`, `${plain}.js`, `${plain}/index.ts`].find((one) => known.has(one));
      if (file === undefined || file === path || found.has(file)) continue;
      found.add(file);
      queue.push([file, textOf(file)]);
    }
  }
  // What is imported in another way (`#alias`, a computed path) is not found so: then everything is in sight.
  return /(?:\bfrom\s*|\bimport\s*\(?\s*)['"]#|\bimport\s*\(\s*[^'"\s]/.test(source)
    ? [...known].filter((file) => file !== path)
    : [...found];
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

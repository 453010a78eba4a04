// Finds and parses the files that types are imported from, each once while it stays as it is. Whoever watches the folder is
// told of every file that was read and of every file that was looked for in vain.
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Loader } from './evaluate.ts';
import { readTypedefs } from './js-types.ts';
import { parseModule } from './parse-module.ts';
import { SourceError } from './source-error.ts';
import type { Module, ParsedModule } from './syntax.ts';

export interface TypeFiles {
  /** @throws SourceError with its `path` */
  read(path: string): ParsedModule;
  readonly load: Loader;
}

/** A file whose syntax is not followed. */
export class UnreadableFile extends Error {
  readonly path: string;
  readonly source: string;
  readonly at: number;
  constructor(path: string, source: string, { message, at }: SourceError) {
    super(message);
    this.path = path;
    this.source = source;
    this.at = at;
  }
}

/** Parsed files are large; what many controllers share is kept, the rest is read again. */
const MOST_KEPT = 50;
const SOURCE = /\.(?:[mc]?ts|[mc]?js)$/;

/** @param remember told of every path that was looked at */
export function createTypeFiles(remember: (path: string) => void): TypeFiles {
  const kept = new Map<string, { stamp: string; module: ParsedModule }>();

  function read(path: string): ParsedModule {
    remember(path);
    const stamp = stampOf(path);
    const known = kept.get(path);
    if (known !== undefined && known.stamp === stamp) return known.module;
    const module = parse(path, readFileSync(path, 'utf8'));
    kept.delete(path);
    kept.set(path, { stamp: stamp as string, module });
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
    return module;
  }

  const load: Loader = (from, specifier) => {
    if (!/^\.{1,2}(?:\/|$)/.test(specifier)) return undefined;
    for (const path of candidates(resolve(dirname(from), specifier))) {
      if (SOURCE.test(path) && stampOf(path) !== undefined) return { path, module: read(path) };
      if (SOURCE.test(path)) remember(path);
    }
    return undefined;
  };

  return { read, load };
}

/** `./x.ts` as it stands; `./x.js` may mean `./x.ts` and `./x` either, as TypeScript allows. Types before code. */
function candidates(plain: string): string[] {
  const bare = plain.replace(/\.([mc]?)js$/, '');
  const typed = bare === plain ? [] : [`${bare}.ts`, `${bare}.d.ts`];
  return SOURCE.test(plain)
    ? [...(/\.[mc]?js$/.test(plain) ? typed : []), plain]
    : [`${plain}.ts`, `${plain}.d.ts`, `${plain}/index.ts`, `${plain}.js`, plain];
}

function stampOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() ? `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}` : undefined;
}

function parse(path: string, source: string): ParsedModule {
  try {
    const module = parseModule(source);
    return /\.[mc]?js$/.test(path) ? withTypedefs(module) : module;
  } catch (error) {
    throw error instanceof SourceError ? new UnreadableFile(path, source, error) : error;
  }
}

/** In plain JavaScript the types stand in comments. */
function withTypedefs(module: ParsedModule): ParsedModule {
  const { declarations, imports } = readTypedefs(module.source);
  const all: Module['declarations'] = new Map([...module.declarations, ...declarations]);
  const exports = new Map(module.exports);
  // Each `@typedef` is exported.
  for (const name of declarations.keys()) if (!exports.has(name)) exports.set(name, name);
  return { ...module, declarations: all, imports: new Map([...imports, ...module.imports]), exports };
}

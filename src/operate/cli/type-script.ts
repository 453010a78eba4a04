// The TypeScript that the author has installed: 5 and 6 by their classic interface, 7 by `typescript/unstable/sync`,
// which has the same words for most things. The functions of `TypeScript` hide the differences.
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type ts from 'typescript-5';
import { statOf } from '../../base/fingerprint.ts';
import { CommandError } from './command.ts';

export interface TypeScript {
  /** The functions and flags that both interfaces have. */
  readonly ts: typeof ts;
  readonly checker: ts.TypeChecker;
  readonly configPath: string | undefined;
  fileAt(path: string): ts.SourceFile | undefined;
  /** Returns the parts of a union or an intersection. */
  partsOf(type: ts.Type): readonly ts.Type[];
  /** Returns `A` for the type of `A extends B ? A : C`. */
  baseOf(type: ts.Type): ts.Type;
  elementFlagsOf(tuple: ts.Type): readonly ts.ElementFlags[];
  indexesOf(type: ts.Type): readonly { readonly keyType: ts.Type; readonly type: ts.Type }[];
  declarationsOf(symbol: ts.Symbol): readonly ts.Node[];
  /** Returns the paths of the files that declare a symbol. */
  pathsOf(symbol: ts.Symbol | undefined): readonly string[];
  close(): void;
}

/** The names of installed packages, of which the first that can be asked is used. */
const NAMES = ['typescript', 'typescript-6', 'typescript-5'];
/** Without strict checks of null, a type would lose `null` and `undefined`. */
const OPTIONS = { noEmit: true, strictNullChecks: true, allowImportingTsExtensions: true };

/** @throws CommandError */
export async function openTypeScript(folder: string, paths: readonly string[]): Promise<TypeScript> {
  const require = createRequire(join(folder, 'x.js'));
  const configPath = findConfig(folder);
  for (const name of NAMES) {
    let loaded: typeof ts;
    try {
      loaded = require(name) as typeof ts;
    } catch {
      continue;
    }
    if (typeof loaded.createProgram === 'function') return openClassic(loaded, folder, configPath, paths);
    try {
      const load = (part: string) => import(pathToFileURL(require.resolve(`${name}/unstable/${part}`)).href);
      const parts = { ...(await load('sync')), ...(await load('ast')), version: loaded.version };
      return openNative(parts, folder, configPath, paths);
    } catch (error) {
      if (!/PACKAGE_PATH|MODULE_NOT_FOUND/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    }
  }
  throw new CommandError(
    'No TypeScript of version 5, 6 or 7 is installed beside the controllers. Run: npm install --save-dev typescript',
  );
}

function findConfig(folder: string): string | undefined {
  const path = join(folder, 'tsconfig.json');
  if (statOf(path)?.isFile() === true) return path;
  return dirname(folder) === folder ? undefined : findConfig(dirname(folder));
}

function openClassic(
  loaded: typeof ts,
  folder: string,
  configPath: string | undefined,
  paths: readonly string[],
): TypeScript {
  const config = configPath && loaded.parseConfigFileTextToJson(configPath, readFileSync(configPath, 'utf8')).config;
  const home = configPath === undefined ? folder : dirname(configPath);
  const parsed = loaded.parseJsonConfigFileContent(config ?? {}, loaded.sys, home, OPTIONS);
  const rootNames = [...new Set([...parsed.fileNames, ...paths])];
  const program = loaded.createProgram({ rootNames, options: { ...parsed.options, ...OPTIONS } });
  return {
    ts: loaded,
    checker: program.getTypeChecker(),
    configPath,
    fileAt: (path) => program.getSourceFile(path),
    partsOf: (type) => (type as ts.UnionOrIntersectionType).types,
    baseOf: (type) => (type as ts.SubstitutionType).baseType,
    elementFlagsOf: (tuple) => (tuple as ts.TupleTypeReference).target.elementFlags,
    indexesOf: (type) => program.getTypeChecker().getIndexInfosOfType(type),
    declarationsOf: (symbol) => symbol.declarations ?? [],
    pathsOf: (symbol) => (symbol?.declarations ?? []).map((declaration) => declaration.getSourceFile().fileName),
    close() {},
  };
}

/** The part of `typescript/unstable/sync` whose words differ. */
interface Native {
  readonly API: new (
    options: object,
  ) => {
    parseConfigFile(path: string): { readonly fileNames: readonly string[] };
    updateSnapshot(changes: object): { getProjects(): readonly { program: ts.Program; checker: ts.TypeChecker }[] };
    close(): void;
  };
}
interface NativeType extends ts.Type {
  getTypes(): readonly ts.Type[];
  getBaseType(): ts.Type;
  getTarget(): { readonly elementFlags: readonly ts.ElementFlags[] };
}
type NativeSymbol = unknown & {
  readonly declarations: readonly { readonly path: string; resolve(): ts.Node | undefined }[];
};

function openNative(
  parts: typeof ts & Native,
  folder: string,
  configPath: string | undefined,
  paths: readonly string[],
): TypeScript {
  // The options are those of a file that only this process has, because the interface takes none.
  const madeConfig = join(configPath === undefined ? folder : dirname(configPath), 'tsconfig.gatefold.json');
  let text = '';
  const api = new parts.API({
    cwd: folder,
    fs: {
      readFile: (path: string) => (path === madeConfig ? text : undefined),
      fileExists: (path: string) => (path === madeConfig ? true : undefined),
    },
  });
  const { fileNames } = configPath === undefined ? { fileNames: [] } : api.parseConfigFile(configPath);
  const files = [...new Set([...fileNames, ...paths])];
  const base = configPath === undefined ? {} : { extends: configPath };
  text = JSON.stringify({ ...base, compilerOptions: OPTIONS, files, include: [] });
  const [project] = api.updateSnapshot({ openProjects: [madeConfig] }).getProjects();
  if (project === undefined)
    throw new CommandError(`TypeScript ${parts.version} does not open ${configPath ?? folder}`);
  const { checker, program } = project;
  const handlesOf = (symbol: ts.Symbol | undefined) => (symbol as NativeSymbol | undefined)?.declarations ?? [];
  return {
    ts: parts,
    checker,
    configPath,
    fileAt: (path) => program.getSourceFile(path),
    partsOf: (type) => (type as NativeType).getTypes(),
    baseOf: (type) => (type as NativeType).getBaseType(),
    elementFlagsOf: (tuple) => (tuple as NativeType).getTarget().elementFlags,
    indexesOf: (type) =>
      checker
        .getIndexInfosOfType(type)
        .map((info) => ({ ...info, type: (info as unknown as { valueType: ts.Type }).valueType })),
    declarationsOf: (symbol) => handlesOf(symbol).flatMap((handle) => handle.resolve() ?? []),
    pathsOf: (symbol) => handlesOf(symbol).map(({ path }) => path),
    close: () => api.close(),
  };
}

export const isLibrary = (path: string): boolean =>
  /^bundled:|[\\/]node_modules[\\/].+[\\/]lib[\\/]lib\.[\w.]+\.d\.ts$/.test(path);
const realPaths = new Map<string, string>();
/** TypeScript 7 writes the paths of declarations in lower case where the disk ignores the case. */
export function realPathOf(path: string): string {
  if (isLibrary(path)) return path;
  const real = realPaths.get(path) ?? realpathSync.native(path);
  realPaths.set(path, real);
  return real;
}
export const packageOf = (path: string): string | undefined =>
  /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(realPathOf(path))?.[1];
export const isOwn = (path: string): boolean => !isLibrary(path) && packageOf(path) === undefined;

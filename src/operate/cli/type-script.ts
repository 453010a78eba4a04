// The TypeScript that the author has installed: 5 and 6 by their classic interface, 7 by `typescript/unstable/sync`,
// which has the same words for most things. The functions of `TypeScript` hide the differences.
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type ts from 'typescript-5';
import { findConfig } from '../../contract/made-types.ts';
import { CommandError, lineOf } from './command.ts';

export interface TypeScript {
  /** The functions and flags that both interfaces have. */
  readonly ts: typeof ts;
  readonly program: Pick<ts.Program, 'getSourceFile'>;
  readonly checker: ts.TypeChecker;
  /** The nearest tsconfig.json, and those that it extends. */
  readonly configs: readonly string[];
  /** Paths of the files that tsconfig.json names. */
  readonly rootNames: readonly string[];
  /** Paths of all files that the types of the project come from. */
  readonly fileNames: readonly string[];
  readonly close: () => void;
}

/** Without strict checks of null, a type would lose `null` and `undefined`. */
const OPTIONS = { noEmit: true, strictNullChecks: true, allowImportingTsExtensions: true };

interface Place {
  readonly folder: string;
  /** The nearest tsconfig.json, if there is one. `home` is its folder, else the folder of controllers. */
  readonly configPath: string | undefined;
  readonly home: string;
  readonly paths: readonly string[];
}

/** @throws CommandError */
export async function openTypeScript(folder: string, paths: readonly string[]): Promise<TypeScript> {
  const require = createRequire(join(folder, 'x.js'));
  const configPath = findConfig(folder);
  const place = { folder, configPath, home: configPath === undefined ? folder : dirname(configPath), paths };
  try {
    const loaded = require('typescript') as typeof ts;
    if (typeof loaded.createProgram === 'function') return openClassic(loaded, place);
    const load = (part: string) => import(pathToFileURL(require.resolve(`typescript/unstable/${part}`)).href);
    const parts = { ...(await load('sync')), ...(await load('ast')), version: loaded.version };
    return openNative(parts, place);
  } catch (error) {
    const reason = lineOf(error).slice(0, 100);
    throw new CommandError(
      `No TypeScript 5.9, 6 or 7 can be asked: ${reason}. Run beside the controllers: npm install --save-dev typescript`,
    );
  }
}

function openClassic(loaded: typeof ts, { configPath, home, paths }: Place): TypeScript {
  const configs = new Set(configPath === undefined ? [] : [configPath]);
  const readFile = (path: string) => {
    configs.add(path);
    return loaded.sys.readFile(path);
  };
  const config = configPath && loaded.parseConfigFileTextToJson(configPath, readFileSync(configPath, 'utf8')).config;
  const host = { ...loaded.sys, readFile };
  const parsed = loaded.parseJsonConfigFileContent(config ?? {}, host, home, OPTIONS);
  const rootNames = [...new Set([...parsed.fileNames, ...paths])];
  const program = loaded.createProgram({ rootNames, options: { ...parsed.options, ...OPTIONS } });
  const fileNames = program.getSourceFiles().map(({ fileName }) => fileName);
  const checker = program.getTypeChecker();
  return { ts: loaded, program, checker, configs: [...configs], rootNames, fileNames, close() {} };
}

type NativeProject = Pick<TypeScript, 'checker'> & {
  readonly program: TypeScript['program'] & { getSourceFileNames(): readonly string[] };
};

interface Native {
  readonly API: new (
    options: object,
  ) => {
    parseConfigFile(path: string): { readonly fileNames: readonly string[] };
    updateSnapshot(changes: object): { getProjects(): readonly NativeProject[] };
    close(): void;
  };
}

function openNative(parts: typeof ts & Native, { folder, configPath, home, paths }: Place): TypeScript {
  // The options are those of a file that only this process has, because the interface takes none.
  const madeConfig = join(home, 'tsconfig.gatefold.json');
  let text = '';
  const read = new Set(configPath === undefined ? [] : [configPath]);
  const readFile = (path: string) => {
    if (path === madeConfig) return text;
    if (/\.json$/.test(path) && !/[\\/]package\.json$/.test(path)) read.add(path);
    return undefined;
  };
  const fileExists = (path: string) => (path === madeConfig ? true : undefined);
  const api = new parts.API({ cwd: folder, fs: { readFile, fileExists } });
  const { fileNames } = configPath === undefined ? { fileNames: [] } : api.parseConfigFile(configPath);
  const configs = [...read];
  const base = configPath === undefined ? {} : { extends: configPath };
  text = JSON.stringify({ ...base, compilerOptions: OPTIONS, files: [...fileNames, ...paths], include: [] });
  const [project] = api.updateSnapshot({ openProjects: [madeConfig] }).getProjects();
  if (project === undefined)
    throw new CommandError(`TypeScript ${parts.version} does not open ${configPath ?? folder}`);
  const { program, checker } = project;
  const files = { rootNames: fileNames, fileNames: program.getSourceFileNames() };
  return { ts: parts, program, checker, configs, ...files, close: () => api.close() };
}

/** The functions of TypeScript 7 in the place of fields of the classic interface. */
interface NativeType {
  getTypes(): readonly ts.Type[];
  getBaseType(): ts.Type;
  getTarget(): ts.TupleType;
}
type NativeDeclaration = { readonly path: string; resolve(): ts.Node | undefined };

const isNative = (type: object): type is NativeType => 'getTypes' in type;

export const partsOf = (type: ts.Type): readonly ts.Type[] =>
  isNative(type) ? type.getTypes() : (type as ts.UnionOrIntersectionType).types;
/** Returns `A` for the type of `A extends B ? A : C`. */
export const baseOf = (type: ts.Type): ts.Type =>
  isNative(type) ? type.getBaseType() : (type as ts.SubstitutionType).baseType;
export const elementFlagsOf = (tuple: ts.Type): readonly ts.ElementFlags[] =>
  (isNative(tuple) ? tuple.getTarget() : (tuple as ts.TupleTypeReference).target).elementFlags;

const declared = (symbol: ts.Symbol | undefined): readonly (NativeDeclaration | ts.Declaration)[] =>
  symbol?.declarations ?? [];
export const declarationsOf = (symbol: ts.Symbol): ts.Node[] =>
  declared(symbol).flatMap((declaration) => ('resolve' in declaration ? (declaration.resolve() ?? []) : declaration));
/** Returns the paths of the files that declare a symbol. */
export const pathsOf = (symbol: ts.Symbol | undefined): string[] =>
  declared(symbol).map((item) => ('resolve' in item ? item.path : item.getSourceFile().fileName));

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
const IN_PACKAGE = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/;
export const packageOf = (path: string): string | undefined => IN_PACKAGE.exec(realPathOf(path))?.[1];
/** Returns the folder of the package that has a file. */
export const homeOf = (path: string): string => IN_PACKAGE.exec(realPathOf(path))?.[0] ?? '';
export const isOwn = (path: string): boolean => !isLibrary(path) && packageOf(path) === undefined;

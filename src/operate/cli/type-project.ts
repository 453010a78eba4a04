// The project of the author, as its own TypeScript sees it, for `gatefold contracts`. A type is only written out when
// nothing that checks a value would be lost: tags, decorators and schemas are no part of a type.
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import type ts from 'typescript-5';
import { digestOf, type Source, versionOf } from '../../contract/made-types.ts';
import { findUnreadConstraint } from '../../contract/source/constraint-tags.ts';
import type { WantedType } from '../../contract/source/source-error.ts';
import { CommandError } from './command.ts';

export interface TypeProject {
  readonly ts: typeof ts;
  readonly checker: ts.TypeChecker;
  isLibrary(file: ts.SourceFile): boolean;
  nodeAt(wanted: WantedType): ts.TypeNode | undefined;
  /** Lists the own files and packages that the types of a file can depend on. */
  sourcesOf(path: string): Source[];
}

/** The names of installed packages, of which the first with the classic interface is used. TypeScript 7.0 has none. */
const NAMES = ['typescript', 'typescript-6', 'typescript-5'];

/** @throws CommandError */
export function openTypeProject(folder: string, wanted: readonly WantedType[]): TypeProject {
  const ts = loadTypeScript(folder);
  const configPath = ts.findConfigFile(folder, ts.sys.fileExists);
  const configText = configPath === undefined ? '' : readFileSync(configPath, 'utf8');
  const { config = {} } = configPath === undefined ? {} : ts.parseConfigFileTextToJson(configPath, configText);
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, configPath === undefined ? folder : dirname(configPath));
  // Without strict checks of null, a type would lose `null` and `undefined`.
  const options = { ...parsed.options, noEmit: true, strictNullChecks: true, allowImportingTsExtensions: true };
  const rootNames = [...new Set([...parsed.fileNames, ...wanted.map(({ path }) => path)])];
  const program = ts.createProgram({ rootNames, options });
  const checker = program.getTypeChecker();
  const isGlobal = (file: ts.SourceFile) =>
    isOwn(file) && (!ts.isExternalModule(file) || /\bdeclare\s+(?:global|module)\b/.test(file.text));
  const globals = program.getSourceFiles().filter(isGlobal);

  function sourcesOf(path: string): Source[] {
    const sources = new Map<string, Source>();
    const add = (kind: Source[0], name: string, print: string | undefined) => {
      if (print !== undefined) sources.set(`${kind} ${name}`, [kind, name, print]);
    };
    if (configPath !== undefined) add('config', nameOf(configPath), digestOf(configText));
    const files = new Set([program.getSourceFile(path), ...globals].filter((file) => file !== undefined));
    for (const file of files) {
      const realPath = realpathSync(file.fileName);
      const [, name] = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(realPath) ?? [];
      if (name !== undefined) add('package', name, versionOf(folder, name));
      else if (!program.isSourceFileDefaultLibrary(file)) add('file', nameOf(realPath), digestOf(file.text));
      if (name === undefined) for (const imported of importsOf(file)) files.add(imported);
    }
    return [...sources.values()];
  }

  const nameOf = (path: string) => relative(folder, path).replaceAll('\\', '/');

  function importsOf(file: ts.SourceFile): ts.SourceFile[] {
    const found: ts.SourceFile[] = [];
    // Each text is tried as a specifier, so `import('./x.ts')` in a type or in code counts, too.
    const visit = (node: ts.Node): void => {
      const symbol = ts.isStringLiteral(node) ? checker.getSymbolAtLocation(node) : undefined;
      found.push(...(symbol?.declarations ?? []).map((declaration) => declaration.getSourceFile()));
      ts.forEachChild(node, visit);
    };
    visit(file);
    return found;
  }

  function nodeAt({ path, at, kind }: WantedType): ts.TypeNode | undefined {
    const file = program.getSourceFile(path);
    let found: ts.TypeNode | undefined;
    const visit = (node: ts.Node): void => {
      if (node.pos > at || node.end <= at) return;
      if (found === undefined && node.getStart(file) === at && isOfKind(node, kind)) found = node as ts.TypeNode;
      ts.forEachChild(node, visit);
    };
    if (file !== undefined) visit(file);
    return found;
  }

  /** Whether a node of TypeScript is one of the reader's kind (contract/source/syntax.ts). */
  function isOfKind(node: ts.Node, kind: string): boolean {
    if (kind === 'name')
      return ts.isTypeReferenceNode(node) || ts.isImportTypeNode(node) || ts.isExpressionWithTypeArguments(node);
    if (kind === 'typeof') return ts.isTypeQueryNode(node);
    if (kind === 'indexed') return ts.isIndexedAccessTypeNode(node);
    if (kind === 'union') return ts.isUnionTypeNode(node);
    if (kind === 'keyof') return ts.isTypeOperatorNode(node);
    return kind === 'unsupported' && (ts.isConditionalTypeNode(node) || ts.isMappedTypeNode(node));
  }

  return { ts, checker, isLibrary: (file) => program.isSourceFileDefaultLibrary(file), nodeAt, sourcesOf };
}

export const isOwn = ({ fileName }: ts.SourceFile): boolean => !/[\\/]node_modules[\\/]/.test(realpathSync(fileName));

function loadTypeScript(folder: string): typeof ts {
  const require = createRequire(join(folder, 'x.js'));
  let version: string | undefined;
  for (const name of NAMES) {
    try {
      const loaded = require(name) as typeof ts;
      if (typeof loaded.createProgram === 'function') return loaded;
      version ??= loaded.version;
    } catch {
      // This one is not installed.
    }
  }
  throw new CommandError(
    version === undefined
      ? 'TypeScript is not installed beside the controllers. Run: npm install --save-dev typescript@6'
      : `TypeScript ${version} has no stable interface yet. Run: npm install --save-dev typescript-6@npm:typescript@6`,
  );
}

/** Properties of the schemas of libraries: Standard Schema, TypeBox, zod, superstruct, yup, joi, io-ts. */
const SCHEMA_MARKS = /^(?:~standard|~kind|__@Kind.*|safeParse|refiner|validateSync|validateAsync|_A)$/;
const CONSTRAINED_ALIASES = /^(?:Int|Email|Uuid|DateTime|DateOnly|Uri)$/;

/**
 * Returns what a written type would lose, such as `the tag @minLength`: a check in the author's code that the type is
 * made of. The code of functions counts, too, because their results can have inferred types.
 */
export function findLoss(start: ts.Node, { ts, checker }: TypeProject): string | undefined {
  const pending = new Set<ts.Node>([start]);
  let loss: string | undefined;
  const visit = (node: ts.Node): void => {
    if (loss !== undefined) return;
    if (ts.canHaveDecorators(node) && (ts.getDecorators(node) ?? []).length > 0) loss = 'a decorator';
    else if (ts.isIdentifier(node)) visitName(node);
    else if (ts.isCallExpression(node) && isSchema(checker.getTypeAtLocation(node))) loss = `the schema ${text(node)}`;
    ts.forEachChild(node, visit);
  };
  function visitName(node: ts.Identifier): void {
    let symbol = checker.getSymbolAtLocation(node);
    if (symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
    for (const declaration of symbol?.declarations ?? []) {
      const own = isOwn(declaration.getSourceFile());
      const isConstrained = ts.isTypeAliasDeclaration(declaration) && CONSTRAINED_ALIASES.test(declaration.name.text);
      if (isConstrained) loss = `the constraint ${declaration.name.text}`;
      if (!own && ts.isTypeAliasDeclaration(declaration)) visitQueries(declaration);
      if (own && !ts.isSourceFile(declaration))
        pending.add(ts.isBindingElement(declaration) ? declaration.parent.parent : declaration);
    }
    if (
      symbol !== undefined &&
      symbol.flags & ts.SymbolFlags.Value &&
      isSchema(checker.getTypeOfSymbolAtLocation(symbol, node))
    )
      loss = `the schema ${node.text}`;
  }
  /** A package, too, can infer a type from a schema. */
  function visitQueries(node: ts.Node): void {
    if (ts.isTypeQueryNode(node) && isSchema(checker.getTypeAtLocation(node.exprName)))
      loss = `the schema ${text(node.exprName)}`;
    ts.forEachChild(node, visitQueries);
  }
  const isSchema = (type: ts.Type): boolean =>
    type.getProperties().some(({ name }) => SCHEMA_MARKS.test(name)) ||
    /[\\/]effect[\\/].*[\\/]Schema/.test(type.symbol?.declarations?.[0]?.getSourceFile().fileName ?? '');
  const text = (node: ts.Node) => node.getText().replace(/\s+/g, ' ').slice(0, 40);
  for (const node of pending) {
    const source = node === start ? node.getText() : node.getFullText();
    for (const [comment] of source.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
      // A default, too, is lost with its tag.
      const [, tag] = /@(\w+)/.exec(findUnreadConstraint(comment) ?? '') ?? /@(default|trim)\b/.exec(comment) ?? [];
      if (tag !== undefined) loss ??= `the tag @${tag}`;
    }
    visit(node);
    if (loss !== undefined) return loss;
  }
  return undefined;
}
